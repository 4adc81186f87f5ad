"""The harness of long campaigns, on campaigns that crash, hang and raise as planned."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from audits.campaigns import Campaign, discover
from audits.results import Result, Results
from audits.running import describe, run

ROOT = Path(__file__).parents[2]

FAKE = """
import os, time
from pathlib import Path

NAME, TARGET = "misbehaving", 12


def trial(seed, folder):
    print("noise on standard output")
    if seed == 3:
        os.kill(os.getpid(), 11)
    if seed == 5:
        time.sleep(1000)
    if seed == 7:
        raise ValueError("not\\nexpected")
    if seed == 9:
        return "the answer is wrong"
    if seed == 10:
        os._exit(4)
    (folder / f"{seed}.txt").write_text("kept for later trials of this process")
    return None
"""
QUIET = 'NAME, TARGET = "quiet", 4\n\n\ndef trial(seed, folder):\n    return None\n'


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two campaigns that children find as well."""
    folder = tmp_path / "planned"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "misbehaving.py").write_text(FAKE)
    (folder / "quiet.py").write_text(QUIET)
    (folder / "shared_words.py").write_text("WORD = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "planned"]:
        del sys.modules[name]


def command(package, tmp_path, *arguments):
    """`main` of the harness in a process of its own, over the planned campaigns."""
    code = "import sys; from audits.__main__ import main; sys.exit(main(package='planned'))"
    script = tmp_path / "run_planned.py"
    script.write_text(f"if __name__ == '__main__':\n    {code}\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])
    given = [sys.executable, str(script), *arguments, "--output", str(tmp_path / "output")]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        given, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_what_goes_wrong_in_a_trial_is_a_finding_of_its_seed(package):
    campaign = discover("planned")["misbehaving"]
    results = {result.seed: result.finding for result in run(campaign, range(12), timeout=2.0)}
    assert sorted(results) == list(range(12))
    assert "SIGSEGV" in results[3] and "in trial" in results[3]
    assert "hang" in results[5]
    assert results[7].startswith("ValueError at misbehaving.py:") and "\n" not in results[7]
    assert results[9] == "the answer is wrong"
    assert "exit code 4" in results[10]
    assert all(results[seed] is None for seed in (0, 1, 2, 4, 6, 8, 11))


def test_no_trial_begins_after_the_time(package):
    assert list(run(discover("planned")["quiet"], range(4), seconds=-1.0)) == []


def test_a_campaign_goes_on_where_it_stopped(package, tmp_path):
    first = command(package, tmp_path, "quiet", "--trials", "3")
    assert first.returncode == 0, first.stderr
    assert "quiet: 3 trials of 4 asked for, seeds 0 to 2: 0 findings" in first.stdout
    second = command(package, tmp_path, "quiet")
    assert "quiet: 4 trials of 4 asked for, seeds 0 to 3: 0 findings" in second.stdout
    lines = (tmp_path / "output" / "trials.jsonl").read_text().splitlines()
    seeds = [json.loads(line)["seed"] for line in lines]
    assert sorted(seeds[:3]) == [0, 1, 2] and seeds[3:] == [3]  # two workers: in any order
    (package / "quiet.py").write_text(QUIET + "# edited\n")
    third = command(package, tmp_path, "quiet", "--trials", "1")
    assert "1 trials of 4 asked for (and 3 seeds with other sources)" in third.stdout
    every = command(package, tmp_path, "quiet", "--any-sources")
    assert "quiet: 4 trials of 4" in every.stdout


def test_a_finding_is_printed_with_the_line_that_repeats_it(package, tmp_path):
    found = command(package, tmp_path, "misbehaving", "--seed", "9")
    assert found.returncode == 1
    assert "python -m planned misbehaving --seed 9" in found.stdout
    assert not (tmp_path / "output").exists()  # a repetition is not kept
    assert command(package, tmp_path, "misbehaving", "--seed", "8").returncode == 0


def test_a_sample_has_the_seeds_of_the_commit(package, tmp_path):
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    seed = int(head.stdout[:8], 16) & 0x7FFFFFFF
    found = command(package, tmp_path, "quiet", "--sample", "--trials", "3", "--seconds", "20")
    assert found.returncode == 0, found.stderr
    assert f"seeds {seed} to {seed + 2}: 0 findings" in found.stdout


def test_names_and_numbers_are_checked(package, tmp_path):
    unknown = command(package, tmp_path, "loud")
    assert unknown.returncode == 2 and "known are misbehaving, quiet" in unknown.stderr
    assert command(package, tmp_path, "quiet", "--trials", "0").returncode == 2
    assert command(package, tmp_path, "quiet", "--sample", "--seed", "1").returncode == 2


def test_sources_are_told_apart(package):
    before = {name: campaign.sources for name, campaign in discover("planned").items()}
    (package / "quiet.py").write_text(QUIET + "# edited\n")
    after = {name: campaign.sources for name, campaign in discover("planned").items()}
    assert before["misbehaving"] == after["misbehaving"] and before["quiet"] != after["quiet"]
    (package / "shared_words.py").write_text("WORD = 2\n")
    assert discover("planned")["misbehaving"].sources != before["misbehaving"]


def test_a_line_cut_by_a_kill_is_passed_over(tmp_path):
    campaign, path = Campaign("c", "m", 9, "s"), tmp_path / "trials.jsonl"
    Results(path).add(Result("c", "s", 1, 0.1, "x"))
    with path.open("a") as file:
        file.write('{"campaign": "c", "se')
    again = Results(path)
    again.add(Result("c", "s", 2, 0.1))
    assert sorted(Results(path).of(campaign)) == [1, 2]


def test_exceptions_in_one_line():
    with pytest.raises(OSError, match="a\nb") as caught:
        raise OSError("a\nb")
    assert describe(caught.value).startswith("OSError at test_audits.py:")


def test_all_campaigns_are_found():
    for name, campaign in discover().items():
        assert name == campaign.name and campaign.target > 0
