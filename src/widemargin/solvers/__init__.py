"""One algorithm a file; each but `ProximalNewton` solves each problem.

Solvers are frozen parameters. `solver=` of an estimator takes an instance or a name of `NAMES`.
"""

from typing import Any

from .block_frank_wolfe import BlockFrankWolfe
from .dual_coordinate import DualCoordinate
from .functional_descent import FunctionalDescent
from .kernel_learner import KernelLearner, KernelSolver
from .larank import LaRank, SOnline
from .lasvm import LaSVM
from .learner import Learner, StreamingSolver
from .meta_descent import MetaDescent
from .n_slack import NSlack
from .one_slack import OneSlack
from .out_of_core import OutOfCore
from .pegasos import Pegasos
from .perceptron import Perceptron
from .protocol import Bound, Mistakes, Solver, Start, Surrounds, Uncertified
from .proximal_newton import ProximalNewton
from .sampled_cuts import SampledCuts
from .streaming import Explore, Fill, OnGap, Ratio, StreamingDual
from .svmd import NORMA, SVMD
from .wrappers import Averaged, Cached, Incremental, Threaded

#: What `solver="..."` means.
NAMES = {
    "one_slack": OneSlack,
    "n_slack": NSlack,
    "dual_coordinate": DualCoordinate,
    "block_frank_wolfe": BlockFrankWolfe,
    "proximal_newton": ProximalNewton,
    "perceptron": Perceptron,
    "meta_descent": MetaDescent,
    "streaming_dual": StreamingDual,
    "out_of_core": OutOfCore,
    "lasvm": LaSVM,
    "larank": LaRank,
    "sonline": SOnline,
    "svmd": SVMD,
    "norma": NORMA,
    "functional_descent": FunctionalDescent,
    "pegasos": Pegasos,
    "sampled_cuts": SampledCuts,
}
#: Those that learn kernel machines; some of them learn linear models too (`needs_kernel`).
KERNEL_NAMES = tuple(name for name, kind in NAMES.items() if isinstance(kind(), KernelSolver))


def needs_kernel(solver: Any) -> bool:
    """Whether a solver learns kernel machines and no linear models."""
    is_linear = isinstance(solver, Uncertified | Solver)
    return isinstance(solver, KernelSolver) and not is_linear


__all__ = [
    "KERNEL_NAMES",
    "NAMES",
    "NORMA",
    "SVMD",
    "Averaged",
    "BlockFrankWolfe",
    "Bound",
    "Cached",
    "DualCoordinate",
    "Explore",
    "Fill",
    "FunctionalDescent",
    "Incremental",
    "KernelLearner",
    "KernelSolver",
    "LaRank",
    "LaSVM",
    "Learner",
    "MetaDescent",
    "Mistakes",
    "NSlack",
    "OnGap",
    "OneSlack",
    "OutOfCore",
    "Pegasos",
    "Perceptron",
    "ProximalNewton",
    "Ratio",
    "SOnline",
    "SampledCuts",
    "Solver",
    "Start",
    "StreamingDual",
    "StreamingSolver",
    "Surrounds",
    "Threaded",
    "Uncertified",
    "needs_kernel",
]
