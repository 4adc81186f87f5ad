"""The command `info`.

command    the command
tags       what is told of a tagger
"""
