"""Weights, labels and features into flat arrays, and back.

weights         weights of examples and classes: what they may be, in every way
flat_weights    `coef_`, `intercept_` and priors as flat weights
indicators      sets of labels
tag_inputs      features and labels of the tagger
explaining      why the tagger chose a label
"""
