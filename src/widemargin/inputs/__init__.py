"""Kinds of inputs that are more than one row of a matrix.

examples     what a set of inputs is: taken from, joined, counted in bytes
saved        inputs and truths as arrays in files
hashing      hashes of inputs and truths
sequences    sequences of positions in one matrix, and the vocabulary that numbers their features
queries      rows as queries: `Query`, and `Queries`, which never splits one
regions      images given by the numbers of their pixels or regions
boxes        boxes of objects as users give them
images       files, Pillow's images and arrays as arrays of uint8
"""
