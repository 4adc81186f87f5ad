"""Boxes in images: airplanes, faces, horses, against dlib's trainer in the same run.

    python -m benchmarks.images WHO SET SPLIT    one contestant in a process of its own, as JSON

Images in the order of the table, boxes with an edge below two pixels left out, a permutation of
`numpy.random.default_rng(SPLIT)`, the first 400 airplanes, 200 faces, 164 horses for training. One
default configuration for all sets, nothing is chosen on test images. dlib has C = 5, the best of 1,
5, 25 on the *test* airplanes of split 0, no upsampling, and is spared the boxes it refuses.

Seconds of training are processor time with the features, without decoding of files. The peak of
memory is that of a fit from paths (dlib: from arrays, there is no other way). AP as PASCAL VOC has
it since 2010; soft boxes are averages over windows, so theirs are not a grid's. Every test image is
searched down to scores which leave AP as it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from widemargin.annotations import read_annotations
from widemargin.arrays.boxes import iou, soft_box, suppress
from widemargin.datasets.files import candidates
from widemargin.images.levels import image_windows, window_boxes
from widemargin.inference.windows import scores_of
from widemargin.inputs.images import open_image
from widemargin.metrics import box_average_precision
from widemargin.metrics.boxes import OVERLAPS

from .peaks import SINGLE, resident
from .timing import table

#: Set -> folder, table, folder of images, images of training.
SETS = {
    "airplanes": ("caltech_airplanes", "boxes.csv", "images", 400),
    "faces": ("caltech_faces", "windows_derived.csv", "images", 200),
    "horses": ("weizmann_horses", "boxes.csv", "gray", 164),
}
HEADER = [
    *("", "trained in s", "peak MB", "ms an image", "AP50", "AP75", "AP"),
    *("IoU of the best box", "of them > .5"),
]
Example = tuple[str, np.ndarray]


def examples(name: str, split: int) -> tuple[list[Example], list[Example]]:
    """(path, box) of the images of training and of test."""
    folder, file, images, n = SETS[name]
    places = [place for place in candidates(folder, None) if (place / file).exists()]
    if not places:
        raise FileNotFoundError(f"{folder}/{file}")
    records = read_annotations(places[0] / file, format="csv").records
    rows = [
        (str(places[0] / images / record.path), record.boxes[0])
        for record in records
        if (record.boxes[0, 2:] - record.boxes[0, :2]).min() >= 2
    ]
    order = np.random.default_rng(split).permutation(len(rows))
    return [rows[i] for i in order[:n]], [rows[i] for i in order[n:]]


def localise(train: list[Example]) -> tuple[Callable, dict[str, Any]]:
    """Our localiser: ranked boxes of an image, and what its training took."""
    from widemargin import ObjectLocaliser

    paths, boxes = [path for path, _ in train], np.array([box for _, box in train])
    model = ObjectLocaliser(random_state=0)
    small = open_image(paths[0])
    ObjectLocaliser(max_passes=2, random_state=0).fit([small] * 11, boxes[[0] * 11])  # compile
    model.fit(paths, boxes)
    peak, images = resident("VmHWM"), [open_image(path) for path in paths]
    begin = time.process_time()
    model.fit(images, boxes)
    seconds = time.process_time() - begin

    def found(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = image_windows(pixels, model.grid_)
        boxes = window_boxes(x, model.grid_)
        scores = scores_of(x, model.grid_.arrays, model.coef_).astype(float)
        kept = suppress(boxes, scores, 0.4, top=10)
        return soft_box(boxes, scores, kept), scores[kept]

    about = {"gap": model.certificate_.gap, "sizes": len(model.sizes_)}
    return found, about | {"seconds": seconds, "peak": peak}


def detect(train: list[Example]) -> tuple[Callable, dict[str, Any]]:
    """Our detector: the boxes it finds, down to low scores."""
    from widemargin import ObjectDetector

    paths, boxes = [path for path, _ in train], [box[None, :] for _, box in train]
    model = ObjectDetector(random_state=0)
    small = open_image(paths[0])
    ObjectDetector(max_passes=2, random_state=0).fit([small] * 11, boxes[:1] * 11)  # compile
    model.fit(paths, boxes)
    peak, images = resident("VmHWM"), [open_image(path) for path in paths]
    begin = time.process_time()
    model.fit(images, boxes)
    seconds = time.process_time() - begin
    model.set_params(threshold=-1.0)

    def found(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return model.predict([pixels])[0][:2]

    about = {"gap": model.certificate_.gap, "sizes": len(model.sizes_)}
    return found, about | {"seconds": seconds, "peak": peak}


def dlib_detector(train: list[Example]) -> tuple[Callable, dict[str, Any]]:
    """dlib's trainer; boxes of other aspect ratios than its window's are left out."""
    import tempfile

    import dlib

    edges = np.array([box[2:] - box[:2] for _, box in train])
    ratio, mean = edges[:, 0] / edges[:, 1], edges[:, 0].mean() / edges[:, 1].mean()
    fits = np.minimum(ratio / mean, mean / ratio) > 0.6
    kept = [row for row, is_kept in zip(train, fits, strict=True) if is_kept]
    images = [colours(open_image(path)) for path, _ in kept]
    boxes = [[rectangle(dlib, box)] for _, box in kept]
    options = dlib.simple_object_detector_training_options()
    options.C, options.num_threads, options.upsample_limit = 5.0, 1, 0
    options.add_left_right_image_flips = False
    begin = time.process_time()
    trained = dlib.train_simple_object_detector(images, boxes, options)
    seconds = time.process_time() - begin
    peak = resident("VmHWM")
    with tempfile.TemporaryDirectory() as folder:  # what was trained has no `run`
        trained.save(f"{folder}/d.svm")
        detector = dlib.fhog_object_detector(f"{folder}/d.svm")

    def found(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rectangles, scores, _ = detector.run(pixels, 0, -1.5)
        corners = [(r.left(), r.top(), r.right() + 1, r.bottom() + 1) for r in rectangles]
        return np.array(corners, float).reshape(-1, 4), np.array(scores, float)

    return found, {"seconds": seconds, "peak": peak, "left_out": int((~fits).sum())}


def colours(pixels: np.ndarray) -> np.ndarray:
    """Grey images in three channels, as dlib takes them."""
    return pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, axis=2)


def rectangle(dlib, box: np.ndarray):
    """A box in whole pixels, both ends included."""
    left, top, right, bottom = (round(float(v)) for v in box)
    return dlib.rectangle(left, top, right - 1, bottom - 1)


WHO: dict[str, Callable] = {
    "ObjectLocaliser": localise,
    "ObjectDetector": detect,
    "dlib": dlib_detector,
}


def measure(who: str, name: str, split: int) -> dict[str, Any]:
    """In the child: training, and the quality of what is found in test images."""
    warnings.simplefilter("ignore")
    train, test = examples(name, split)
    search, about = WHO[who](train)
    images = [open_image(path) for path, _ in test]
    images = [colours(image) for image in images] if who == "dlib" else images
    found, seconds = [], []
    for _ in range(2):
        found.clear()
        begin = time.process_time()
        found += [search(image) for image in images]
        seconds.append(time.process_time() - begin)
    truth = [box[None, :] for _, box in test]
    overlaps = [
        iou(boxes[[scores.argmax()]], box)[0, 0] if len(boxes) else 0.0
        for (boxes, scores), box in zip(found, truth, strict=True)
    ]
    return about | {
        "ms": 1e3 * min(seconds) / len(test),
        "AP50": box_average_precision(truth, found, 0.5),
        "AP75": box_average_precision(truth, found, 0.75),
        "AP": box_average_precision(truth, found, OVERLAPS),
        "IoU": float(np.mean(overlaps)),
        "over half": float(np.mean(np.array(overlaps) > 0.5)),
    }


def in_child(who: str, name: str, split: int) -> dict[str, Any]:
    """`measure` in a process of its own."""
    code = [sys.executable, "-m", "benchmarks.images", who, name, str(split)]
    home = Path(__file__).parent.parent
    environment = {**os.environ, **SINGLE}
    made = subprocess.run(code, env=environment, cwd=home, capture_output=True, text=True)
    if made.returncode:
        error = ModuleNotFoundError if "ModuleNotFoundError" in made.stderr else RuntimeError
        error = FileNotFoundError if "FileNotFoundError" in made.stderr else error
        raise error(made.stderr.strip().splitlines()[-1])
    return json.loads(made.stdout)


def row(who: str, found: list[dict[str, Any]]) -> list[str]:
    """A row of the table: means over splits, of times and peaks the least."""
    mean = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    left_out = f", {found[0]['left_out']} left out" if found[0].get("left_out") else ""
    splits = "" if len(found) == 1 else f", {len(found)} splits"
    return [
        f"{who}{left_out}{splits}",
        f"{min(one['seconds'] for one in found):.1f}",
        f"{min(one['peak'] for one in found):.0f}",
        f"{min(one['ms'] for one in found):.2f}",
        *(f"{mean[key]:.3f}" for key in ("AP50", "AP75", "AP", "IoU")),
        f"{100 * mean['over half']:.1f} %",
    ]


def run(splits: int = 3) -> str:
    """All contestants on all sets."""
    text = ""
    for name in SETS:
        rows = []
        for who in WHO:
            few = 1 if who == "dlib" else splits
            try:
                rows.append(row(who, [in_child(who, name, split) for split in range(few)]))
            except ModuleNotFoundError as error:
                rows.append([f"{who}: {error}", *[""] * (len(HEADER) - 1)])
        text += table(f"Boxes: {name}", HEADER, rows)
    return text


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
