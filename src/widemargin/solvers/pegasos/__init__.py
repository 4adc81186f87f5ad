"""Pegasos, plain and averaged.

solver     `Pegasos` with kernels
_loops     its blocks of steps
_planes    on planes
"""
