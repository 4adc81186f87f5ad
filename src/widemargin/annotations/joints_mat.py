"""PARSE: the joints of one person in every image, `ptsAll` (J, 2, n) of a MATLAB file.

Its pixels are numbered from 1 and a joint is the centre of one: 0.5 is taken away. Images are
im0001.jpg, im0002.jpg, ... beside it. The box of a person is the box around the joints.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..system.printable import path_words
from ..system.replacing import replacing
from .names import image_size
from .records import AnnotationError, Annotations, Objects, Reading
from .texts import total

HOLDS = {"size", "joints"}
NAME = "ptsAll"
#: PARSE has fourteen joints.
JOINTS = [
    *("right ankle", "right knee", "right hip", "left hip", "left knee", "left ankle"),
    *("right wrist", "right elbow", "right shoulder"),
    *("left shoulder", "left elbow", "left wrist", "neck", "head"),
]
LIMBS = [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (7, 8), (9, 10), (10, 11), (12, 13), (8, 12)]
LIMBS += [(9, 12), (2, 12), (3, 12)]


def read_parse(path, reading: Reading, images=None, **options) -> Annotations:
    """All images of a labels.mat; sizes are those of the images, where they are there."""
    from scipy.io import loadmat

    where = path_words(path)
    try:
        points = loadmat(path, variable_names=[NAME])[NAME]
    except KeyError:
        raise AnnotationError(f"{where}: there is no array {NAME}.") from None
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged file fails in any way inside of SciPy
        raise AnnotationError(f"{where}: not a MATLAB file that can be read.") from error
    if points.ndim != 3 or points.shape[1] != 2 or points.dtype.kind not in "fiu":
        raise AnnotationError(f"{where}: {NAME} has shape {points.shape}; (J, 2, n) is needed.")
    folder, records = Path(images or Path(path).parent), []
    for k in range(points.shape[2]):
        name = f"im{k + 1:04d}.jpg"
        size = image_size(folder / name) if (folder / name).is_file() else None
        objects = Objects(reading, f"{where}: {name}", name, size)
        joints = [
            [total(v, 0.5, -1) for v in row] for row in points[:, :, k].astype(float).tolist()
        ]
        add_person(objects, np.array(joints))
        records.append(objects.record())
    is_parse = points.shape[0] == len(JOINTS)
    return Annotations(
        records,
        joint_names=JOINTS if is_parse else [f"joint {k + 1}" for k in range(points.shape[0])],
        skeleton=LIMBS if is_parse else None,
    )


def add_person(objects: Objects, joints: np.ndarray) -> None:
    """The one person of an image."""
    if not np.isfinite(joints).all():
        objects.reading.refuse(f"{objects.where}: a joint is not a number.")
        return
    objects.add(box_around(joints), "", False, joints, np.full(len(joints), 2))


def box_around(joints: np.ndarray) -> list[float]:
    """The box around joints, half a pixel wider on each side."""
    return [*(joints.min(axis=0) - 0.5).tolist(), *(joints.max(axis=0) + 0.5).tolist()]


def write_parse(annotations: Annotations, path) -> None:
    """A labels.mat: exactly one person with all joints in every image."""
    from scipy.io import savemat

    columns = []
    for k, record in enumerate(annotations.records):
        where = path_words(record.path)
        if record.path != f"im{k + 1:04d}.jpg":
            raise AnnotationError(f"{where}: image {k + 1} must be called im{k + 1:04d}.jpg.")
        if len(record) != 1 or record.joints is None or np.isnan(record.joints).any():
            raise AnnotationError(f"{where}: one person with all joints is needed in every image.")
        rows = record.joints[0].tolist()
        columns.append([[total(value, 0.5) for value in row] for row in rows])
    if len({len(column) for column in columns}) > 1:
        raise AnnotationError("The images have different numbers of joints.")
    points = np.array(columns, float).transpose(1, 2, 0) if columns else np.empty((0, 2, 0))
    with replacing(path) as out:
        savemat(out, {NAME: points})
