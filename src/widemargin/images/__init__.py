"""From pixels to windows: what compiled code makes of an image.

resizing    images with planar rows, halved or of any other size
fhog        31 numbers a cell from the directions of its gradients
"""
