"""The most violated output of an example, by dynamic programs, searches and cuts.

viterbi        labels of a sequence
legal_steps    which label may follow which
forests        labels on the nodes of a forest; Chow-Liu trees
windows        the best of all windows of an image
window_sets    a good set of them, for any number of objects
rankings       the most violated ranking, by loss
distance_transform    the best place under a spring
part_trees     places and kinds of parts that springs join
graph_cut      largest flows and smallest cuts: two labels on a graph
expansion      several labels on a graph, by cuts
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .expansion import Labelling, expand_labels
    from .graph_cut import Cut, max_flow

_HOMES = {
    "Cut": "graph_cut",
    "Labelling": "expansion",
    "expand_labels": "expansion",
    "max_flow": "graph_cut",
}

__all__ = ["Cut", "Labelling", "expand_labels", "max_flow"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
