"""Numbers in bulk: matrices of users, compiled loops over rows, sums with bounds on their error.

matrices           what matrices of users must be, in every format of SciPy
magnitudes         how large numbers may be
rows               dense and CSR rows behind one accessor
sparse_rows        sparse rows in slots, and products of all pairs
coordinate_sums    compiled sums over coordinates
boxes              IoU, suppression and means of boxes in images
vectors            loops over vectors of four doubles, written in LLVM
random             generators of fits
rounding           numbers with bounds on their error, sums to twice the digits
"""
