"""An independent judge of certificates: `widemargin.audit`. It shares no code with what makes them.

judging                           `audit`, its verdict in words
rivals                            other weight vectors
models                            the objective that a fitted estimator was asked to minimise
identity                          whether data are those it learnt from
rows, chains, rankings, latent    objectives of rows, sequences, queries, hidden variables
problems, machines                objectives of the functions of a problem, of kernels
regulariser, hinges, sets         priors; hinges of classes and targets, of sets of labels
twofold                           arrays of twice the digits with bounds on their error, in plain
                                  NumPy
"""

from .judging import Audit, audit

__all__ = ["Audit", "audit"]
