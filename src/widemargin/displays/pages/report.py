"""One self-contained HTML page: text, tables, charts and pictures; any screen, light and dark."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ...system.replacing import replacing
from ..plots import import_pyplot
from .charts import CHART_STYLE

#: Colours of text and lines, and of the paper, in pictures for light and for dark pages.
THEMES = {"light": ("#1f2328", "white"), "dark": ("#d7dce2", "none")}

STYLE = """
:root { color-scheme: light dark; --paper: #fbfbfa; --card: #ffffff; --ink: #1f2328;
  --quiet: #5b636d; --line: #e3e5e8; --accent: #0072b2;
  --c0: #0072b2; --c1: #d55e00; --c2: #00825f; --c3: #9b4f88; --c4: #a07400; --c5: #5a5f66;
  --c6: #2f9fd6; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --card: #1b1f24; --ink: #d7dce2;
  --quiet: #98a1ab; --line: #2c3239; --accent: #56b4e9;
  --c0: #56b4e9; --c1: #f0883e; --c2: #3fc79a; --c3: #d79ac6; --c4: #e0b23c; --c5: #a3abb5;
  --c6: #8fd3f7; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
p { margin: .5rem 0; max-width: 46rem; }
.quiet, figcaption { color: var(--quiet); font-size: .9rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem;
  margin: 1.25rem 0; }
.tile, figure, .table { background: var(--card); border: 1px solid var(--line);
  border-radius: .6rem; }
.tile { padding: .7rem .9rem; }
.tile b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.tile span { color: var(--quiet); font-size: .85rem; }
figure { margin: 1rem 0; padding: .75rem; }
.scroll { overflow-x: auto; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
@media (max-width: 45rem) { figure img { max-width: none; width: 42rem; } }
figcaption { margin-top: .5rem; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .65rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.pairs th:nth-child(2), .pairs td:nth-child(2) { text-align: left; }
th { color: var(--quiet); font-weight: 600; font-size: .85rem; white-space: normal;
  vertical-align: bottom; }
@media (max-width: 30rem) { th, td { padding: .4rem .4rem; font-size: .88rem; } }
tbody tr { border-top: 1px solid var(--line); }
code, pre { font: .88rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.wide td:last-child { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.wide td:first-child { color: var(--quiet); }
.wide td:first-child { vertical-align: top; }
.wide pre { margin: 0; padding: 0; border: 0; white-space: pre-wrap; }
.claims td { text-align: left; white-space: normal; vertical-align: top; }
.claims th { text-align: left; }
.claims td:nth-child(1) { width: 34%; } .claims td:nth-child(4) { width: 26%; }
.claims b { border-left: .3rem solid var(--quiet); padding-left: .4rem; font-weight: 600; }
.claims b.good { border-color: var(--c2); } .claims b.bad { border-color: var(--c1); }
.claims b.part { border-color: var(--c4); }
@media (max-width: 45rem) {
  .claims thead { display: none; } .claims tr, .claims td { display: block; }
  .claims td { padding: .15rem .7rem; width: auto !important; font-size: .95rem; }
  .claims td:first-child { padding-top: .6rem; font-weight: 600; }
  .claims td:last-child { padding-bottom: .6rem; }
  .claims td[data-label]::before { content: attr(data-label) ": "; color: var(--quiet); } }
nav ul { margin: .5rem 0; padding-left: 1.2rem; } nav a { color: var(--accent); }
h3 { font-size: 1rem; margin: 1.5rem 0 .3rem; }
td.share { background: color-mix(in srgb, var(--accent) calc(var(--share) * 55%), transparent); }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .8rem 1rem; overflow-x: auto; }
"""


class Report:
    """A page that grows from top to bottom.

    Parameters
    ----------
    title, lead : str
    folder : Path, optional
        Where the page and its pictures go.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> report = Report("Digits", "A small task.", folder)
    >>> report.text("Five solvers agree.")
    >>> report.write().name
    'report.html'
    """

    def __init__(self, title: str, lead: str, folder: Path | None = None):
        self.title, self.folder = title, folder or Path()
        self.parts = [f"<h1>{escape(title)}</h1>", f"<p>{marked(lead)}</p>"]

    def section(self, title: str, name: str = "") -> None:
        """Begin a section; `name` is what `contents` refers to it by."""
        anchor = f' id="{escape(name)}"' if name else ""
        self.parts.append(f"<h2{anchor}>{escape(title)}</h2>")

    def heading(self, title: str) -> None:
        """Begin a part of a section."""
        self.parts.append(f"<h3>{escape(title)}</h3>")

    def contents(self, links: dict[str, str]) -> None:
        """Links to sections: name -> text."""
        items = (
            f'<li><a href="#{escape(name)}">{escape(text)}</a></li>' for name, text in links.items()
        )
        self.parts.append(f"<nav><ul>{''.join(items)}</ul></nav>")

    def text(self, *paragraphs: str) -> None:
        """Add paragraphs; what stands in backquotes is code."""
        self.parts += [f"<p>{marked(paragraph)}</p>" for paragraph in paragraphs]

    def code(self, text: str) -> None:
        """Add source code."""
        self.parts.append(f"<pre>{escape(text)}</pre>")

    def tiles(self, numbers: dict[str, str], exact: dict[str, tuple[str, float]] | None = None):
        """Add large numbers: label -> text; `exact`: label -> (name, the whole number)."""
        known = exact or {}
        data = {
            label: f' data-name="{escape(name)}" data-value="{number!r}"'
            for label, (name, number) in known.items()
        }
        tiles = (
            f'<div class="tile"{data.get(label, "")}><b>{escape(value)}</b>'
            f"<span>{escape(label)}</span></div>"
            for label, value in numbers.items()
        )
        self.parts.append(f'<div class="tiles">{"".join(tiles)}</div>')

    def table(
        self, head: Sequence[str], rows: Sequence[Sequence[str]], has_pairs: bool = False
    ) -> None:
        """Add a table of texts; it scrolls sideways on a narrow screen.

        The first column stands to the left, with `has_pairs` the second one as well.
        """
        top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        kind = ' class="pairs"' if has_pairs else ""
        table = f"<table{kind}><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
        self.parts.append(f'<div class="table">{table}</div>')

    def claims(self, head: Sequence[str], rows: Sequence[Sequence[str]], kinds: Sequence[str]):
        """Add a table of sentences, the last one of kind "good", "part", "bad" or "".

        On a narrow screen each row becomes a paragraph.
        """
        top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        lines = []
        for row, kind in zip(rows, kinds, strict=True):
            cells = [f"<td>{escape(row[0])}</td>"]
            cells += [
                f'<td data-label="{escape(name)}">{escape(cell)}</td>'
                for name, cell in zip(head[1:-1], row[1:-1], strict=True)
            ]
            cells.append(f'<td><b class="{kind}">{escape(row[-1])}</b></td>')
            lines.append(f"<tr>{''.join(cells)}</tr>")
        body = f"<thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody>"
        self.parts.append(f'<div class="table"><table class="claims">{body}</table></div>')

    def facts(self, facts: dict[str, Any]) -> None:
        """Add a table of names and texts, without a head; long texts are wrapped, lines kept."""
        body = "".join(
            f"<tr><td>{escape(name)}</td><td>{lines_of(str(text))}</td></tr>"
            for name, text in facts.items()
        )
        table = f'<table class="wide"><tbody>{body}</tbody></table>'
        self.parts.append(f'<div class="table">{table}</div>')

    def counts(self, labels: Sequence[str], table: Sequence[Sequence[int]]) -> None:
        """Add a table of true (down) and predicted (across) classes, shaded by shares of rows."""
        top = "".join(f"<th>{escape(label)}</th>" for label in labels)
        rows = []
        for label, row in zip(labels, table, strict=True):
            total = max(1, sum(row))
            cells = (
                f'<td class="share" style="--share:{count / total:.4f}">{count:,}</td>'
                for count in row
            )
            rows.append(f"<tr><th>{escape(label)}</th>{''.join(cells)}</tr>")
        table_text = f"<thead><tr><th></th>{top}</tr></thead><tbody>{''.join(rows)}</tbody>"
        self.parts.append(f'<div class="table"><table>{table_text}</table></div>')

    def charts(self, *charts: str) -> None:
        """Add charts of `charts.py`, side by side where there is room."""
        self.parts.append(f'<div class="charts">{"".join(charts)}</div>')

    def picture(self, name: str, draw: Callable[[], Any], caption: str) -> None:
        """Draw twice, for light and for dark pages; the light one is also written as a file."""
        (self.folder / f"{name}.png").write_bytes(self.embed(draw, caption))

    def embed(self, draw: Callable[[], Any], caption: str) -> bytes:
        """Draw twice, into the page alone; the light picture."""
        light, dark = rendered(draw, *THEMES["light"]), rendered(draw, *THEMES["dark"])
        self.parts.append(
            '<figure><div class="scroll"><picture>'
            f'<source srcset="{as_address(dark)}" media="(prefers-color-scheme: dark)">'
            f'<img src="{as_address(light)}" alt="{escape(caption)}">'
            f"</picture></div><figcaption>{escape(caption)}</figcaption></figure>"
        )
        return light

    def write(self, path: str | Path | None = None) -> Path:
        """Write the page, whole or not at all; `report.html` in the folder by default."""
        path = self.folder / "report.html" if path is None else Path(path)
        head = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{STYLE}{CHART_STYLE}</style></head>"
        )
        body = "\n".join(self.parts)
        text = f"{head}<body><main>\n{body}\n</main></body></html>\n"
        with replacing(path) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
        return path


def marked(text: str) -> str:
    """A text for the page; what stands in backquotes is code.

    Examples
    --------
    >>> marked("`verify` if a < b")
    '<code>verify</code> if a &lt; b'
    """
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def lines_of(text: str) -> str:
    """A text for the page, as it stands if it has several lines."""
    return f"<pre>{escape(text.strip())}</pre>" if "\n" in text.strip() else escape(text)


def rendered(draw: Callable[[], Any], ink: str, paper: str) -> bytes:
    """The PNG of the figure that `draw` returns, with text and axes in the colour `ink`."""
    pyplot = import_pyplot()
    axes = ("axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color", "ytick.color")
    colours = dict.fromkeys(("text.color", "legend.labelcolor", *axes), ink)
    colours |= {"figure.facecolor": paper, "savefig.facecolor": paper, "axes.facecolor": paper}
    file = io.BytesIO()
    with pyplot.rc_context(colours):
        figure = draw()
        figure.savefig(file, format="png", dpi=110)
        pyplot.close(figure)
    return file.getvalue()


def as_address(png: bytes) -> str:
    """A picture as the text of an address."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
