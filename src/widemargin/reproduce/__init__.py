"""The experiments of the five papers: `widemargin reproduce`.

experiment                   `Experiment`: units of work, and what their results tell: claims,
                             tables, figures
store                        answers of units in files
running                      carrying units out, failures included
page                         HTML and Markdown
data                         rows as the papers take them, and what takes their place
kernel_fits                  kernel machines watched on the way
thesis/, svmd/, sonline/     one paper each
dual_coordinate, tutorial    one paper each
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
    from . import dual_coordinate, tutorial
    from .sonline import paper as sonline
    from .svmd import paper as svmd
    from .thesis import paper as thesis

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
