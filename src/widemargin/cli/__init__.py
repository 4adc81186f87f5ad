"""Programs to run: the command `widemargin`, and `python -m widemargin.cli.demo`.

main                               the commands, and what went wrong
arguments                          their options
errors                             errors in words of the command line
train/                             `train`: what its options mean, which solver and how many
                                   passes, the fit
apply/                             `predict` and `evaluate`: predictions, errors on data by task
info/                              `info`: what a model file holds
reading/                           rows and sequences from files
show/                              a running fit on a terminal, the report page, numbers in words
audit, convert, reproduce, demo    the other commands
"""
