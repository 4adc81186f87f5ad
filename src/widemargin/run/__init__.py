"""A fit: epochs or chunks, what is proven of them, and what is told on the way.

certificate           `Certificate`, the gap, and what cannot be one; `Best` and `Claim`
bounds                both ends of a certificate over rows and planes, rounded outwards
history               columns of numbers, a row for each epoch or part of a stream
loop                  the only loop over epochs, whoever keeps the account of them
epochs                `iterate`, `run`, `Progress`: epochs of a solver over data in memory
rounds                rounds around `run` for hidden variables
rebasing              planes kept from round to round while completions move
streams               learning from one chunk after another, its certificate and history
kernels               kernel machines from one chunk after another
kernel_certificate    what is proven of a kernel machine, by a pass in double precision
passes                how often a stream is read, and when that ends
record                what a run keeps to go on from, for checkpoints, model files and pickles
                      alike
callbacks             the callback protocol of scikit-learn as a stop rule
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .certificate import Best, Certificate, Claim, make_certificate, relative_gap
    from .epochs import Progress, iterate, run

#: Loaded on first use: solvers import `bounds`, and `epochs` imports solvers.
_HOMES = {
    "Best": "certificate",
    "Certificate": "certificate",
    "Claim": "certificate",
    "Progress": "epochs",
    "iterate": "epochs",
    "make_certificate": "certificate",
    "relative_gap": "certificate",
    "run": "epochs",
}
__all__ = [
    "Best",
    "Certificate",
    "Claim",
    "Progress",
    "iterate",
    "make_certificate",
    "relative_gap",
    "run",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
