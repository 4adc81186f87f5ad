"""Masks of horses and poses of people.

    python -m benchmarks.shapes WHO    one contestant in a process of its own, as JSON

Horses: the order of the table, a permutation of `numpy.random.default_rng(0)`, the first 164 images
for training, 164 for test; masks on a grid whose longest side is 64, and at the size of the images.
"Each alone" has no neighbours. C and the features were chosen by two folds of the training images.

People: PARSE, images 1 to 100 for training, 205 for test. Kinds, turns and C were chosen on the
training images alone (50 against 50). PCP strict: both ends of a limb within half its length of the
true ones; loose: on the mean of both.

Seconds are processor time with reading and features; the peak is that of the process.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from widemargin import ImageSegmenter, PoseEstimator
from widemargin.annotations import read_annotations
from widemargin.datasets.files import candidates
from widemargin.estimators.images.bodies import PARSE, one_body
from widemargin.estimators.images.reading import located
from widemargin.images.pixels import grid_shape
from widemargin.images.resizing import resize
from widemargin.inputs.images import open_image
from widemargin.metrics import correct_keypoints, correct_parts, mask_iou, pixel_error

from .peaks import SINGLE, resident
from .timing import table

SIDE, N_HORSES, N_PEOPLE = 64, 164, 100
HORSES = {"cuts": 8, "each alone": 0}


def folder_of(name: str, file: str) -> Path:
    """Where a data set is."""
    for place in candidates(name, None):
        if (place / file).exists():
            return place
    raise FileNotFoundError(f"{name}/{file}")


def horses() -> tuple[list[str], list[np.ndarray]]:
    """Paths of the images in the order of the split, and their masks."""
    place = folder_of("weizmann_horses", "boxes.csv")
    with open(place / "boxes.csv", newline="") as file:
        names = [row["image"] for row in csv.DictReader(file)]
    order = np.random.default_rng(0).permutation(len(names))
    masks = [open_image(str(place / "figure_ground" / names[i])) for i in order]
    paths = [str(place / "gray" / names[i]) for i in order]
    return paths, [(m if m.ndim == 2 else m[:, :, 0]) > 127 for m in masks]


def shrunk(mask: np.ndarray) -> np.ndarray:
    """A mask on the grid."""
    return resize(np.uint8(255) * mask, *grid_shape(mask.shape, SIDE)) > 127


def segment(who: str) -> dict[str, Any]:
    """What masks are worth, and what they took."""
    paths, masks = horses()
    model = ImageSegmenter(size=SIDE, neighbours=HORSES[who], random_state=0)
    model.fit(paths[:3], masks[:3])  # compiles
    begin = time.process_time()
    model.fit(paths[:N_HORSES], masks[:N_HORSES])
    seconds, peak = time.process_time() - begin, resident("VmHWM")
    begin = time.process_time()
    found, true = model.predict(paths[N_HORSES:]), masks[N_HORSES:]
    took = (time.process_time() - begin) / len(found)
    small = [shrunk(m) for m in true], [shrunk(m) for m in found]
    return {
        "seconds": seconds,
        "peak": peak,
        "ms": 1e3 * took,
        "gap": model.certificate_.gap,
        "IoU at 64": 100 * mask_iou(*small).mean(),
        "error at 64": 100 * pixel_error(*small).mean(),
        "IoU": 100 * mask_iou(true, found).mean(),
        "error": 100 * pixel_error(true, found).mean(),
    }


def pose() -> dict[str, Any]:
    """What poses are worth, and what they took."""
    place = folder_of("parse_people", "labels.mat")
    records = located(read_annotations(place / "labels.mat", "parse").records, place)
    settings: dict[str, Any] = {"types": 5, "rotations": (-10, 10), "random_state": 0}
    PoseEstimator(max_passes=1, tol=1.0, **settings).fit(records[:5])  # compiles
    begin = time.process_time()
    model = PoseEstimator(**settings).fit(records[:N_PEOPLE])
    seconds, peak = time.process_time() - begin, resident("VmHWM")
    begin = time.process_time()
    found = model.predict(records[N_PEOPLE:])
    took = (time.process_time() - begin) / len(found)
    true = np.array([one_body(record, 14, record.path) for record in records[N_PEOPLE:]])
    return {
        "seconds": seconds,
        "peak": peak,
        "ms": 1e3 * took,
        "gap": model.certificate_.gap,
        "PCP strict": 100 * correct_parts(true, found, PARSE.limbs),
        "PCP loose": 100 * correct_parts(true, found, PARSE.limbs, strict=False),
        "PCK": 100 * correct_keypoints(true, found, 0.2),
    }


def in_child(who: str) -> dict[str, Any]:
    """One contestant in a process of its own."""
    code = [sys.executable, "-m", "benchmarks.shapes", who]
    home = Path(__file__).parent.parent
    environment = {**os.environ, **SINGLE}
    made = subprocess.run(code, env=environment, cwd=home, capture_output=True, text=True)
    if made.returncode:
        error = FileNotFoundError if "FileNotFoundError" in made.stderr else RuntimeError
        raise error(made.stderr.strip().splitlines()[-1])
    return json.loads(made.stdout.strip().splitlines()[-1])


def row(who: str, found: dict[str, Any]) -> list[str]:
    """A row of the table."""
    costs = [f"{found['seconds']:.0f}", f"{found['peak']:.0f}", f"{found['ms']:.1f}"]
    kept = list(found)[4:]
    return [who, *costs, f"{100 * found['gap']:.2f} %", *(f"{found[key]:.2f}" for key in kept)]


def run() -> str:
    """Both tables."""
    costs = ["", "trained in s", "peak MB", "ms an image", "gap"]
    masks = {who: in_child(who) for who in HORSES}
    names = list(masks["cuts"])[4:]
    text = table("Masks of horses", [*costs, *names], [row(*item) for item in masks.items()])
    people = in_child("pose")
    header = [*costs, *list(people)[4:]]
    return text + table("Poses of people", header, [row("parts on springs", people)])


if __name__ == "__main__":
    print(json.dumps(pose() if sys.argv[1] == "pose" else segment(sys.argv[1])))
