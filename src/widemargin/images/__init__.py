"""From pixels to windows and graphs: what compiled code makes of an image.

graphs      nodes with numbers, edges with contrasts
pixels      the graph of a picture: colours, gradients around, positions
parts       pictures as cells that parts of bodies are looked for in
resizing    images with planar rows, halved or of any other size
fhog        31 numbers a cell from the directions of its gradients
grids       templates, and the sizes of boxes that they are looked for in
levels      the features of an image at every size of boxes, and where windows lie
store       features of many images, in memory or in a file
"""
