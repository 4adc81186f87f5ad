"""One algorithm a file or a folder; each but `ProximalNewton` solves each problem.

Solvers are frozen parameters. `solver=` of an estimator takes an instance or a name of `NAMES`.
Files that begin with _ are imported inside their folder only.

protocol               `Solver`, `Bound`, `Start`
traits                 what a solver can do: `Traits`, `Linear`, `KernelMachines`
learner                what a streaming solver makes: `Learner`, `StreamingSolver`, `Progressive`
kernel_learner         what a kernel solver makes: `KernelSolver`, `KernelLearner`, `KernelTask`,
                       `Part`
wrappers               `Cached`, `Incremental`, `Averaged`, `Threaded`
dual_coordinate/       one dual variable, block or plane at a time; compiled loops where the layout
                       allows
block_frank_wolfe      with plane cache, pairwise steps, gap sampling
cutting_planes/        one-slack, n-slack, of random samples, with kernels
proximal_newton/       few features, many rows
streaming_dual/        `StreamingDual`, its schedules, and the examples it keeps
out_of_core/           exact training over blocks on disk
perceptron             the averaged perceptron; no objective, no certificate
meta_descent           stochastic meta-descent, a step per coordinate; no certificate
pegasos/               sub-gradient steps, plain and averaged, on planes and with kernels
functional_descent/    proximal steps on samples, on planes and with kernels
lasvm/                 kernel machines of two classes
larank/                kernel machines of several classes: LaRank, SOnline
svmd/                  gradient steps in the space of functions: SVMD, NORMA
"""

from ..kernels.budgets import BUDGETS, Merge, Oldest, Project, Smallest
from .block_frank_wolfe import BlockFrankWolfe
from .cutting_planes.n_slack import NSlack
from .cutting_planes.one_slack import OneSlack
from .cutting_planes.sampled import SampledCuts
from .dual_coordinate.solver import DualCoordinate
from .functional_descent.choices import (
    INNER,
    RESIDUALS,
    WORKING_SETS,
    ClampedResiduals,
    DualCoordinates,
    FreeResiduals,
    ImportanceDraws,
    InOrder,
    OneSlackCuts,
    UniformDraws,
)
from .functional_descent.schedules import (
    SCHEDULES,
    AutoDamping,
    ConstantDamping,
    GeometricDamping,
    GivenDamping,
    LinearDamping,
    PowerDamping,
    Radius,
)
from .functional_descent.solver import FunctionalDescent
from .kernel_learner import KernelLearner, KernelSolver
from .larank.solver import LaRank, SOnline
from .lasvm.solver import LaSVM
from .learner import Learner, StreamingSolver
from .meta_descent import MetaDescent
from .out_of_core.solver import OutOfCore
from .pegasos.solver import Pegasos
from .perceptron import Perceptron
from .protocol import Bound, Mistakes, Solver, Start, Surrounds, Uncertified
from .proximal_newton.solver import ProximalNewton
from .streaming_dual.solver import Explore, Fill, OnGap, Ratio, StreamingDual
from .svmd.solver import NORMA, SVMD
from .traits import names_that, traits_of
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
STREAM_SCHEDULES = (OnGap, Explore, Ratio, Fill)
#: Objects that parameters of solvers may be, by name.
CHOICES = {
    kind.__name__: kind
    for kinds in (SCHEDULES, WORKING_SETS, RESIDUALS, INNER, BUDGETS.values(), STREAM_SCHEDULES)
    for kind in kinds
}

__all__ = [
    "CHOICES",
    "NAMES",
    "NORMA",
    "SVMD",
    "AutoDamping",
    "Averaged",
    "BlockFrankWolfe",
    "Bound",
    "Cached",
    "ClampedResiduals",
    "ConstantDamping",
    "DualCoordinate",
    "DualCoordinates",
    "Explore",
    "Fill",
    "FreeResiduals",
    "FunctionalDescent",
    "GeometricDamping",
    "GivenDamping",
    "ImportanceDraws",
    "InOrder",
    "Incremental",
    "KernelLearner",
    "KernelSolver",
    "LaRank",
    "LaSVM",
    "Learner",
    "LinearDamping",
    "Merge",
    "MetaDescent",
    "Mistakes",
    "NSlack",
    "Oldest",
    "OnGap",
    "OneSlack",
    "OneSlackCuts",
    "OutOfCore",
    "Pegasos",
    "Perceptron",
    "PowerDamping",
    "Project",
    "ProximalNewton",
    "Radius",
    "Ratio",
    "SOnline",
    "SampledCuts",
    "Smallest",
    "Solver",
    "Start",
    "StreamingDual",
    "StreamingSolver",
    "Surrounds",
    "Threaded",
    "Uncertified",
    "UniformDraws",
    "names_that",
    "traits_of",
]
