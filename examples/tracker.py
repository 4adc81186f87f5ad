"""Learn to track: which point of the next frame is which?

Generated points of different sizes move about; some leave, others appear. A frame pair is an
assignment problem: rows are the points of one frame, columns those of the next, and a row may stay
unmatched. How much distance, a change of size and a turn of the motion count against each other is
not set by hand but learnt from pairs with known assignments.

    python examples/tracker.py --output pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot

from widemargin import StructuredSVM
from widemargin.problems import Matching

NAMES = ("distance", "distance from where it was heading", "change of size", "constant")


def frame_pair(rng, n_points: int = 8):
    """Pair features (m, n, 4), the assignment, and the two sets of places."""
    place = rng.uniform(0, 1, (n_points, 2))
    motion = 0.12 * rng.standard_normal((n_points, 2))
    size = rng.uniform(0.5, 2.0, n_points)
    stays = np.flatnonzero(rng.random(n_points) < 0.85)
    born = rng.integers(0, 3)
    moved = (place + motion + 0.03 * rng.standard_normal((n_points, 2)))[stays]
    after = np.vstack([moved, rng.uniform(0, 1, (born, 2))])
    sizes = np.append(
        size[stays] * np.exp(0.1 * rng.standard_normal(len(stays))), rng.uniform(0.5, 2.0, born)
    )
    order = rng.permutation(len(after))
    after, sizes = after[order], sizes[order]
    y = np.full(n_points, -1)
    y[stays] = np.argsort(order)[: len(stays)]
    x = np.stack(
        [
            np.linalg.norm(place[:, None] - after, axis=2),
            np.linalg.norm((place + motion)[:, None] - after, axis=2),
            np.abs(np.log(size[:, None] / sizes)),
            np.ones((n_points, len(after))),
        ],
        axis=2,
    )
    return x, y, place, after


def main(arguments: list[str] | None = None) -> dict:
    """Train on 60 pairs, test on 200, draw one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default=".", help="folder for the picture")
    folder = Path(parser.parse_args(arguments).output)

    rng = np.random.default_rng(0)
    train, test = ([frame_pair(rng) for _ in range(n)] for n in (60, 200))
    problem = Matching(4, allow_unmatched=True)
    model = StructuredSVM(problem, C=1.0, random_state=0)
    model.fit([pair[0] for pair in train], [pair[1] for pair in train])

    nearest = np.array([-1.0, 0.0, 0.0, 0.25])  # distance alone, unmatched beyond a quarter
    wrong = {"learnt": 0.0, "distance alone": 0.0}
    for x, y, *_ in test:
        wrong["learnt"] += problem.loss(y, problem.decode(x, model.coef_))
        wrong["distance alone"] += problem.loss(y, problem.decode(x, nearest))
    total = sum(len(y) for _, y, *_ in test)
    error = {name: count / total for name, count in wrong.items()}
    print(model.certificate_)
    for name, weight in zip(NAMES, model.coef_, strict=True):
        print(f"{name:35s}{weight:8.2f}")
    for name, share in error.items():
        print(f"wrong with {name:20s}{share:8.1%}")

    x, y, place, after = test[0]
    found = model.predict([x])[0]
    figure, axes = pyplot.subplots(figsize=(5, 5), layout="constrained")
    axes.scatter(*place.T, color="#0072B2", label="this frame")
    axes.scatter(*after.T, color="#D55E00", marker="s", label="next frame")
    for i, j in enumerate(found):
        if j >= 0:
            colour = "#009E73" if j == y[i] else "#CC79A7"
            axes.annotate("", after[j], place[i], arrowprops={"arrowstyle": "->", "color": colour})
    axes.legend()
    axes.set_title("learnt assignment")
    figure.savefig(folder / "tracker.png", dpi=100)
    return {"model": model, "error": error}


if __name__ == "__main__":
    main()
