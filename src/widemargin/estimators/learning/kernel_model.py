"""What estimators with a `kernel` share: they learn weights, or a kernel machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin

from ...kernels.functions import DENSE_COLUMNS, check_kernel
from ...run.kernels import KernelRun
from ...run.streams import StreamRun
from ...system.sentences import Option, Sentence
from .fitting import traits_asked
from .kernel import KernelWay, is_precomputed
from .linear import LinearWay
from .machines import machine_of
from .streaming import Streaming


class KernelModel(Streaming):
    """Mixin: learning from streams and, where there is a kernel, of kernel machines.

    The estimator gives what `LinearWay` and `KernelWay` list.
    """

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    precision: str
    intercept_: np.ndarray

    def _way(self, run: StreamRun | None = None) -> Any:
        """The way of a run, or else the one that the parameters ask for."""
        is_machine = self.is_kernel_machine if run is None else isinstance(run, KernelRun)
        return KernelWay(self, run) if is_machine else LinearWay(self, run)

    @property
    def is_kernel_machine(self) -> bool:
        """Whether the parameters ask for a kernel machine."""
        kernel = getattr(self, "kernel", "linear")
        if not (isinstance(kernel, str) and kernel == "linear"):
            return True
        return traits_asked(self.solver).needs_kernel

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(getattr(self, "kernel", "linear"))
        return tags

    @property
    def support_vectors_(self) -> Any:
        """The patterns with a coefficient that is not zero, (n_support, d).

        They are an array, or a CSR matrix where they have many columns and are stored sparse.
        """
        machine = KernelWay(self).machine("support_vectors_")
        rows = machine.support.patterns[machine.used].plain
        return rows.toarray() if sp.issparse(rows) and rows.shape[1] <= DENSE_COLUMNS else rows

    @property
    def dual_coef_(self) -> np.ndarray:
        """Their coefficients, (outputs, n_support)."""
        machine = KernelWay(self).machine("dual_coef_")
        coefficients: np.ndarray = machine.coefficients[machine.used].T.copy()
        return coefficients

    @property
    def n_support_(self) -> int:
        """Number of support patterns."""
        return int(KernelWay(self).machine("n_support_").used.size)

    def _check_parameters(self) -> None:
        """All of them, whether the model has a kernel or not."""
        super()._check_parameters()
        check_kernel(self.kernel, self.gamma, self.degree, self.coef0)
        if self.precision not in ("float32", "float64"):
            raise ValueError(f"precision is {self.precision!r}; 'float32' or 'float64' is needed.")
        kappa = getattr(self, "output_kernel", "identity")
        is_plain = isinstance(kappa, str) and kappa == "identity"
        if not (is_plain or self.is_kernel_machine):
            raise ValueError(
                Sentence(
                    Option("output_kernel"),
                    " is for kernel machines, and this model is linear: give it a kernel, or ",
                    Option("solver", "larank"),
                    ". Linear models that share weights are TaxonomyClassifier's.",
                )
            )

    def _adapted(self, solver: Any) -> Any:
        """A kernel solver with what the estimator says of it."""
        return solver

    def _make_room(self, known: Any) -> None:
        """Let the learner take in classes that appeared late, where there are classes."""

    def _open(self, run: KernelRun, books: dict[str, Any]) -> None:
        """Note what may appear after `fit` that `fit` did not know, where there are classes."""

    # ------------------------------------------------------------ saving

    def _machine_arrays(self) -> dict[str, np.ndarray] | None:
        """Patterns and coefficients for a file; None for a linear model."""
        arrays: dict[str, np.ndarray] | None = self._way().arrays()
        return arrays

    def _set_machine(self, kernel: Any, arrays: dict[str, np.ndarray]) -> None:
        """Make the kernel machine of a file."""
        n_classes = len(getattr(self, "classes_", ())) if isinstance(self, ClassifierMixin) else 1
        possible = (1, 2) if n_classes == 2 else (n_classes,)
        outputs = tuple(k for k in possible if k == len(self.intercept_))
        width = int(self.n_features_in_)
        self._machine = machine_of(kernel, arrays, width, self.precision, outputs)
        self.kernel_ = kernel
