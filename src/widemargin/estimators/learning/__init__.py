"""What estimators do between checked data and fitted attributes.

fitting        batch fits, `pick_solver` included
linear         the way to weights: solver, run, encode, settle, scores, proof, arrays
kernel         the way to a kernel machine, with the same members
streaming      `fit_stream` and `verify`, in the way that an estimator has
resuming       `partial_fit`, and a run that goes on
kernel_model   what estimators with a `kernel` share
chunks         what the examples of a stream must be
shuffled       rows in memory as a stream in random order
machines       kernel machines in files, kernel values that were given
lasting        what a model keeps to go on from, and whether it can
undoing        a call that is refused leaves an estimator as it was
driving        what the command line asks besides public methods
convergence    the warning of a fit that ends above `tol`
"""
