"""`widemargin report`: a model, or an unfinished run, as one HTML page."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ...displays.pages.charts import Series, chart
from ...displays.pages.report import Report
from ...run.history import History
from ..apply.command import load_model
from ..apply.ranking import rank_rows
from ..reading.images import IMAGE_TASKS
from ..reading.rows import check_output, naming
from ..reading.sequences import TYPE_HEAD, type_rows, unknown_words
from .speaking import say
from .story import Story, story_of_model, story_of_run
from .words import (
    MOST_CLASSES,
    certificate_words,
    clock,
    confusions,
    headline,
    label_text,
    many,
    pass_words,
    percent,
    size,
    stop_words,
)


def report(args: Any) -> int:
    """`widemargin report`: the page of a model or of a checkpoint."""
    check_output(args.output, "report", [args.model])
    if os.path.isdir(args.model):
        story = story_of_run(args.model)
    else:
        story = story_of_model(load_model(args.model), args.model)
    write_page(story, args.output)
    if not args.quiet:
        say(f"report in {args.output}")
    return 0


def write_model_page(model: Any, path: str, name: str) -> None:
    """Write the page of a model."""
    write_page(story_of_model(model, name), path)


def write_page(story: Story, path: str, add: Callable[[Report], None] | None = None) -> None:
    """Write all parts of a page, top to bottom; `add` puts what is a task's own before facts."""
    page = Report(story.title, certificate_words(story.certificate, story.uncertified))
    add_tiles(page, story)
    if "kernel_evaluations" in story.history:
        add_kernel(page, story)
    else:
        if story.certificate is not None:
            add_convergence(page, story)
        add_stream(page, story)
    if "held_out_loss" in story.history:
        add_held_out(page, story)
    if "train_hinge" in story.history:
        add_training_hinge(page, story)
    evaluation = story.notes.get("evaluation")
    if evaluation:
        add_evaluation(page, evaluation)
    if add is not None:
        add(page)
    add_facts(page, story)
    with naming(path):
        page.write(path)


def add_tiles(page: Report, story: Story) -> None:
    """The numbers of a fit that count most, at the top of the page."""
    certificate, history = story.certificate, story.history
    numbers: list[tuple[str, str, str, Any]] = []
    if certificate is not None:
        over = {"data": "all data, proven", "round": "the last round"}.get(
            certificate.scope, "the kept examples only"
        )
        numbers += [
            ("gap", f"gap over {over}", percent(certificate.gap), certificate.gap),
            ("primal", f"objective over {over}", f"{certificate.primal:.6g}", certificate.primal),
            ("dual", "lower bound of any objective", f"{certificate.dual:.6g}", certificate.dual),
        ]
    if story.examples is not None:
        numbers.append(("examples", *counted(story.examples, story.unit), story.examples))
    passes, seconds = history.last("passes"), history.last("seconds")
    text, label = pass_words(passes).split()
    numbers.append(("passes", label, text, passes))
    numbers.append(("seconds", "of learning", clock(seconds), seconds))
    if "kernel_evaluations" in history:
        count, kept = history.last("kernel_evaluations"), history.last("kept")
        numbers.append(("kept", *counted(kept, "support patterns"), kept))
        numbers.append(("kernel_evaluations", "kernel values computed", f"{count:,.0f}", count))
    if story.progressive_loss is not None:
        loss = story.progressive_loss
        numbers.append(("progressive_loss", "mean loss before learning", f"{loss:.4g}", loss))
    result = story.notes.get("evaluation")
    if result:
        for name, text, value in headline(result):
            numbers.append((name, f"{result['on']} {name}", text, value))
    page.tiles(
        {label: text for _, label, text, _ in numbers},
        {label: (name, value) for name, label, _, value in numbers},
    )


def counted(count: float, things: str) -> tuple[str, str]:
    """The label and the text of a tile.

    Examples
    --------
    >>> counted(1, "rows"), counted(1200, "rows")
    (('row', '1'), ('rows', '1,200'))
    """
    return many(1, things)[2:] if count == 1 else things, f"{count:,.0f}"


def passes_of(history: History, examples: int | None) -> np.ndarray:
    """Passes with their fractions; in the first pass, whose length is not known, by rows."""
    passes = history["passes"].copy()
    if "rows" in history and examples:
        rows = history["rows"]
        first = (passes <= 1) & (rows > 0)
        passes[first] = np.minimum(1.0, rows[first] / examples)
    return passes


def add_convergence(page: Report, story: Story) -> None:
    """Objective, lower bound and gap against time and against passes."""
    page.section("Convergence")
    history, is_stream = story.history, "kept" in story.history
    if is_stream:
        page.text(
            "Dashed: the objective of the kept examples, known at any time, a diagnosis. Dots: the "
            "objective over all data, proven by a pass at fixed weights. The lower bound holds for "
            "all data that was seen."
        )
    else:
        page.text("Dots are measured over all data; dashes, where there are any, are estimates.")
    guess = "over the kept examples" if is_stream else "estimated"
    proven = history["exact"] == 1.0
    assert story.certificate is not None
    final = story.certificate.primal
    high = min(np.nanmax(np.append(history["primal"], final)), 2.0 * final)
    low = min(np.nanmin(np.append(history["dual"], story.certificate.dual)), final)
    charts = []
    for x, label in (
        (history["seconds"], "seconds"),
        (passes_of(history, story.examples), "passes"),
    ):
        primal, gap = history["primal"], history["gap"]
        bounds = [
            Series(f"objective, {guess}", x, np.where(proven, np.nan, primal), 1, "dashed"),
            Series("objective, proven", x[proven], primal[proven], 1, "dots"),
            Series("lower bound", x, history["dual"], 0),
        ]
        gaps = [
            Series(guess, x, np.where(proven, np.nan, gap), 1, "dashed"),
            Series("proven over all data", x[proven], gap[proven], 1, "dots"),
        ]
        charts.append(chart(bounds, label, "Objective", limits=(max(0.0, low), high)))
        mark = (story.tol, f"asked for: {percent(story.tol)}")
        charts.append(chart(gaps, label, "Gap", is_log=True, percent=True, mark=mark))
    page.charts(*charts)


def add_stream(page: Report, story: Story) -> None:
    """Progressive error, cache and memory of a fit from a stream."""
    history = story.history
    if "kept" not in history:
        return
    seconds, rows = history["seconds"], history["rows"]
    first = (history["passes"] <= 1) & (rows > 0)
    page.section("On the way")
    page.text(
        "Progressive loss: of predictions made before their example was learnt from, over about "
        "the last 10,000 examples. Kept: examples and dual variables in memory."
    )
    loss = Series("recent examples", rows[first], history["progressive_loss"][first], 2)
    memory = [
        Series("the whole process", seconds, history["memory"] / 1e6, 3),
        Series("kept examples", seconds, history["cache_bytes"] / 1e6, 0),
    ]
    kept = Series("kept", seconds, history["kept"], 0)
    page.charts(
        chart([loss], "examples", "Progressive loss", limits=(0.0, np.nanmax(loss.y, initial=0.0))),
        chart(memory, "seconds", "Memory in MB"),
        chart([kept], "seconds", "Kept examples"),
    )


#: Columns that only kernel machines have: title and whether the axis is logarithmic.
KERNEL_COLUMNS = {
    "step": ("Step size", True),
    "violation": ("Violation of the worst pair", True),
    "margin": ("Margin", False),
    "gradient_trace": ("Agreement of gradients <g, v>", False),
    "budget_error": ("Error of the budget, at most", False),
}


def add_kernel(page: Report, story: Story) -> None:
    """Progressive error, support patterns and kernel values of a kernel machine."""
    history = story.history
    seen = passes_of(history, story.examples) * (story.examples or 1)
    page.section("On the way")
    page.text(
        "Progressive loss: of predictions made before their example was learnt from, over about "
        "the last 10,000 examples. The cost of an example grows with the support patterns: the "
        "kernel values computed so far are the area under their curve, and more where examples "
        "are looked at again."
    )
    loss = Series("recent examples", seen, history["progressive_loss"], 2)
    charts = [
        chart([loss], "examples", "Progressive loss", limits=(0.0, np.nanmax(loss.y, initial=0.0))),
        chart([Series("patterns", seen, history["kept"], 0)], "examples", "Support patterns"),
        chart(
            [Series("computed", seen, history["kernel_evaluations"], 1)],
            "examples",
            "Kernel values",
        ),
    ]
    drawn = [name for name in KERNEL_COLUMNS if name in history]
    if "budget_error" in drawn and not np.any(history["budget_error"] > 0):
        drawn.remove("budget_error")  # nothing has left
    if "budget_error" in drawn:
        page.text(
            "Patterns have left to keep to the budget. The error of the budget is an upper bound "
            "of |f - f'|, how far f' is from what f would be without it: the sum of what each "
            "removal changed."
        )
    for name in drawn:
        title, is_log = KERNEL_COLUMNS[name]
        if np.isfinite(history[name]).any():
            charts.append(
                chart([Series(title, seen, history[name], 3)], "examples", title, is_log=is_log)
            )
    if np.isfinite(history["dual"]).any():
        charts.append(chart([Series("dual", seen, history["dual"], 0)], "examples", "Dual value"))
    page.charts(*charts)


def add_held_out(page: Report, story: Story) -> None:
    """The loss on held-out data on the way."""
    page.section("Held-out data on the way")
    page.text(
        "Mean loss on held-out data of the weights so far. Where it rises again while the fit goes "
        "on, the model begins to fit the noise."
    )
    add_measured(page, story, "held_out_loss", "held-out", "Held-out loss")


def add_training_hinge(page: Report, story: Story) -> None:
    """The mean hinge over the training data on the way."""
    page.section("Training hinge on the way")
    page.text(
        "Mean hinge over all training examples of the weights so far, those that were not learnt "
        "from yet included."
    )
    add_measured(page, story, "train_hinge", "training", "Mean hinge")


def add_measured(page: Report, story: Story, column: str, line: str, axis: str) -> None:
    """A column of the history against time and against passes."""
    history = story.history
    values = history[column]
    known = np.isfinite(values)
    limits = (0.0, np.nanmax(values, initial=0.0))
    by = {"seconds": history["seconds"], "passes": passes_of(history, story.examples)}
    page.charts(
        *(
            chart([Series(line, x[known], values[known], 2)], name, axis, limits=limits)
            for name, x in by.items()
        )
    )


def add_evaluation(page: Report, result: dict[str, Any]) -> None:
    """The error on data and the most frequent confusions, as tables."""
    page.section(f"On {result['on']} data")
    if result["task"] == "tag":
        add_chunks(page, result)
        return
    if result["task"] in IMAGE_TASKS:
        page.text(f"{many(result['images'], 'images')}, {result['ms_an_image']:.1f} ms an image.")
        if result["task"] in ("segment", "pose"):
            page.table(("", ""), [[name, text] for name, text, _ in headline(result)])
            return
        table = result.get("classes", {"all": result})
        scores = ("AP50", "AP75", "AP")
        rows = [[label, *(f"{row[name]:.3f}" for name in scores)] for label, row in table.items()]
        page.table(("class", *scores), rows)
        return
    if result["task"] == "rank":
        page.text(f"{result['name']}; left out: {many(result['skipped_queries'], 'queries')}.")
        page.facts(dict(rank_rows(result)))
        return
    n = f"{many(result['examples'], 'examples')} of {result['name']}"
    if result["task"] == "regress":
        names = ("mae", "rmse", "mean_loss", "r2")
        page.text(f"{n}.")
        rows = [[f"{result[name]:.6g}" for name in names]]
        page.table(("mean absolute error", "RMSE", "mean loss beyond epsilon", "R2"), rows)
        return
    if result["task"] == "novelty":
        page.text(f"{n}: {percent(result['novel'])} count as novel.")
        rows = [
            [label_text(row["label"]), percent(row["novel"]), f"{row['examples']:,}"]
            for row in result["per_label"][:MOST_CLASSES]
        ]
        page.table(("label", "novel", "examples"), rows)
        return
    page.text(f"{n}: error {percent(result['error'])}, mean loss {result['mean_loss']:.6g}.")
    labels = [label_text(label) for label in result["classes"]]
    if len(labels) <= MOST_CLASSES:
        page.text("True classes down, predicted ones across; shades are shares of a row.")
        page.counts(labels, result["confusion"])
    else:
        page.text("The most frequent confusions:")
        page.table(("true", "predicted", "count"), confusions(result), has_pairs=True)
    rows = []
    for row in result["per_class"]:
        known = [row[key] for key in ("precision", "recall", "f1")]
        shares = ["-" if share is None else percent(share) for share in known]
        rows.append([label_text(row["class"]), *shares, f"{row['support']:,}"])
    page.table(("class", "precision", "recall", "F1", "support"), rows)


def add_chunks(page: Report, result: dict[str, Any]) -> None:
    """Token errors, chunks by type, confusions."""
    page.text(
        f"{many(result['examples'], 'sequences')} of {result['name']} with "
        f"{many(result['tokens'], 'tokens')}: "
        f"token error {percent(result['error'])}, whole sequences right "
        f"{percent(result['whole_sequences'])}."
    )
    if result["unknown_labels"]:
        page.text(unknown_words(result))
    if result["per_type"]:
        page.text("Chunks, counted as conlleval does:")
        page.table(TYPE_HEAD, type_rows(result))
    if result["confusions"]:
        page.text("The most frequent confusions:")
        rows = [[row["true"], row["predicted"], str(row["count"])] for row in result["confusions"]]
        page.table(("true", "predicted", "count"), rows, has_pairs=True)


def add_facts(page: Report, story: Story) -> None:
    """Parameters, data and versions of a fit, as a table."""
    page.section("Model")
    page.facts(
        {"solver": story.solver, "ended because": stop_words(story.stopped_by)}
        | story.about
        | {k: v for k, v in story.parameters.items() if k != "solver"}
    )
    data = story.notes.get("data", {})
    page.section("Data")
    facts = {"name": data.get("name", "not noted")}
    if data.get("bytes"):
        facts["size"] = size(data["bytes"])
    if len(data.get("files", ())) > 1:
        facts["files"] = ", ".join(data["files"][:20])
    if data.get("bad_lines"):
        facts["bad lines left out"] = f"{data['bad_lines']:,}"
    if story.fingerprint:
        facts["fingerprint"] = story.fingerprint
    page.facts(facts)
    versions = dict(story.notes.get("versions", {}))
    if story.notes.get("machine"):
        versions["machine"] = story.notes["machine"]
    if versions:
        page.section("Versions")
        page.facts(versions)
