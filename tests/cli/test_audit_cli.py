"""`widemargin audit`: verdicts, exit codes, data as they were read in training."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from widemargin import load
from widemargin.cli.main import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two files of svmlight, and a model of one of them."""
    path, rng = tmp_path_factory.mktemp("audit"), np.random.default_rng(0)
    for name in ("one.svm", "two.svm"):
        y = rng.integers(0, 2, 30)
        X = rng.standard_normal((30, 3)) + y[:, None]
        lines = (
            f"{2 * t - 1} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()))
            for t, row in zip(y, X, strict=True)
        )
        (path / name).write_text("\n".join(lines) + "\n")
    assert main(["train", "classify", str(path / "one.svm"), "-o", str(path / "m"), "--quiet"]) == 0
    return path


def run(capsys, *words):
    capsys.readouterr()
    code = main(["audit", *map(str, words)])
    return code, capsys.readouterr().out


def test_a_true_certificate_is_confirmed(folder, capsys):
    code, out = run(capsys, folder / "m", folder / "one.svm")
    assert code == 0 and out.startswith("confirmed: ") and "measured: " in out
    code, out = run(capsys, folder / "m", folder / "one.svm", "--json")
    found = json.loads(out)
    assert code == 0 and found["verdict"] is True and found["scope"] == "data"
    assert found["dual"] <= found["others"][0][1] and found["objective"] <= found["primal"]


def test_a_wrong_certificate_is_refuted(folder, capsys):
    model = load(folder / "m")
    c = model.certificate_
    low = 0.9 * c.primal
    model.certificate_ = replace(c, primal=low, dual=low, gap=0.0)
    model.save(folder / "wrong")
    code, out = run(capsys, folder / "wrong", folder / "one.svm")
    assert code == 1 and out.startswith("REFUTED: ")


def test_other_data_are_not_judged(folder, capsys):
    code, out = run(capsys, folder / "m", folder / "two.svm")
    assert code == 1 and out.startswith("not judged: these are not the data")
