"""Where planes come from. An oracle owns the only loop over examples.

protocol    `Oracle`: what an oracle must have; calls and deadlines, costs of examples
cuts        `Oracle.cut`: planes of many examples added up along a tree
source      `Source`: the problem and its rescaling, closed
python      `PythonOracle`: a problem's three functions, called from Python
compiled    `CompiledOracle`: a problem's compiled function, called through a typed pointer
making      `make_oracle`: the fastest of the two that a problem offers
around      `Around`: what all wrappers of an oracle share
subset      `Restricted`: an oracle on a part of its examples
memory      `Remembering`, `Recalled`: planes kept, so that a slow oracle is asked seldom
threads     `Parallel`: planes of a batch of examples found by threads at one w
"""

from .compiled import CompiledOracle, compiled_sweep, oracle_signature
from .making import make_oracle, oracle_of
from .protocol import (
    CHUNK,
    Cut,
    Oracle,
    OutOfTime,
    Tally,
    example_costs,
    lost_by_planes,
    sweep_one_by_one,
    update_signature,
)
from .python import PythonOracle
from .source import Source
from .subset import Restricted

__all__ = [
    "CHUNK",
    "CompiledOracle",
    "Cut",
    "Oracle",
    "OutOfTime",
    "PythonOracle",
    "Restricted",
    "Source",
    "Tally",
    "compiled_sweep",
    "example_costs",
    "lost_by_planes",
    "make_oracle",
    "oracle_of",
    "oracle_signature",
    "sweep_one_by_one",
    "update_signature",
]
