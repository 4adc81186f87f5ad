"""The most violated output of an example, by dynamic programs and searches.

viterbi        labels of a sequence
legal_steps    which label may follow which
forests        labels on the nodes of a forest; Chow-Liu trees
rankings       the most violated ranking, by loss
"""
