"""Sequence tagging: a label for every position of a sequence."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..inference.legal_steps import ILLEGAL, IllegalSteps, forbidden_steps
from ..inference.viterbi import k_best_of, predict_paths, token_margins
from ..inputs.sequences import Sequences
from ..losses import cost_matrix
from ..problems import Chain
from ..run.callbacks import with_callbacks
from ..saving.schema import LABELS, Array, Mismatch, Relation, Schema
from .coding.explaining import Explanation, explanations
from .coding.flat_weights import intercept_size
from .coding.tag_inputs import (
    TagFeatures,
    Truths,
    check_label_lists,
    label_array,
    labels_of,
    short_list,
    weighted_truths,
)
from .coding.weights import checked_weights
from .learning.streaming import is_streaming
from .learning.undoing import all_or_nothing
from .structured import ProblemEstimator

if TYPE_CHECKING:
    from ..run.streams import StreamRun
    from ..stopping import Reason, Rule
    from ..streams import Chunk, Stream


class SequenceTagger(ProblemEstimator):
    """Labels of sequences by a chain of labels, learnt with a large margin.

    Parameters
    ----------
    C : float
        Weight of the hinge of a sequence.
    loss : "hamming", "mean_hamming", array (K, K) or a loss of `widemargin.losses`
        The number of wrong labels; the same divided by the length of the sequence; or a cost
        [true, predicted] of each position, in the order of `classes_`.
    constraints : None, "bio", "iobes" or list of pairs
        Steps that no prediction takes: what is illegal in the named scheme, or pairs (label, next
        label), with None for the start and the end of a sequence.
    illegal : "refuse" or "allow"
        What to do with training data that breaks the constraints. "refuse" is an error that counts
        the illegal steps and names the first. "allow" learns from such sequences as they are, with
        a warning that counts them: their own labels stand beside the legal labellings they are
        compared with, so that the objective and its certificate are those of all data. No
        prediction is illegal either way.
    transition_features : list, optional
        Features (names, or numbers of columns) that speak for pairs of labels as well.
    solver, rescaling, tol, fit_intercept, intercept_scaling, prior, nonnegative, max_passes, \
max_seconds, stop, warm_start, random_state
        As in `SVMClassifier`; prior and mask are flat, (n_weights,).

    Attributes
    ----------
    classes_ : array (K,)
    coef_ : array (n_columns, K)
        Weights of the features of a position.
    intercept_, start_, end_ : arrays (K,)
    transitions_ : array (K, K)
        Weight [label, next label].
    transition_coef_ : array (n_edges, K, K)
    feature_names_ : list of str or None
        Names of the last columns.
    certificate_, history_, solver_
        As in `SVMClassifier`.

    Examples
    --------
    >>> X = [[["the"], ["cat"]], [["a"], ["dog"], ["barks"]]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
    >>> tagger = SequenceTagger(C=10.0, random_state=0).fit(X, y)
    >>> tagger.predict([[["the"], ["dog"], ["barks"]]])
    [['DET', 'NOUN', 'VERB']]
    """

    _no_checkpoint = "the columns of names are numbered as they come"
    _saved = ("weights_", "feature_names_", "edge_names_", "n_edges_")
    _needed = ("n_features_in_", "n_edges_")
    _derived = ("coef_", "intercept_")
    _illegal: IllegalSteps | None = None  # illegal steps of the data that nobody has told yet

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: Any = "hamming",
        constraints: Any = None,
        illegal: str = "refuse",
        transition_features: Any = None,
        solver: Any = "auto",
        rescaling: str = "margin",
        tol: float = 1e-2,
        fit_intercept: bool | str = "auto",
        intercept_scaling: float = 1.0,
        prior: tuple[Any, Any] | None = None,
        nonnegative: Any = False,
        max_passes: float | None = 1000,
        max_seconds: float | None = None,
        stop: Rule | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        self.C = C
        self.loss = loss
        self.constraints = constraints
        self.illegal = illegal
        self.transition_features = transition_features
        self.solver = solver
        self.rescaling = rescaling
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.prior = prior
        self.nonnegative = nonnegative
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.stop = stop
        self.warm_start = warm_start
        self.random_state = random_state

    # ------------------------------------------------------------ learning

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, token_weight: Any = None) -> Self:
        """Fit to sequences X and their labels y.

        Parameters
        ----------
        X : list of sequences, or Sequences
            A sequence is a list of tokens (each a list of feature names, or a dict of features), an
            array (T, d), a CSR matrix (T, d), or a pair (tokens or CSR matrix, array (T, e)).
        y : list of lists
            A label for every position; any hashable values.
        sample_weight : array (n,), optional
            Factors of C per sequence.
        token_weight : list of arrays, optional
            Factors of the loss per position.
        """
        self._check_parameters()
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} sequences and y has {len(y)}.")
        if not len(y):
            raise ValueError("There are no sequences: X and y are empty.")
        weights = checked_weights(sample_weight, len(y))
        check_label_lists(y)
        self._set_classes(chain.from_iterable(y))
        self._features = TagFeatures(self.transition_features)
        if is_streaming(self.solver):
            if token_weight is not None:
                raise ValueError("token_weight needs a solver that has all data.")
            return self._fit_rows(X, list(y), weights)
        sequences = self._sequences(X, grow=True)
        truths = self._truths(y, sequences)
        self._set_problem(sequences, token_weight is not None)
        self._illegal = None
        self._find_illegal(truths, sequences)
        self._tell_illegal()
        if token_weight is not None:
            truths = weighted_truths(truths, token_weight)
        return self._fit_problem(sequences, truths, weights)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further sequences; those given twice count as two examples.

        Parameters
        ----------
        X, y : as in `fit`
        classes : list, optional
            All labels that will ever come, at the first call; by default those of `y`.
        sample_weight : array (n,), optional
        """
        features = getattr(self, "_features", None)
        known = features and features.counts
        try:
            return self._partial_fit(X, list(y), sample_weight, classes)
        except BaseException:
            if features is not None:
                features.keep(known)
            raise

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.illegal not in ILLEGAL:
            raise ValueError(f"illegal is {self.illegal!r}; 'refuse' or 'allow' is needed.")
        if self.illegal == "allow" and self.constraints is None:
            raise ValueError("illegal='allow' is for constraints, and there are none.")

    def _set_classes(self, labels: Any) -> None:
        """`classes_`: sorted where the labels can be sorted, else in order of appearance."""
        self.classes_ = label_array(dict.fromkeys(labels))
        self._number = {label: k for k, label in enumerate(self.classes_.tolist())}
        if not len(self.classes_):
            raise ValueError("y has no labels: all sequences are empty.")
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has only one label, {self.classes_.tolist()[0]!r}; at least two are needed."
            )

    def _set_problem(self, X: Sequences, weighted: bool = False) -> None:
        """The chain problem of as many columns as `X` has."""
        self.n_features_in_, self.n_edges_ = X.n_columns, X.n_edges
        self._chain = self._new_chain(weighted)

    def _new_chain(self, weighted: bool = False) -> Chain:
        self.loss_matrix_ = None
        if not isinstance(self.loss, str):
            self.loss_matrix_ = cost_matrix(self.loss, self.classes_)
        elif self.loss not in ("hamming", "mean_hamming"):
            raise ValueError(
                f"loss is {self.loss!r}; 'hamming', 'mean_hamming', a matrix of costs or a loss of "
                "widemargin.losses is needed."
            )
        return Chain(
            self.n_features_in_,
            len(self.classes_),
            self.loss_matrix_,
            normalised=isinstance(self.loss, str) and self.loss == "mean_hamming",
            forbidden=forbidden_steps(self.constraints, self.classes_.tolist()),
            n_edges=self.n_edges_,
            bias=intercept_size(self),
            weighted=weighted,
            illegal=self.illegal,
        )

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        return Schema(
            Array("classes_", LABELS, ("K",), distinct=True),
            Relation("classes_", "has fewer than two labels", lambda a, s: s["K"] > 1),
            Array("weights_", "f8", ("n_weights",)),
            Array("loss_matrix_", "f8", ("K", "K"), low=0, optional=True),
        )

    def _check_vocabularies(self, chain_: Chain) -> None:
        """As many weights, names and steps as the model has columns."""
        names, edge_names = self._features.names, self._features.edge_names
        if self.weights_.size != chain_.n_features:
            raise Mismatch(f"array 'weights_' has {self.weights_.size}, not {chain_.n_features}")
        if len(names or ()) > self.n_features_in_:
            raise Mismatch("array 'feature_names_' has more names than there are columns")
        chosen = self.transition_features
        strange = [item for item in chosen or () if type(item) not in (str, int)]
        if strange:
            raise Mismatch(f"'transition_features' has {strange[0]!r:.60}, no name and no number")
        if len(edge_names or ()) + (0 if chosen is None else len(chosen)) > self.n_edges_:
            raise Mismatch("array 'edge_names_' and transition_features exceed n_edges_")

    def _restored(self) -> None:
        self._number = {label: k for k, label in enumerate(self.classes_.tolist())}
        self._chain = self._new_chain()
        names = getattr(self, "feature_names_", None)  # None is not in a file
        edge_names = getattr(self, "edge_names_", None)
        self._features = TagFeatures(self.transition_features, names, edge_names)
        self._check_vocabularies(self._chain)
        for name, value in self._attributes(self.weights_).items():
            setattr(self, name, value)

    @property
    def _problem(self) -> Chain:
        return self._chain

    def _sequences(self, X: Any, grow: bool) -> Sequences:
        """Inputs of a user as packed sequences of the model's columns."""
        return self._features.packed(X, None if grow else self.n_features_in_)

    def _truths(
        self, y: Any, X: Sequences, where: Callable[[int], str] = "sequence {}".format
    ) -> Truths:
        """Labels in numbers; a strange one is named, and `where` its sequence begins."""
        number = self._number
        truths = Truths()
        for i, (labels, length) in enumerate(zip(y, X.lengths, strict=True)):
            if len(labels) != length:
                raise ValueError(
                    f"{where(i)} has {length} positions in X and {len(labels)} labels in y."
                )
            try:
                truths.append(np.array([number[label] for label in labels], np.int64))
            except KeyError as error:
                raise ValueError(
                    f"{where(i)}: the label {error.args[0]!r} is not among the labels of the "
                    f"model, {short_list(self.classes_)}."
                ) from None
        return truths

    def _find_illegal(self, truths: Truths, X: Sequences, **where: Any) -> None:
        """Labels that break the constraints are counted, or refused."""
        if not self._chain.forbidden.size:
            return
        if self._illegal is None or self.illegal == "refuse":
            self._illegal = IllegalSteps(
                self._chain.forbidden, self.classes_.tolist(), self.constraints
            )
        self._illegal.add(X.begin, np.concatenate(truths), **where)
        if self.illegal == "refuse":
            self._illegal.refuse()

    def _tell_illegal(self) -> None:
        """Warn of the illegal labels counted since the last time."""
        found, self._illegal = self._illegal, None
        if found is not None:
            found.tell()

    # ------------------------------------------------------------ streams

    def _begin_stream(self, stream: Stream, classes: Any, is_whole: bool = True) -> None:
        self._illegal = None
        if self.transition_features is not None:
            raise ValueError("transition_features needs all data at once; a stream has chunks.")
        if classes is None:
            if not stream.repeatable:
                raise ValueError(
                    f"{stream.name} can be read only once, so its labels must be told: "
                    "classes=[...]."
                )
            classes = labels_of(stream)
        self._set_classes(classes)
        self._features = TagFeatures(self.transition_features)

    def _settle(self, way: Any, run: StreamRun, reason: Reason | None) -> None:
        super()._settle(way, run, reason)
        self._tell_illegal()

    def _checked_part(self, X: Any, y: Any, is_first: bool) -> tuple[Any, Any]:
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} sequences and y has {len(y)}.")
        return X, y

    def _inputs(self, chunk: Chunk) -> Any:
        grow = not self._is_fixed
        X = self._sequences(chunk.X, grow or not self._columns)
        if X.names is None and self._columns and X.n_columns != self._columns:
            raise ValueError(
                f"{chunk.where(0)}: {X.n_columns} features per position; there were "
                f"{self._columns}."
            )
        self._columns = max(self._columns, X.n_columns)
        self._set_problem(X)
        return X

    def _nothing(self) -> tuple[Any, Any, Any]:
        return self._chain, [], []

    def _encode(self, chunk: Chunk, X: Any) -> tuple[Any, Any, np.ndarray | None]:
        truths = self._truths(chunk.y, X, chunk.where)
        run = getattr(self, "_run", None)  # a model of a file has none
        if run is not None and chunk.row >= run.fingerprint.count:  # examples that are new to it
            self._find_illegal(truths, X, where=chunk.where)
        return self._chain, truths, chunk.weight

    # ------------------------------------------------------------ what was learnt

    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        chain_ = self._chain
        K, table = chain_.n_labels, w.reshape(-1, chain_.width)[:, : chain_.n_labels]
        edges = table[chain_.edge_row : chain_.node_row]
        return {
            "weights_": np.array(w),
            "coef_": np.ascontiguousarray(table[chain_.node_row :]),
            "transitions_": np.ascontiguousarray(table[:K]),
            "start_": table[K].copy(),
            "end_": table[K + 1].copy(),
            "intercept_": chain_.bias * table[K + 2],
            "transition_coef_": np.ascontiguousarray(edges).reshape(-1, K, K),
            "feature_names_": self._features.names,
            "edge_names_": self._features.edge_names,
        }

    def _flat_weights(self) -> np.ndarray:
        weights: np.ndarray = self.weights_.copy()
        return weights

    def _mean_loss(self, X: Any, y: Any, w: np.ndarray, weights: np.ndarray | None = None) -> float:
        if not isinstance(y, Truths):  # data of a user
            X = self._sequences(X, grow=False)
            y = self._truths(y, X)
        return float(np.average(self._chain.prediction_losses(X, y, w), weights=weights))

    # ------------------------------------------------------------ using it

    def _packed(self, X: Any) -> tuple[Sequences, Any]:
        check_is_fitted(self, "weights_")
        X = self._sequences(X, grow=False)
        return X, self._chain.pack_unlabelled(X)

    def predict(self, X: Any) -> list[list[Any]]:
        """The best labels of each sequence."""
        if not len(X):
            return []
        sequences, data = self._packed(X)
        paths = np.empty(sequences.n_positions, np.int64)
        predict_paths(data, self.weights_, paths)
        return self._split(self.classes_[paths].tolist(), sequences)

    def predict_kbest(self, X: Any, k: int) -> list[list[tuple[float, list[Any]]]]:
        """The `k` best labellings of each sequence as (score, labels), the best first.

        Short sequences may have fewer than `k` legal labellings.
        """
        if not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"k is {k!r}; an integer >= 1 is needed.")
        sequences, data = self._packed(X)
        labels, found = self.classes_.tolist(), []
        for i, length in enumerate(sequences.lengths):
            paths, totals = np.zeros((k, length), np.int64), np.zeros(k)
            count = k_best_of(data, i, self.weights_, k, paths, totals)
            found.append([(float(totals[r]), [labels[c] for c in paths[r]]) for r in range(count)])
        return found

    def margins(self, X: Any) -> list[np.ndarray]:
        """The confidence of each label: how much the score falls if it must be another one."""
        sequences, data = self._packed(X)
        paths, margins = np.empty(sequences.n_positions, np.int64), np.empty(sequences.n_positions)
        token_margins(data, self.weights_, paths, margins)
        return np.split(margins, sequences.begin[1:-1])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the positions with the right label; a label that is unknown counts as wrong.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : array (n,), optional
            Weights of the sequences.
        """
        predicted = self.predict(X)
        if len(predicted) != len(y):
            raise ValueError(f"X has {len(predicted)} sequences and y has {len(y)}.")
        weights = checked_weights(sample_weight, len(y))
        right = total = 0.0
        for i, (labels, truth) in enumerate(zip(predicted, y, strict=True)):
            if len(labels) != len(truth):
                raise ValueError(
                    f"sequence {i} has {len(labels)} positions in X and {len(truth)} labels in y."
                )
            weight = 1.0 if weights is None else float(weights[i])
            right += weight * sum(one == two for one, two in zip(labels, truth, strict=True))
            total += weight * len(truth)
        return right / total

    def explain(self, x: Any, n: int = 10) -> list[Explanation]:
        """Which features spoke for the chosen label of each position of one sequence.

        A position's label is compared with its strongest legal rival, the other labels staying as
        they are; where the constraints allow no other label between them, with the best legal
        sequence that has another label there. `reasons` are the features with the largest effect on
        the difference of the scores, transitions included; "at 3: " stands before those of another
        position whose label differs, too.

        Parameters
        ----------
        x : a sequence, as in `fit`
        n : int
            Reasons per position at most.
        """
        X, data = self._packed([x] if not isinstance(x, Sequences) else x)
        path = np.empty(X.n_positions, np.int64)
        predict_paths(data, self.weights_, path)
        scores, steps = self._chain.tables(X, self.weights_)
        return explanations(self, X, path, scores, steps, n)

    def _split(self, labels: list[Any], X: Sequences) -> list[list[Any]]:
        begin = X.begin.tolist()
        return [labels[begin[i] : begin[i + 1]] for i in range(len(X))]
