"""The experiments of the five papers: `widemargin reproduce`.

experiment.py   what an experiment is: units of work, claims, tables, figures
store.py        answers of units in files, so that a killed run goes on
running.py      carries units out
page.py         what was found, as HTML and as Markdown
data.py         rows of the data sets, and of what takes their place
kernel_fits.py  fits of kernel machines, watched on the way
thesis.py, dual_coordinate.py, svmd.py, tutorial.py, sonline.py     one paper each, and what
                belongs to it: thesis_*.py, svmd_*.py, sonline_runs.py
"""

from __future__ import annotations

from .experiment import PAPERS, Experiment


def experiments() -> dict[str, Experiment]:
    """All experiments, by name.

    Examples
    --------
    >>> "tutorial-example" in experiments()
    True
    """
    from . import dual_coordinate, sonline, svmd, thesis, tutorial

    papers = (thesis, dual_coordinate, svmd, tutorial, sonline)
    return {found.name: found for paper in papers for found in paper.EXPERIMENTS}


def chosen(names: list[str]) -> list[Experiment]:
    """Those of these names, which may be names of papers; all where there is no name."""
    known = experiments()
    unknown = [name for name in names if name not in known and name not in PAPERS]
    if unknown:
        raise ValueError(
            f"unknown experiment {', '.join(map(repr, unknown))}; known are {', '.join(known)}, "
            f"and all of a paper: {', '.join(PAPERS)}"
        )
    wanted = set(names)
    return [e for e in known.values() if not names or wanted & {e.name, e.paper}]
