"""LaSVM: a kernel machine of two classes.

solver       `LaSVM`: pairs of extreme gradient, or single steps without a bias
_examples    its loops over examples
_loops       its loops over slots
_search      its choice of the next example among all
_state       the arrays it keeps
"""
