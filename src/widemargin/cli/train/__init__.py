"""The command `train`.

command       the command
options       what its options mean
planning      which solver and how many passes
learning      the fit
continuing    `train --continue`
images        `train locate` and `train detect`
making        versions and machine, for the notes of a model
"""
