"""Every array that is written is declared, and what is not as declared is refused by its name."""

import warnings

import numpy as np
import pytest

from widemargin import SVMClassifier, SVMRegressor
from widemargin.checkpoint import Checkpoint
from widemargin.solvers import NORMA, SVMD, FunctionalDescent, Pegasos

RNG = np.random.default_rng(0)
N, D = 90, 3
X = RNG.standard_normal((N, D))
TWO = (X[:, 0] + 0.3 * RNG.standard_normal(N) > 0).astype(int)
THREE = X.argmax(axis=1)
REAL = X @ np.arange(1.0, D + 1)
RBF = {"kernel": "rbf", "gamma": 0.5, "random_state": 0}

#: What is learnt from a stream, by name: an estimator and its targets.
STREAMS = {
    "rows": (SVMClassifier(random_state=0), TWO),
    "targets": (SVMRegressor(random_state=0), REAL),
    "classes": (SVMClassifier(random_state=0), THREE),
    "out_of_core": (SVMClassifier(solver="out_of_core", random_state=0), TWO),
    "out_of_core_classes": (SVMClassifier(solver="out_of_core", random_state=0), THREE),
    "linear_descent": (SVMClassifier(solver="functional_descent", random_state=0), TWO),
    "linear_pegasos": (SVMClassifier(solver=Pegasos(regularisation=0.01), random_state=0), TWO),
    "lasvm": (SVMClassifier(solver="lasvm", **RBF), TWO),
    "larank": (SVMClassifier(solver="larank", **RBF), THREE),
    "svmd": (SVMClassifier(solver=SVMD(buffer=20, budget="merge"), **RBF), TWO),
    "norma": (SVMClassifier(solver=NORMA(), **RBF), THREE),
    "pegasos": (SVMClassifier(solver=Pegasos(regularisation=0.01), **RBF), THREE),
    "descent": (
        SVMClassifier(solver=FunctionalDescent(buffer=20, working_set="uniform"), **RBF),
        THREE,
    ),
    "one_slack": (SVMClassifier(solver="one_slack", **RBF), TWO),
}


def chunks(y):
    """Three chunks that can be read again and again."""
    return lambda: ((X[k : k + 30], y[k : k + 30]) for k in range(0, N, 30))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Of each learner what its first checkpoints hold: (schema, arrays)."""
    found = {}
    save = Checkpoint.save

    def keep(name):
        def kept(self, position):
            learner = self.run.learner
            arrays = {n: np.array(a) for n, a in learner.arrays().items()}
            found.setdefault(name, []).append((learner.schema(), arrays))
            save(self, position)

        return kept

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (model, y) in STREAMS.items():
            patch.setattr(Checkpoint, "save", keep(name))
            folder = tmp_path_factory.mktemp(name) / "run"
            stream = tmp_path_factory.mktemp(name) / "data"
            stream.mkdir()
            for k in range(3):
                rows = slice(30 * k, 30 * k + 30)
                lines = [
                    f"{y[i]} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(X[i].tolist()))
                    for i in range(N)[rows]
                ]
                (stream / f"{k}.svm").write_text("\n".join(lines) + "\n")
            files = sorted(map(str, stream.iterdir()))
            model.fit_stream(files, passes=2, checkpoint=folder, checkpoint_seconds=0)
    return found
