"""What stands between the library and the machine it runs on.

platform         all that differs between operating systems: locks, signals, processes, files at
                 work
locking          one run at a time in a folder
replacing        files written whole or not at all
sources          which sources compiled code depends on
printable        labels and names without what a terminal obeys
sentences        error texts that know which parameters they mention
user_warnings    warnings that point at the line of the caller
"""
