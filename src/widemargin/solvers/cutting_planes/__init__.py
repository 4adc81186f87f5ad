"""Cutting planes in the dual.

one_slack     `OneSlack`: a cut is the sum of planes of all examples
n_slack       `NSlack`: cuts of each example
sampled       `SampledCuts`: one-slack cuts of random samples
_kernel       one-slack cuts with kernels, of all examples or of samples
simplex_qp    the quadratic program over the simplex
"""
