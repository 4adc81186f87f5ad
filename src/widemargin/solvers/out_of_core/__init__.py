"""Exact training over blocks on disk.

solver         `OutOfCore`: two files of dual variables, written in turns, make a killed run
               resumable
disk_file      reads and writes at given places
_blocks        packed rows in a file
_dual_store    dual variables beside the blocks, safe from crashes
_kept_rows     rows that stay in memory
_bounds        what is known of the optimum, when to measure, and the account of passes
_loops         passes over rows in memory
"""
