"""The HTML report: charts, numbers, and how a browser shows it."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from widemargin import SVMClassifier, load
from widemargin.cli.main import main
from widemargin.displays.pages.charts import Series, chart, round_ticks
from widemargin.displays.pages.report import Report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
]
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models of a stream, of a batch and of a regression, each with its page."""
    home = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(600, 6)), 3)
    scores = X[:, :3] + 0.5 * rng.normal(size=(600, 3))
    names = np.array(["<b>ham</b>", "spam", "eggs&co"])
    for name, labels in (("words", names[scores.argmax(1)]), ("real", scores[:, 0])):
        lines = (
            " ".join([str(y), *(f"{j + 1}:{v:g}" for j, v in enumerate(x))])
            for x, y in zip(X, labels, strict=True)
        )
        (home / f"{name}.svm").write_text("\n".join(lines) + "\n")
    before = Path.cwd()
    os.chdir(home)
    try:
        for command in (
            "classify words.svm -o stream --solver streaming_dual --report",
            "classify words.svm -o batch --report batch.html --validation words.svm",
            "regress real.svm -o real --report --passes 1",
        ):
            assert main(["train", *command.split(), "--quiet"]) == 0
    finally:
        os.chdir(before)
    return home


PAGES = [("stream", "stream.html"), ("batch", "batch.html"), ("real", "real.html")]


def tiles(page: str) -> dict[str, float]:
    """The whole numbers behind the tiles."""
    found = re.findall(r'data-name="(\w+)" data-value="([^"]+)"', page)
    return {name: float(value) for name, value in found}


def browse(path: Path, home: Path, *flags: str) -> tuple[str, str]:
    """What Chromium makes of a page: (the document, its log)."""
    profile = f"--user-data-dir={home / 'profile'}"
    command = [str(CHROMIUM), *FLAGS, profile, *flags, "--dump-dom", f"file://{path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


# ---------------------------------------------------------------- the text of the page


@pytest.mark.parametrize(("name", "page"), PAGES)
def test_numbers_are_those_of_the_model(folder, name, page):
    model, numbers = load(folder / name), tiles((folder / page).read_text())
    certificate = model.certificate_
    assert numbers["gap"] == certificate.gap
    assert numbers["primal"] == certificate.primal
    assert numbers["dual"] == certificate.dual
    assert numbers["examples"] == 600
    assert numbers["seconds"] == model.history_.last("seconds")
    evaluation = model.training_["evaluation"]
    key = "mae" if name == "real" else "error"
    assert numbers[key] == evaluation[key]


def test_scopes_are_not_confused(folder):
    stream, real = ((folder / f"{name}.html").read_text() for name in ("stream", "real"))
    assert "gap over all data, proven" in stream and "proven over all data" in stream
    assert "gap over the kept examples only" in real
    assert "gap over all data, proven" not in real


@pytest.mark.parametrize(("name", "page"), PAGES)
def test_the_page_needs_nothing_else(folder, name, page):
    text = (folder / page).read_text()
    assert "<script" not in text and "http" not in text and "url(" not in text
    assert "<b>ham</b>" not in text
    for word in ("Convergence", "Model", "Data", "Versions", "fingerprint", "numpy", "tol"):
        assert word in text
    assert text.count("<svg") == (4 if name == "batch" else 7)


def test_the_command_writes_the_same_page(folder, tmp_path):
    assert main(["report", str(folder / "batch"), "-o", str(tmp_path / "r.html")]) == 0
    assert (tmp_path / "r.html").read_text() == (folder / "batch.html").read_text()


def test_many_classes_show_the_most_frequent_confusions(tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = [f"{k % 30} {k % 30 + 1}:1 31:{rng.normal():.3f}" for k in range(300)]
    (tmp_path / "d.svm").write_text("\n".join(lines) + "\n")
    model, data = str(tmp_path / "m"), str(tmp_path / "d.svm")
    assert main(["train", "classify", data, "-o", model, "--C", "1e-4", "--report"]) == 0
    assert "The most frequent confusions" in (tmp_path / "m.html").read_text()
    assert main(["evaluate", model, data]) == 0
    assert "most frequent confusions" in capsys.readouterr().out


def test_words_of_the_page(folder, tmp_path):
    page = (folder / "real.html").read_text()
    assert "<b>1</b><span>pass</span>" in page and "600</b><span>examples</span>" in page
    assert "<code>widemargin verify</code>" in page and "`" not in page


def test_text_columns_and_templates_are_readable(tmp_path):
    text = "".join(f"w t{k % 3}\n\n" for k in range(9))  # which cannot be learnt
    (tmp_path / "d.txt").write_text(text)
    command = ["train", "tag", str(tmp_path / "d.txt"), "-o", str(tmp_path / "m")]
    assert main([*command, "--report", "--quiet"]) == 0
    page = (tmp_path / "m.html").read_text()
    assert "<pre>U" in page and "%x[0,0]\nU" in page
    assert '<table class="pairs"><thead><tr><th>true</th><th>predicted</th>' in page


def test_a_model_of_python_has_a_page(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 2))
    SVMClassifier(random_state=0).fit(X, X[:, 0] > 0).save(tmp_path / "m")
    assert main(["report", str(tmp_path / "m"), "-o", str(tmp_path / "r.html")]) == 0
    assert "not noted" in (tmp_path / "r.html").read_text()


# ---------------------------------------------------------------- charts


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0, 1e-6), (99.99, 100.0), (-5, 3e9), (0.1, 0.7)]
)
def test_ticks_are_few_and_inside(low, high):
    ticks = round_ticks(low, high)
    assert 2 <= len(ticks) <= 7
    assert all(low - 1e-9 * high <= tick <= high * (1 + 1e-9) for tick in ticks)


@pytest.mark.parametrize(
    "y",
    [[1.0, 2.0, 3.0], [5.0, 5.0, 5.0], [0.0, 0.0, 0.0], [np.nan, 1.0, np.inf], [-1.0, 0.0, 1e12]],
)
@pytest.mark.parametrize("is_log", [False, True])
def test_charts_of_odd_numbers(y, is_log):
    text = chart([Series("a<b", np.arange(3.0), np.array(y))], "x", "y", is_log=is_log)
    assert "nan" not in text and "inf" not in text and "a<b" not in text
    for number in re.findall(r' (?:cx|cy|x|y)="([^"]+)"', text):
        assert -20 <= float(number) <= 450


def test_a_line_that_leaves_the_chart_is_cut_where_it_leaves():
    y = np.array([0.5, 3.0, 3.0, 0.5, 0.5])
    svg = chart([Series("a", np.arange(5.0), y)], "x", "y", limits=(0.0, 1.0))
    (path,) = re.findall(r'<path class="c0 line" d="M([^"]*)"', svg)
    parts = [[tuple(map(float, point.split())) for point in part.split("L")]
             for part in path.split("M")]  # fmt: skip
    top = min(height for part in parts for _, height in part)
    assert [len(part) for part in parts] == [2, 3]  # up and out; back, and along
    assert top == 12.0 and parts[0][1][1] == parts[1][0][1] == top
    # the chart ends at 1.05: 0.22 of the way to the second point, and as much before the fourth
    width = parts[1][2][0] - parts[1][1][0]
    assert parts[0][1][0] - parts[0][0][0] == pytest.approx(0.22 * width, abs=0.2)
    assert parts[1][1][0] - parts[1][0][0] == pytest.approx(0.22 * width, abs=0.2)


def test_nothing_to_draw():
    assert "Nothing was recorded" in chart([Series("a", np.empty(0), np.empty(0))], "x", "y")


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    report = Report("Title", "Lead.")
    with pytest.raises(OSError):
        report.write(tmp_path / "absent" / "r.html")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- in a browser


@needs_browser
@pytest.mark.parametrize(("name", "page"), PAGES)
def test_a_browser_shows_the_numbers_of_the_model(folder, tmp_path, name, page):
    document, log = browse(folder / page, tmp_path)
    assert "CONSOLE" not in log
    assert tiles(document) == tiles((folder / page).read_text())
    shown = re.findall(r"<b>([^<]+)</b><span>objective over", document)
    assert shown == [f"{load(folder / name).certificate_.primal:.6g}"]
    assert document.count("</svg>") == (4 if name == "batch" else 7)


@needs_browser
@pytest.mark.parametrize("width", [320, 390, 1200])
def test_the_page_does_not_scroll_sideways(folder, tmp_path, width):
    page = html.escape((folder / "stream.html").read_text())
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe id="f" width="{width}" height="3000" style="border:0" srcdoc="{page}"></iframe>'
        "<script>f.onload = () => { const root = f.contentDocument.documentElement;"
        "document.body.dataset.width = root.scrollWidth; }</script>"
    )
    document, log = browse(frame, tmp_path, "--window-size=1300,3000")
    assert "CONSOLE" not in log
    assert re.findall(r'data-width="(\d+)"', document) == [str(width)]


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshots_have_the_colours_of_the_scheme(folder, tmp_path, scheme):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    picture = tmp_path / "page.png"
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    browse(folder / "stream.html", tmp_path, f"--screenshot={picture}", *dark)
    pixels = pyplot.imread(picture)[..., :3]
    assert (pixels[5, 5].mean() > 0.9) == (scheme == "light")
    assert pixels.std() > 0.05  # something is drawn
