"""Are these the data that a model learnt from? Streams and the command line leave a fingerprint."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from ..run.streams import add_examples
from ..streams import ArrayStream
from ..streams.fingerprint import Fingerprint


def is_other_data(model: Any, X: Any, y: Any, weights: Any, qid: Any) -> bool:
    """Whether the fingerprint of the model is that of other data; False where it has none."""
    known = getattr(model, "fingerprint_", None)
    if known is None:
        return False
    reader = copy(model)
    reader._columns, reader._is_fixed = int(model.n_features_in_), True
    reader._may_grow = False
    found, way = Fingerprint(), reader._way()
    if weights is not None and np.ndim(weights) == 0:  # one for all
        weights = np.full(len(y), weights)
    try:
        stream: Any = ArrayStream(X, y, weight=weights, qid=qid)
        if hasattr(reader, "_by_query"):
            stream = reader._by_query(stream)
        for chunk in stream.chunks():
            add_examples(found, way.encode(chunk))
    except ValueError:  # not rows as a stream has them: the judge tells what is wrong
        return False
    return bool(known != found)
