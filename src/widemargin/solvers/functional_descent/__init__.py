"""Stochastic functional descent: proximal steps on samples, without a C.

solver             `FunctionalDescent`
schedules          how long its steps are: dampings, or a radius
damping            what follows for a sample, its tolerance and its step
choices            residuals, working sets, inner solvers
_working_set       which examples a step takes
_kernel            of kernel machines
_local_problems    the local problems of kernel machines, by dual coordinates
_local_cuts        the same by cuts
_tracks            the tracks of AutoDamping with kernels, and which goes on
_planes            on planes, in memory and on streams
_local_steps       a step on planes: a small SVM around the last weights
_revisits          later passes, which solve again for what an example has in the planes
"""
