"""Models applied to data.

command    the commands that predict
scores     errors on data, by task
ranking    those of rankings
images     boxes in images: found, and how good they are
shapes     masks and poses
drawing    pictures of them as files
"""
