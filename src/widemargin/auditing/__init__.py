"""An independent judge of certificates: `widemargin.audit`.

| file | content |
|---|---|
| `twofold.py` | arrays of twice the digits with bounds on their error |
| `regulariser.py`, `hinges.py`, `rows.py` | the objectives |
| `models.py` | from a fitted estimator and its data to its objective |
| `rivals.py`, `judging.py` | other weight vectors, the verdict in words |
"""

from .judging import Audit, audit

__all__ = ["Audit", "audit"]
