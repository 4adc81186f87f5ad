"""`widemargin reproduce`: resuming, missing data, failures, and what each experiment tells."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.svm import SVC

from widemargin import datasets
from widemargin.cli import reproduce as command
from widemargin.cli.main import main
from widemargin.datasets import files
from widemargin.reproduce import chosen, experiments
from widemargin.reproduce.data import digits
from widemargin.reproduce.experiment import (
    PAPERS,
    Claim,
    Experiment,
    Figure,
    Plan,
    Results,
    Table,
    Unit,
    verdict,
)
from widemargin.reproduce.page import told, write_html, write_markdown
from widemargin.reproduce.running import planned, run
from widemargin.reproduce.sonline.paper import tell as tell_sonline
from widemargin.reproduce.sonline.runs import ETAS, MATRICES, batch, libsvm, losses_of, online
from widemargin.reproduce.store import Store
from widemargin.reproduce.svmd.counting import (
    WRAPS,
    counting_sequence,
    draws_claim,
    rise,
    usual_rises,
)
from widemargin.reproduce.svmd.paper import ten_digits
from widemargin.reproduce.thesis.claims import evaluations_claim, evaluations_of
from widemargin.reproduce.thesis.runs import OURS, compared, cross_validated


class Silent:
    """A watch that counts."""

    def __init__(self):
        self.begun, self.ended = [], []

    def begin(self, outcomes):
        self.stored = sum(len(outcome.results) for outcome in outcomes)

    def unit(self, outcome, unit):
        self.begun.append(unit.name)

    def done(self, outcome, unit, seconds, error):
        self.ended.append((unit.name, error))


CALLS: list[int] = []


def square(number: int) -> dict:
    CALLS.append(number)
    if number == 13:
        raise ArithmeticError("13 is <unlucky>")
    if number == 99:
        raise KeyboardInterrupt
    return {"square": number**2, "nothing": float("nan")}


def doubled(start: int) -> dict:
    return {"double": 2 * start}


def made(numbers, **more) -> Experiment:
    """Squares; then, once they are all known, the double of the largest."""

    def units(plan, results):
        found = [Unit(square, {"number": number}) for number in numbers]
        squares = [answer["square"] for answer in results.of(square)]
        if len(squares) == len(numbers):
            found.append(Unit(doubled, {"start": max(squares)}))
        return found

    def tell(plan, results):
        squares = [answer["square"] for answer in results.of(square)]
        chart = "<svg></svg>"
        return [
            Claim("a | claim", "9", f"{max(squares)}", verdict(max(squares) == 9, "a <reason>")),
            Table("Squares", ["n"], [[str(value)] for value in squares]),
            Figure("A picture", [chart], "What to see."),
            "A sentence.",
        ]

    return Experiment("squares", "tutorial", "Squares", "About squares.", units, tell, **more)


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


# ---------------------------------------------------------------- frame


def test_a_second_run_does_nothing_again(tmp_path):
    store = Store(tmp_path)
    first, second = planned(made([1, 2, 3]), True), planned(made([1, 2, 3]), True)
    assert run([first], store, Silent())
    assert CALLS == [1, 2, 3]
    assert first.results.of(doubled) == [{"double": 18}]
    assert first.n_open == 0 and len(first.units) == 4
    watch = Silent()
    assert run([second], store, watch)
    assert CALLS == [1, 2, 3] and not watch.begun and watch.stored == 4
    assert second.results.of(doubled) == [{"double": 18}]
    assert second.old == 0


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    store, experiment = Store(tmp_path), made([1, 99, 3])
    outcome = planned(experiment, True)
    assert not run([outcome], store, Silent())
    assert len(outcome.results) == 1 and outcome.n_open == 2 and not outcome.failures
    again = planned(made([1, 2, 3]), True)  # the unit that was interrupted works now
    assert run([again], store, Silent())
    assert CALLS == [1, 99, 2, 3]


def test_a_failing_unit_is_reported_and_tried_again(tmp_path):
    store, watch = Store(tmp_path), Silent()
    outcome = planned(made([1, 13, 3]), True)
    assert run([outcome], store, watch)
    assert outcome.failures == [("square number=13", "ArithmeticError: 13 is <unlucky>")]
    assert [name for name, error in watch.ended if error] == ["square number=13"]
    assert len(outcome.results) == 2  # the others are there, what depends on all is not
    page, text = tmp_path / "a.html", tmp_path / "a.md"
    stories = told([outcome])
    write_html(stories, page, True)
    write_markdown(stories, text, True)
    assert "Failed: square number=13: ArithmeticError: 13 is &lt;unlucky&gt;" in page.read_text()
    assert "Failed: square number=13" in text.read_text()
    run([planned(made([1, 13, 3]), True)], store, Silent())
    assert CALLS == [1, 13, 3, 13]


def test_an_answer_that_cannot_be_told_is_reported(tmp_path):
    experiment = made([1])
    broken = Experiment(
        "broken", "tutorial", "Broken", "", experiment.units, lambda plan, results: 1 / 0
    )
    outcome = planned(broken, True)
    run([outcome], Store(tmp_path), Silent())
    stories = told([outcome])
    write_html(stories, tmp_path / "a.html", False)
    assert "telling what was found: ZeroDivisionError" in (tmp_path / "a.html").read_text()


def test_stored_answers_are_whole_and_named_by_what_they_depend_on(tmp_path):
    store, unit = Store(tmp_path), Unit(square, {"number": 2})
    one = made([2])
    store.save(one, unit, {"square": 4}, 0.5)
    path = store.path(one, unit)
    assert json.loads(path.read_text())["arguments"] == {"number": 2}
    assert store.path(one, Unit(square, {"number": 3})) != path
    assert store.path(made([2], version=2), unit) != path
    path.write_text('{"answer": {"squ')  # as a crash of the file system would leave it
    assert store.load(one, unit) is None
    path.write_text(json.dumps({"answer": {"square": 4}, "seconds": 1.0, "sources": "other"}))
    record = store.load(one, unit)
    assert record is not None and not record.is_current


def test_missing_data_is_replaced_or_left_out(monkeypatch, tmp_path):
    nowhere(monkeypatch, tmp_path)
    outcome = planned(made([1], data=("a8a", "w8a"), substitute="digits"), True)
    assert outcome.plan == Plan(True, ("digits",))
    assert outcome.missing == ("a8a", "w8a") and outcome.uses_substitute
    outcome = planned(made([1], data=("a8a",)), True)
    assert outcome.plan is None and not outcome.units
    write_html(told([outcome]), tmp_path / "a.html", True)
    page = (tmp_path / "a.html").read_text()
    assert "It was left out." in page and "a8a.t.gz in the folder a8a" in page


def test_page_and_markdown_escape_what_they_show(tmp_path):
    outcome = planned(made([3]), False)
    run([outcome], Store(tmp_path / "s"), Silent())
    stories = told([outcome])
    write_html(stories, tmp_path / "a.html", False)
    write_markdown(stories, tmp_path / "a.md", False)
    page, text = (tmp_path / "a.html").read_text(), (tmp_path / "a.md").read_text()
    assert '<b class="good">reproduced: a &lt;reason&gt;</b>' in page
    assert "http" not in page.replace('xmlns="http', "")
    assert "| a \\| claim | 9 | 9 | reproduced: a <reason> |" in text
    assert "*A picture* (in the page): What to see." in text
    assert "Quick mode" not in text


# ---------------------------------------------------------------- command


def nowhere(monkeypatch, tmp_path) -> None:
    """A machine without data sets and without a network."""
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr(files, "cache", lambda: tmp_path / "cache")

    def refuse(*_):
        raise AssertionError("nothing may be fetched")

    monkeypatch.setattr(files, "fetch", refuse)


def test_list(capsys):
    assert main(["reproduce", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in experiments())
    assert main(["reproduce", "--list", "tutorial"]) == 0
    assert "thesis-comparison" not in capsys.readouterr().out


def test_unknown_names(capsys, tmp_path):
    assert main(["reproduce", "fig-5", "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "unknown experiment 'fig-5'; known are thesis-parameters" in said
    assert not (tmp_path / "out").exists()


def test_outputs_are_tried_before_any_work(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "chosen", lambda names: [made([1])])
    out, missing = tmp_path / "out", tmp_path / "absent"
    assert main(["reproduce", "-o", str(out), "--markdown", str(missing / "x.md")]) == 1
    assert f"folder of the markdown does not exist: {missing}" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main(["reproduce", "-o", str(tmp_path / "file")]) == 1
    assert "file: File exists" in capsys.readouterr().err
    (out / "reproduce.html").mkdir()
    assert main(["reproduce", "-o", str(out)]) == 1
    assert "reproduce.html: the page is a folder" in capsys.readouterr().err
    assert not CALLS
    arguments = ["reproduce", "--quick", "--quiet", "-o", str(out)]
    assert main([*arguments, "--markdown", str(out / "x.md")]) == 0


def test_the_command_goes_on_and_begins_anew(monkeypatch, capsys, tmp_path):
    numbers = [1, 99]
    monkeypatch.setattr(command, "chosen", lambda names: [made(numbers)])
    out, text = tmp_path / "out", tmp_path / "summary.md"
    assert main(["reproduce", "--quick", "-o", str(out)]) == 130
    assert "interrupted; the same command goes on" in capsys.readouterr().err
    assert "Interrupted: 1 of 2 units are not done" in (out / "reproduce-quick.html").read_text()
    numbers[1] = 3
    arguments = ["reproduce", "--quick", "-o", str(out), "--markdown", str(text)]
    assert main(arguments) == 0
    assert "1 units of work are stored already" in capsys.readouterr().err
    assert CALLS == [1, 99, 3] and "Squares" in text.read_text()
    assert main([*arguments, "--fresh", "--quiet"]) == 0
    assert CALLS == [1, 99, 3, 1, 3] and not capsys.readouterr().err
    numbers[1] = 13
    assert main(arguments) == 1
    assert "failed: squares: square number=13" in capsys.readouterr().err


def test_the_board_of_a_terminal(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "chosen", lambda names: [made([1, 13])])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert main(["reproduce", "--quick", "-o", str(tmp_path)]) == 1
    shown = capsys.readouterr().err
    assert "2/2" in shown and "1 failed" in shown and "gone" in shown


def test_seconds_left():
    board = command.Board()
    outcome = planned(made([1, 2, 3]), True)
    board.outcomes = [outcome]
    assert board.seconds_left() is None
    outcome.taken.append(2.0)
    outcome.results.pairs.append((outcome.units[0], {"square": 1}))
    assert board.seconds_left() == pytest.approx(4.0)


# ---------------------------------------------------------------- experiments


def test_names_and_papers():
    every = experiments()
    assert {one.paper for one in every.values()} == set(PAPERS)
    assert all(name == one.name and one.about for name, one in every.items())
    assert chosen([]) == list(every.values())
    assert [one.name for one in chosen(["tutorial"])] == ["tutorial-example", "tutorial-caching"]


@pytest.fixture(scope="module", params=["data sets", "no data sets"])
def quick(request, tmp_path_factory):
    """All experiments in quick mode: outcomes, and the folder that the command was run in."""
    home = tmp_path_factory.mktemp("quick")
    with pytest.MonkeyPatch.context() as monkeypatch:
        if request.param == "no data sets":
            nowhere(monkeypatch, home)
        elif not any(map(datasets.dataset_is_here, datasets.dataset_names())):
            pytest.skip("there are no data sets")
        outcomes = [planned(experiment, True) for experiment in experiments().values()]
        assert run(outcomes, Store(home / "quick"), Silent())
        arguments = ["reproduce", "--quick", "-o", str(home), "--markdown", str(home / "a.md")]
        assert main(arguments) == 0  # all of it is stored already
    return {outcome.experiment.name: outcome for outcome in outcomes}, home


@pytest.mark.parametrize("name", list(experiments()))
def test_every_experiment_tells_its_story(quick, name):
    outcomes, home = quick
    outcome = outcomes[name]
    if outcome.plan is None:
        pytest.skip("needs its data")
    (story,) = told([outcome])
    assert not outcome.failures, outcome.failures
    assert story.claims and all(all(claim) for claim in story.claims)
    for part in story.parts:
        if isinstance(part, Table):
            assert part.rows and all(len(row) == len(part.head) for row in part.rows)
        if isinstance(part, Figure):
            assert part.caption and part.charts
            assert all("<svg" in chart for chart in part.charts), part.title
    page, text = (home / "reproduce-quick.html").read_text(), (home / "a.md").read_text()
    assert f'id="{name}"' in page and f"(`{name}`)" in text
    assert "nan" not in re.sub(r"<[^>]*>", " ", page).lower().split()


@pytest.mark.parametrize("name", list(experiments()))
def test_any_part_of_the_results_tells_something(quick, name):
    outcome, rng = quick[0][name], np.random.default_rng(0)
    for share in (0.1, 0.5, 0.5, 0.9) if outcome.plan else ():
        kept = [pair for pair in outcome.results.pairs if rng.random() < share]
        outcome.experiment.tell(outcome.plan, Results(kept))


def test_only_a_full_run_on_the_papers_data_is_judged(quick):
    outcomes, home = quick
    text = (home / "a.md").read_text()
    for name, outcome in outcomes.items():
        if outcome.plan is None:
            continue
        verdicts = {claim.verdict for claim in told([outcome])[0].claims}
        if outcome.uses_substitute:
            assert verdicts == {f"not judged: {outcome.plan.data[0]}, not the paper's data"}
        elif name == "tutorial-example":  # the same in both modes
            assert verdicts == {"reproduced"}
        else:
            assert verdicts == {"not judged: the quick mode does a part of it"}
    assert re.search(r"Verdicts: 2 reproduced, \d+ not judged\.", text)


def test_a_full_run_is_judged_unless_its_data_is_replaced(monkeypatch, tmp_path):
    outcome = planned(made([3]), False)
    run([outcome], Store(tmp_path), Silent())
    assert outcome.not_judged is None
    assert told([outcome])[0].claims[0].verdict == "reproduced: a <reason>"
    nowhere(monkeypatch, tmp_path)
    outcome = planned(made([3], data=("a8a",), substitute="digits"), False)
    run([outcome], Store(tmp_path), Silent())
    assert told([outcome])[0].claims[0].verdict == "not judged: digits, not the paper's data"


def test_captions_say_what_was_done(quick):
    """Seeds, rows, folds and values of C of the quick mode; outcomes as the numbers have them."""
    outcomes, home = quick
    text = (home / "a.md").read_text()
    assert "seeds 0 to 4" not in text and "on 5 folds" not in text
    assert "over orders of the rows, seeds 0 and 1; at most 1,500 rows." in text
    assert "covtype stands in" not in text  # it is left out
    assert "Ours tries C = 1, 8 (SampledCuts: 1, 8), two epochs each, 1 of 5 folds" in text
    assert "2 values of C (SampledCuts: 2) on 1 of 5 folds" in text
    assert "at most 2,000 rows" in text and "2 epochs; samples of 50, four dampings" in text
    outcome = outcomes["svmd-usps"]
    (figure,) = (p for p in told([outcome])[0].parts if getattr(p, "title", "")[:6] == "Ten di")
    errors = {a["method"]: r["error"] for a, r in outcome.results.units(ten_digits, first=0.1)}
    assert f"lowest is {min(errors, key=errors.get)}." in figure.caption
    assert f"{100 * errors['NORMA']:.2f} % (NORMA)" in figure.caption


def test_kernel_values_of_the_fits_made_and_of_those_of_the_thesis():
    known = {"data": "a8a", "method": "LaSVM", "n": None}
    fits = [(1.0, 100.0), (2.0, 300.0)]
    pairs = [
        (Unit(cross_validated, {**known, "C": C, "folds": 5}), {"error": C, "evaluations": count})
        for C, count in fits
    ]
    pairs.append((Unit(compared, {**known, "C": 1.0, "seed": 0}), {"evaluations": 1_000.0}))
    found = evaluations_of(Results(pairs), "a8a", "LaSVM")
    assert found == (1_000 + 5 * 100 + 5 * 300, 1_000 + 50 * 200)
    alone = evaluations_of(Results(pairs[2:]), "a8a", "LaSVM")
    assert alone == (1_000, 1_000)


def test_the_verdict_on_kernel_values_rests_on_the_fits_made():
    """A rival that is cheaper than ours by the fits made, dearer by the fifty of the thesis."""
    pairs = []
    for method, count in (("LaSVM", 10.0), (OURS, 120.0)):
        known = {"data": "a8a", "method": method, "n": None}
        run = Unit(compared, {**known, "C": 1.0, "seed": 0})
        pairs.append((run, {"evaluations": count}))
    fit = {"data": "a8a", "method": "LaSVM", "n": None, "C": 1.0, "folds": 5}
    pairs.append((Unit(cross_validated, fit), {"error": 1.0, "evaluations": 10.0}))
    claim = evaluations_claim(Results(pairs), ["a8a"])
    assert "Adult 0.5x (LaSVM; 4x as in the thesis)" in claim.ours
    assert claim.verdict == "not reproduced: on 0 of 1 sets, by the fits made here"


def test_table_two_has_every_method_and_every_eta():
    """Answers made up: what each pays by "tree 0.2" is its number, the other losses are above."""

    def answer(number: float, **more) -> dict:
        kinds = [f"{matrix} {eta}" for matrix in MATRICES for eta in ETAS]
        cost = {kind: number + 10 * place for place, kind in enumerate(kinds)}
        return {"error": number, "seconds": 2.0, "paid": cost, **more}

    size, counted = {"data": "usps01", "n": None}, {"evaluations": 3e6}
    pairs = [
        (Unit(batch, size), answer(1.0, gap=0.004, **counted)),
        (Unit(libsvm, size), answer(2.0)),
        (Unit(online, {**size, "loss": None, "seed": 0}), answer(3.0, **counted)),
        (Unit(online, {**size, "loss": "tree 0.2", "seed": 0}), answer(4.0, **counted)),
        (Unit(online, {**size, "loss": "centroids 0.5", "seed": 0}), answer(6.0, **counted)),
    ]
    two, by_matrix, _ = (p for p in tell_sonline(Plan(False, ("usps01",)), Results(pairs))
                         if isinstance(p, Table))  # fmt: skip
    rows = {row[0]: row[1:] for row in two.rows}
    assert list(rows) == ["MCSVM", "SVMstruct", "LIBSVM", "LaRank", "SOnline"]
    assert [head.split("= ")[-1] for head in two.head[2:5]] == ["0.2", "0.3", "0.5"]
    assert rows["LIBSVM"] == [
        "– / 2.00",
        "– / 17.000",
        "– / 27.000",
        "– / 37.000",
        "– / 2",
        "– / –",
    ]
    assert (
        rows["LaRank"][1:3] == ["0.87 / 18.000", "– / 28.000"] and rows["LaRank"][5] == "7.75 / 3"
    )
    # each run of SOnline pays by the loss that it was trained for, and eta = 0.3 has no run
    assert rows["SOnline"] == ["4.93 / 4.00", "0.83 / 4.000", "– / –", "– / 56.000", "132 / 2",
                               "7.25 / 3"]  # fmt: skip
    assert by_matrix.rows[2] == ["LIBSVM", *(f"{2 + 10 * k}.000" for k in range(6))]
    assert by_matrix.rows[4] == ["SOnline", "4.000", "–", "–", "–", "–", "56.000"]


def test_libsvm_pays_what_its_confusions_cost():
    found = libsvm("digits", 300)
    rows, losses = digits("digits").few(300, 300), losses_of("digits", 300)
    guess = SVC(C=10.0, gamma=0.1).fit(rows.X.astype(float), rows.y).predict(rows.X_test)
    assert found["error"] == pytest.approx(100 * np.mean(guess != rows.y_test))
    for kind, loss in losses.items():
        cost = sum(loss[truth, other] for truth, other in zip(rows.y_test, guess, strict=True))
        assert found["paid"][kind] == pytest.approx(cost / 90)
    assert "evaluations" not in found


def test_what_is_missing_is_said(monkeypatch, tmp_path, capsys):
    nowhere(monkeypatch, tmp_path)
    names = ["svmd-taxonomy", "svmd-counting", "tutorial-example"]
    assert main(["reproduce", *names, "--quick", "-o", str(tmp_path)]) == 0
    said = capsys.readouterr().err
    assert "not here: usps: usps.gz, usps.t.gz in the folder usps" in said
    assert "svmd-taxonomy is left out" in said and "svmd-counting takes digits in place" in said
    page = (tmp_path / "reproduce-quick.html").read_text()
    assert "In their place: digits." in page and "It was left out." in page


# ---------------------------------------------------------------- the counting sequence


def test_draws_of_the_counting_sequence():
    """The labels are those of the counter; a seed changes which digits come, none comes twice."""
    (X, y), (X_drawn, y_drawn) = (counting_sequence("digits", 300, seed) for seed in (None, 0))
    assert y.tolist() == [int(digit) for number in range(100) for digit in f"{number:03d}"]
    assert y_drawn.tolist() == y.tolist()
    assert not np.array_equal(X, X_drawn)
    assert len(np.unique(X_drawn, axis=0)) == len(X_drawn)
    again, _ = counting_sequence("digits", 300, 0)
    np.testing.assert_array_equal(again, X_drawn)


def test_rises_of_the_draws_are_judged_as_they_are():
    """Major in most draws: at all places of a reading, at some, at none; and not reached."""
    places, flat = list(range(300, 3300, 300)), [1.0] * 10

    def judged(*rises):
        answer = {"places": places, "rises": list(rises), "high": [1.2] * len(rises)}
        return draws_claim({"a": answer, "b": {**answer, "rises": [flat] * 3}}, WRAPS)

    risen = [2.0 if place in WRAPS else 1.0 for place in places]
    one = [2.0 if place == 300 else 1.0 for place in places]
    assert judged(risen, risen, flat).verdict == "reproduced"
    assert "67, 67, 67, 67 % of 3 draws, all together in 2 (a)" in judged(risen, risen, flat).ours
    assert judged(one, one, risen).verdict == "in part: in most draws after 300 alone"
    assert judged(risen, flat, flat).verdict == "not reproduced"
    places, flat = places[:5], flat[:5]
    assert judged(flat, flat, flat).verdict.startswith(
        "not judged: the sequence ends after 300, 1200"
    )


def test_a_rise_is_the_largest_step_over_the_one_before():
    steps = np.full(400, 0.5)
    steps[310] = 1.5
    assert rise(steps, 300) == 3.0 and rise(steps, 311) == 0.5 / 1.5 and rise(steps, 320) == 1.0
    assert usual_rises(steps).max() == 3.0
