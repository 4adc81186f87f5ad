"""Long random campaigns against the library: `make audit` or `python -m audits`.

A campaign is a module of this folder with

    NAME                  what it is called on the command line
    TARGET                how many trials are asked for in all
    trial(seed, folder)   one trial, a function of the seed and the sources alone; None when all is
                          well, else one line that says what is wrong. `folder` is scratch space
                          that lasts as long as the process that calls it

Signals, hangs and exceptions are findings too, so a trial catches only what it expects.
"""
