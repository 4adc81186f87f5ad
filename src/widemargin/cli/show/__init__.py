"""What the commands tell.

speaking    what goes to stdout and stderr
words       numbers in words
live        a running fit on a terminal
page        the report page
image_page  its pictures of models of images
story       what it tells, of a model or of an unfinished run
"""
