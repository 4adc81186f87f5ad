"""What is in images, in files of others: all formats to one record and back.

records        the record of an image: boxes, labels, joints, masks; what is refused
segments       masks as polygons and run lengths
formats        reading and writing by the name of a format, what is lost on the way
voc, coco, yolo, imglab, box_csv, joints_mat, mask_folder    a format each
names          files of images
texts          numbers, XML and JSON of others
"""

from .formats import FORMATS, format_of, losses, read_annotations, write_annotations
from .records import Annotated, AnnotationError, Annotations
from .segments import Segment

__all__ = [
    "FORMATS",
    "Annotated",
    "AnnotationError",
    "Annotations",
    "Segment",
    "format_of",
    "losses",
    "read_annotations",
    "write_annotations",
]
