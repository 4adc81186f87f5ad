"""Sequences in files of text.

columns       CoNLL column files
templates     which cells around a token make its features
crfsuite      the format of CRFsuite
svm_hmm       the format of SVM^hmm
files         what these share: blocks that end with a sequence
spans         compiled splitting of lines, numbering of equal words
attributes    numbers behind names
"""
