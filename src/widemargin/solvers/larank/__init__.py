"""LaRank and SOnline: kernel machines of several classes.

solver    `LaRank`, `SOnline`
_loops    their steps and the adaptive schedule
"""
