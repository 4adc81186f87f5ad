"""Rows in Parquet and Arrow files.

stream    `ArrowStream`
files     groups of rows in files
values    columns as arrays
writer    `write_arrow`
"""
