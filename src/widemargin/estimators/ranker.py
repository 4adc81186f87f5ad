"""Ranking: documents of queries, or one list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..arrays.matrices import checked
from ..inputs.queries import Queries, group_rows, query_weights
from ..problems import AveragePrecision, NDCGAt, PrecisionAt, RocArea
from ..run.callbacks import with_callbacks
from ..saving.schema import Array, Schema
from ..streams import ArrayStream, Chunk
from ..streams.opening import as_stream
from ..streams.queries import QueryStream
from ..system.user_warnings import warn_user
from .coding.weights import checked_weights, refuse_all_zero
from .learning.fitting import check_parameters, checked_data, checked_inputs
from .learning.streaming import Streaming, is_streaming
from .learning.undoing import all_or_nothing
from .structured import ProblemEstimator

if TYPE_CHECKING:
    from ..run.certificate import Certificate
    from ..stopping import Rule
    from ..streams import Stream


LOSSES = "'roc_area', 'average_precision', 'precision@k', 'ndcg' and 'ndcg@k' (k an integer >= 1)"


def ranking_problem(loss: Any, n_inputs: int) -> Any:
    """The problem of a loss by its name.

    Examples
    --------
    >>> ranking_problem("ndcg@10", 46)
    NDCGAt(46, k=10)
    """
    plain = {"roc_area": RocArea, "average_precision": AveragePrecision, "ndcg": NDCGAt}
    if isinstance(loss, str):
        if loss in plain:
            return plain[loss](n_inputs)
        found = re.fullmatch(r"(precision|ndcg)@0*([1-9][0-9]{0,8})", loss)
        if found:
            kind = PrecisionAt if found[1] == "precision" else NDCGAt
            return kind(n_inputs, int(found[2]))
    raise ValueError(f"loss is {loss!r}; known are {LOSSES}.")


class Ranker(ProblemEstimator):
    """Linear ranking of the documents of queries, with a loss of the whole list.

    Minimises `1/2 |w|^2 + C * sum over queries of hinge(w)`, where the hinge bounds the loss of the
    list sorted by <w, x>. One query (`qid="one"`) with two relevances is the SVM for the area under
    the ROC curve.

    Parameters
    ----------
    C : float
        Weight of a query's hinge.
    loss : str
        - "roc_area": share of pairs of different relevance in the wrong order;
        - "average_precision": 1 - average precision, relevant means y > 0;
        - "precision@k" (such as "precision@5"): 1 - precision@k / the largest possible, y > 0;
        - "ndcg@k", "ndcg": 1 - NDCG with gains 2^y - 1.
    solver, rescaling, tol, prior, nonnegative, max_passes, max_seconds, stop, warm_start, \
random_state
        As in `SVMClassifier`; prior and mask have the shape of `coef_`. Held-out data of
        `Validation` are ((X, qid), y), or (X, y) for one query.

    Attributes
    ----------
    coef_ : array (d,)
    n_skipped_queries_ : int
        Training queries without two documents that the loss compares; they carry no constraint.
    certificate_ : Certificate
    history_ : History
    solver_ : the solver that ran

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.standard_normal((60, 3)), np.repeat(np.arange(10), 6)
    >>> y = (X[:, 0] + 0.1 * rng.standard_normal(60) > 0.3) + 0
    >>> model = Ranker(loss="ndcg@3", random_state=0).fit(X, y, qid=qid)
    >>> model.score(X, y, qid=qid) > 0.95, model.coef_.shape
    (True, (3,))

    In cross-validation the queries go along where metadata routing is on, and `groups` keeps each
    of them whole:

    >>> from sklearn import config_context
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> with config_context(enable_metadata_routing=True):
    ...     ranker = model.set_fit_request(qid=True).set_score_request(qid=True)
    ...     search = GridSearchCV(ranker, {"C": [0.1, 1.0]}, cv=GroupKFold(3))
    ...     best = search.fit(X, y, qid=qid, groups=qid).best_score_
    >>> bool(best > 0.9)
    True

    Without routing nothing but X and y reaches `score`; a list with the documents of each query,
    and one with their relevances, can be split as they are:

    >>> from sklearn.model_selection import cross_val_score
    >>> documents, relevance = np.split(X, 10), np.split(y, 10)
    >>> scores = cross_val_score(Ranker(loss="ndcg@3", random_state=0), documents, relevance)
    >>> bool(scores.mean() > 0.8)
    True
    """

    _saved = ("n_skipped_queries_",)
    _no_checkpoint = "which queries a stream leaves out is known at its end"
    _needed = ("n_features_in_", "n_skipped_queries_")

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "roc_area",
        solver: Any = "auto",
        rescaling: str = "margin",
        tol: float = 1e-3,
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
        self.solver = solver
        self.rescaling = rescaling
        self.tol = tol
        self.prior = prior
        self.nonnegative = nonnegative
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.stop = stop
        self.warm_start = warm_start
        self.random_state = random_state

    @property
    def _problem(self) -> Any:
        return ranking_problem(self.loss, self._columns)

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> Self:
        """Fit to documents X (n, d), dense or CSR, with relevances y.

        Parameters
        ----------
        X : array or sparse matrix (n, d), or a list of them
            A list has the documents of a query in each of its matrices.
        y : array (n,), or a list of arrays
            Relevances: numbers, larger is better.
        qid : array (n,) or "one", optional
            Query of each row; rows of a query need not be neighbours. "one" where all rows are one
            query; so they are without `qid`, too, with a warning.
        sample_weight : array (n,), optional
            Factors of C; rows of one query must agree. For lists one for each query.
        """
        check_parameters(self)
        ranking_problem(self.loss, 1)
        X, y, qid, sample_weight = joined_queries(X, y, qid, sample_weight)
        X, y = checked_data(self, X, y, y_numeric=True, ensure_min_samples=2)
        qid = query_of_rows(qid, X.shape[0])
        queries, weights = self._informative(X, y, qid, sample_weight)
        if not len(queries):
            raise ValueError(
                f"All {self.n_skipped_queries_} queries have documents of one relevance only "
                f"(for loss={self.loss!r}); there is nothing to learn."
            )
        if weights is not None:
            refuse_all_zero(weights)
        if is_streaming(self.solver):
            return self._fit_rows(queries, queries.truths, weights)
        return self._fit_problem(queries, queries.truths, weights)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further queries, which must be whole.

        Parameters
        ----------
        X, y : as in `fit`
        qid : array (n,) or "one", optional
            Query of each row. A number that an earlier call had is another query.
        sample_weight : array (n,), optional
            Factors of C; rows of one query must agree.
        """
        check_parameters(self)
        ranking_problem(self.loss, 1)
        X, y, qid, sample_weight = joined_queries(X, y, qid, sample_weight)
        is_first = self._run_so_far() is None
        before = 0 if is_first else self.n_skipped_queries_
        X, y = checked_data(self, X, y, y_numeric=True, reset=is_first)
        qid = query_of_rows(qid, X.shape[0])
        queries, weights = self._informative(X, y, qid, sample_weight)
        self.n_skipped_queries_ += before
        if len(queries):
            return self._partial_fit(queries, queries.truths, weights, None)
        if is_first:
            raise ValueError(
                "The queries of the first call all have documents of one relevance only; there is "
                "nothing to begin with."
            )
        return self

    def fit_stream(self, stream: Any, **options: Any) -> Self:
        """Learn from a stream of rows with a `qid`, a chunk at a time.

        Parameters
        ----------
        stream : Stream or path
            Rows of one query stand together; a query at the border of two chunks is put together
            again, and one that comes back later is refused. Queries whose documents have one
            relevance are left out.
        **options
            `passes`, `verify`, `max_seconds`, `on_progress` as in `SVMClassifier.fit_stream`;
            checkpoints cannot be taken.
        """
        ranking_problem(self.loss, 1)
        source = self._by_query(stream)
        super().fit_stream(source, **options)
        if isinstance(source, QueryStream):
            self.n_skipped_queries_ = source.n_skipped
        return self

    def verify(self, stream: Any) -> Certificate:
        """Prove the gap of the model: one pass over the data it was trained on.

        Parameters
        ----------
        stream : Stream or path
            The training data; other data is refused.
        """
        return super().verify(self._by_query(stream))

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores (n,): the larger, the higher in the list."""
        check_is_fitted(self)
        X = checked_inputs(self, X)
        scores: np.ndarray = safe_sparse_dot(X, self.coef_, dense_output=True)
        return scores

    def predict(self, X: Any) -> np.ndarray:
        """The scores, as `decision_function` gives them."""
        return self.decision_function(X)

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """Mean of 1 - loss over the queries that have documents to compare.

        Parameters
        ----------
        X, y, qid : as in `fit`
        sample_weight : array (n,), optional
            Weights of the mean; rows of one query must agree.
        """
        check_is_fitted(self)
        X, y, qid, sample_weight = joined_queries(X, y, qid, sample_weight)
        X, y = checked_data(self, X, y, y_numeric=True, reset=False)
        qid = query_of_rows(qid, X.shape[0])
        weights = checked_weights(sample_weight, X.shape[0])
        return 1.0 - self._mean_loss((X, qid), y, self.coef_, weights)

    # ------------------------------------------------------------ for the base class

    def _informative(
        self, X: Any, y: Any, qid: Any, sample_weight: Any
    ) -> tuple[Queries, np.ndarray | None]:
        """Queries with pairs, and their weights; the others are counted."""
        weights = checked_weights(sample_weight, X.shape[0])
        self._columns = X.shape[1]
        queries, order = group_rows(X, np.asarray(y, float), qid)
        per_query = weights_by_query(weights, queries, order)
        mask = self._problem.has_pairs(queries.relevance, queries.begin)
        self.n_skipped_queries_ = int(np.count_nonzero(~mask))
        return queries.chosen(mask), None if per_query is None else per_query[mask]

    def _by_query(self, source: Any) -> Stream:
        """The stream of rows as one of whole queries."""
        stream = as_stream(source)
        if isinstance(stream, ArrayStream) and isinstance(stream.X, Queries):
            return stream
        return QueryStream(stream, ranking_problem(self.loss, 1).has_pairs)

    def _declared(self) -> Schema:
        """What the arrays of a file must be."""
        return Schema(Array("coef_", "f8", ("n_features_in_",)))

    def _begin_stream(self, stream: Stream, classes: Any, is_whole: bool = True) -> None:
        if classes is not None:
            raise ValueError("classes=... is for classifiers.")

    def _nothing(self) -> tuple[Any, Any, Any]:
        return self._problem, [], []

    def _inputs(self, chunk: Chunk) -> Queries:
        """The queries of a chunk with as many columns as any chunk so far, finite."""
        queries = chunk.X
        rows = Chunk(queries.documents, row=0, source=chunk.source)
        if queries.rows is not None:
            rows = rows._replace(row=queries.rows.row, lines=queries.rows.lines)
        documents = Streaming._inputs(self, rows)
        return Queries(documents, queries.begin, queries.relevance)

    def _other_rows(self, X: Any) -> Any:
        return Streaming._other_rows(self, X)

    def _mean_loss(self, X: Any, y: Any, w: np.ndarray, weights: np.ndarray | None = None) -> float:
        """Mean loss over queries with pairs; X is `Queries`, (documents, qid), or documents."""
        if isinstance(X, Queries):
            X, y, qid = X.documents, X.relevance, X.query
        else:
            X, qid = X if isinstance(X, tuple) else (X, None)
        problem = ranking_problem(self.loss, w.size)
        scores = safe_sparse_dot(X, w, dense_output=True)
        queries, order = group_rows(scores, np.asarray(y, float), qid)
        mask = problem.has_pairs(queries.relevance, queries.begin)
        kept, factors = queries.chosen(mask), weights_by_query(weights, queries, order)
        if not len(kept):
            raise ValueError(
                f"All {len(queries)} queries have documents of one relevance only (for "
                f"loss={self.loss!r}); no loss can be measured."
            )
        quality = problem.quality(kept.relevance, kept.documents, kept.query)
        if factors is None:
            return float(1.0 - np.mean(quality))
        if not factors[mask].any():
            raise ValueError("All queries with documents to compare have the weight zero.")
        return float(1.0 - np.average(quality, weights=factors[mask]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def query_of_rows(qid: Any, n: int) -> Any:
    """The query of each of `n` rows, or None: all are one, which nobody may mean."""
    if isinstance(qid, str):
        if qid != "one":
            raise ValueError(f"qid is {qid!r}; the query of each row, or 'one', is needed.")
        return None
    if qid is None:
        warn_user(
            f"All {n:,} rows are one query. Give qid=..., the query of each row, or qid='one' if "
            "they are. In cross-validation switch on metadata routing of scikit-learn and ask for "
            "it, set_fit_request(qid=True) and set_score_request(qid=True), or give X and y as "
            "lists with a part for each query."
        )
    return qid


def is_list_of_queries(y: Any) -> bool:
    """Whether relevances come in a part for each query."""
    return isinstance(y, list | tuple) and len(y) > 0 and all(np.ndim(part) == 1 for part in y)


def joined_queries(X: Any, y: Any, qid: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
    """Rows, relevances, queries and weights; of lists with a part for each query their rows.

    Examples
    --------
    >>> X, y, qid, _ = joined_queries([np.eye(2), np.ones((1, 2))], [[1, 0], [1]], None, None)
    >>> X.shape, y.tolist(), qid.tolist()
    ((3, 2), [1, 0, 1], [0, 0, 1])
    """
    if not is_list_of_queries(y):
        return X, y, qid, sample_weight
    if qid is not None:
        raise ValueError("A list of queries needs no qid: each of its parts is a query.")
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} queries and y has {len(y)}.")
    X = [checked(documents, f"X[{q}]") for q, documents in enumerate(X)]
    for q, (documents, relevance) in enumerate(zip(X, y, strict=True)):
        if np.ndim(documents) != 2 and not sp.issparse(documents):
            raise ValueError(f"X[{q}] is no matrix: the documents of a query are rows.")
        if np.shape(documents)[0] != len(relevance):
            raise ValueError(
                f"Query {q} has {np.shape(documents)[0]} documents in X and {len(relevance)} "
                "relevances in y."
            )
    sizes = [len(relevance) for relevance in y]
    is_sparse = any(sp.issparse(documents) for documents in X)
    rows = sp.vstack(X, format="csr") if is_sparse else np.concatenate(X)
    weights = checked_weights(sample_weight, len(y))
    weights = None if weights is None else np.repeat(weights, sizes)
    return rows, np.concatenate(list(y)), np.repeat(np.arange(len(y)), sizes), weights


def weights_by_query(
    weights: np.ndarray | None, queries: Queries, order: np.ndarray | None
) -> np.ndarray | None:
    """Weights of rows as weights of queries; rows that disagree are named."""
    if weights is not None and order is not None:
        weights = weights[order]

    def name(row: int) -> str:
        return f"row {row if order is None else order[row]}"

    return query_weights(weights, queries, name)
