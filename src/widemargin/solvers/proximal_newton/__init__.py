"""Newton steps for rows with few features.

solver    `ProximalNewton`
_loops    its passes over the examples
"""
