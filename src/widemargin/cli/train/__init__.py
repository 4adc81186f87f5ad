"""The command `train`.

command       the command
options       what its options mean
planning      which solver and how many passes
learning      the fit
continuing    `train --continue`
"""
