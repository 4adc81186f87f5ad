"""What estimators do between checked data and fitted attributes.

fitting        batch fits, `pick_solver` included
streaming      `fit_stream` and `verify`
resuming       `partial_fit`, and a run that goes on
chunks         what the examples of a stream must be
kernel         what takes over where there is a kernel
lasting        what a model keeps to go on from, and whether it can
undoing        a call that is refused leaves an estimator as it was
driving        what the command line asks besides public methods
convergence    the warning of a fit that ends above `tol`
"""
