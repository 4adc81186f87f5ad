"""What estimators of images share.

reading    images one after another, those that are bad, what may be held in memory
masks      masks of users to labels of nodes, and back
bodies     joints to parts, mirrors and turns
base       an estimator whose inputs are images
boxes      the sizes that are looked for, the best boxes of an image
windowed   an estimator that looks for windows of known sizes
"""
