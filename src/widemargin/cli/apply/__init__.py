"""Models applied to data.

command    the commands that predict
scores     errors on data, by task
ranking    those of rankings
"""
