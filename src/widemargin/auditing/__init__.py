"""An independent judge of certificates: `widemargin.audit`.

| file | content |
|---|---|
| `twofold.py` | arrays of twice the digits with bounds on their error |
| `regulariser.py` | priors |
| `hinges.py`, `sets.py`, `rows.py` | objectives of rows: classes, targets, sets of labels |
| `chains.py`, `rankings.py` | of sequences and of queries |
| `problems.py`, `latent.py`, `machines.py` | of functions, of hidden variables, of kernels |
| `models.py`, `identity.py` | from a fitted estimator and its data to its objective |
| `rivals.py`, `judging.py` | other weight vectors, the verdict in words |
"""

from .judging import Audit, audit

__all__ = ["Audit", "audit"]
