"""He's thesis on stochastic functional descent, section 5.1."""

from __future__ import annotations

from ..experiment import Experiment
from .parameters import PARAMETERS
from .runs import units
from .tables import tell

COMPARISON = Experiment(
    "thesis-comparison",
    "thesis",
    "Functional descent and its rivals on binary sets (thesis Tables 5.2-5.4, Figs 5.3 and 5.4)",
    "RBF with the gamma of Table 5.1 (covtype and digits: ours), no bias, two epochs, samples of "
    "1 %. SFD1 damps by 1/k, SFD2 by t/N, both with the clamped residuals of the thesis and "
    "samples drawn evenly at each step, as it says; “free” is the exact proximal step, over one "
    "random order; “functional descent” is this library's default, which has nothing to tune. "
    "LaSVM takes the worst of 50 examples. SampledCuts keeps all examples and makes its cuts at "
    "the end of an epoch, so its curve has two points. The thesis gives Pegasos samples of 1 %; "
    "“k = 1” is Pegasos as published.",
    units,
    tell,
    data=("ijcnn1", "a8a", "w8a", "covtype"),
    substitute="digits",
    version=2,
)

EXPERIMENTS = (PARAMETERS, COMPARISON)
