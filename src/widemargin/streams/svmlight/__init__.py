"""Rows in the svmlight format.

stream        `SvmlightStream`
parser        the compiled parser
decimals      numbers read exactly
complaints    what is wrong with a line, in words
writer        `write_svmlight`
"""
