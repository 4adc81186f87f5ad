"""Data from files, as the commands read it.

rows         rows
sequences    sequences
images       annotated images
"""
