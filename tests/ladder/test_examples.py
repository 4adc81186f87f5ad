"""The scripts of examples/ and the demo run, and what they show is true."""

from __future__ import annotations

import html.parser
import importlib.util
from pathlib import Path

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

EXAMPLES = Path(__file__).parents[2] / "examples"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def close_figures():
    """No figure outlives its test."""
    yield
    matplotlib.pyplot.close("all")


def example(name: str):
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_example(name: str, folder: Path) -> dict:
    """What main returns; every picture it wrote must be one."""
    result = example(name).main(["--output", str(folder)])
    pictures = sorted(folder.glob("*.png"))
    assert pictures
    for picture in pictures:
        assert picture.read_bytes().startswith(PNG)
    return result


def test_fit_real_function(tmp_path):
    module = example("fit_real_function")
    result = run_example("fit_real_function", tmp_path)
    last = result["last"]
    assert last.certificate.gap <= 1e-4
    # The objective, from its definition and a fine grid of outputs: 1/2 |w|^2 + 2 sum_i hinge_i.
    problem, w, grid = module.RealFunction(), last.w, np.linspace(-1, 1, 20001)
    hinges = 0.0
    for x, y in zip(module.X, module.Y, strict=True):
        z = w[:4] @ [1, x, x**2, x**3]
        augmented = np.abs(grid - y) + z * grid - 0.5 * w[4] * grid**2
        hinges += augmented.max() - problem.joint_feature(x, y) @ w
    assert 0.5 * w @ w + 2.0 * hinges == pytest.approx(last.certificate.primal, rel=1e-6)
    # The data are symmetric, so is the function; a cubic passes the outer points and goes below
    # zero in the middle, where it cannot follow the zigzag.
    fitted = np.array(result["fitted"])
    np.testing.assert_allclose(fitted, fitted[::-1], atol=1e-5)
    assert abs(fitted[0] - 0.5) < 0.05
    assert (fitted[1:4] < 0).all()


def test_graph_of_a_function(tmp_path):
    result = run_example("graph_of_a_function", tmp_path)
    assert result["model"].certificate_.gap <= 1e-3
    # The shortcomings that the page speaks of are there, and the best output has none of them.
    assert (result["intervals"] == 0).any()
    assert (result["intervals"] > 1).any()
    assert np.median(result["error"]) < 0.05


def test_why_bmrm(tmp_path):
    result = run_example("why_bmrm", tmp_path)
    plain, bmrm = result["plane"].values()
    for _path, upper, lower in (plain, bmrm, *result["line"].values()):
        best = np.minimum.accumulate(upper)
        assert (lower <= best * (1 + 1e-9)).all()
        assert (np.diff(lower) >= -1e-9 * best[-1]).all()  # more planes, higher bound
        assert best[-1] - lower[-1] <= result["tol"] * best[-1] * (1 + 1e-9)
    # Same objective, same optimum, another road.
    assert plain[1].min() == pytest.approx(bmrm[1].min(), rel=2 * result["tol"])
    assert len(bmrm[0]) < len(plain[0])
    assert path_length(bmrm[0]) < 0.25 * path_length(plain[0])


def path_length(path: np.ndarray) -> float:
    """Sum of the steps."""
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def test_own_problem(tmp_path):
    result = run_example("own_problem", tmp_path)
    for model in result["models"].values():
        assert model.certificate_.gap <= 1e-2
    assert result["accuracy"]["as a strip"] > result["accuracy"]["alone"] + 0.1
    # The rule, one or two more, was found: these transitions score higher than all others.
    problem = result["problem"]
    table = result["models"]["as a strip"].coef_[problem.split :].reshape(10, 10)
    digit = np.arange(10)
    allowed = np.zeros((10, 10), bool)
    allowed[digit, (digit + 1) % 10] = allowed[digit, (digit + 2) % 10] = True
    assert table[allowed].min() > table[~allowed].max()


def test_own_problem_checks_against_brute_force():
    from widemargin.problem import score

    module = example("own_problem")
    problem, rng = module.SmallStrips(4, 3), np.random.default_rng(1)
    for _ in range(30):
        x, w = rng.normal(size=(3, 4)), rng.normal(size=problem.n_features)
        y = tuple(int(k) for k in rng.integers(0, 3, 3))

        def augmented(other, x=x, y=y, w=w):
            dense = problem.joint_feature(x, other)
            return score((np.arange(dense.size), dense), w) + 0.7 * problem.loss(y, other)

        best = max(augmented(other) for other in problem.outputs(x))
        assert augmented(problem.decode(x, w, y, 0.7)) == pytest.approx(best)


class Links(html.parser.HTMLParser):
    """Collects what a page refers to."""

    def __init__(self):
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "srcset", "href")]


def test_demo(tmp_path, capsys):
    from widemargin.cli import demo

    path = demo.main(["--output", str(tmp_path)])
    said = capsys.readouterr().out
    assert "certificates overlap" in said
    assert "predictions identical" in said
    assert "\r" not in said  # a live line only on a terminal
    page = path.read_text(encoding="utf-8")
    links = Links()
    links.feed(page)
    assert len(links.addresses) == 8  # four pictures, light and dark
    assert all(address.startswith("data:image/png;base64,") for address in links.addresses)
    for name in demo.SOLVERS:
        assert name in page
    assert all(file.read_bytes().startswith(PNG) for file in tmp_path.glob("*.png"))


def test_live_line_rewrites_itself_on_a_terminal(capsys):
    from widemargin.cli.show.live import LiveLine
    from widemargin.run import Certificate, Progress
    from widemargin.run.history import History

    line = LiveLine("one_slack", pause=0.0)
    line.is_terminal = True
    progress = Progress(1, 0.5, 2.0, 20, 0, 3.0, 1.0, 2 / 3, True, np.zeros(1), History())
    assert line(progress) is False  # it never stops a fit
    history = History()
    history.append(seconds=1.0, passes=4.0)
    line.finish(history, Certificate(2.0, 1.9, 0.05))
    said = capsys.readouterr().out
    assert said.count("\r") == 2
    assert said.count("\n") == 1
    assert "66.667%" in said
    assert "5.000%" in said


def test_report_escapes_text(tmp_path):
    from widemargin.displays.pages.report import Report

    report = Report("a < b", "lead & more", tmp_path)
    report.text("<script>")
    report.table(["x<y"], [["1>0"]])
    report.tiles({"<i>": "&"})
    page = report.write().read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "<i>" not in page
    assert "a &lt; b" in page
