"""One output structure a file.

binary             two classes, a margin per example; packs `BoxRows`
regression         a number; gives planes; packs `BoxRows`
multiclass         one of K with a loss matrix; packs `ClassRows`
shared_classes     one of K, weights on the nodes of a tree; packs `NodeRows`
separate_labels    labels without pairs, an example per row and label; packs `SeparateRows`
label_sets         a few labels, any pairs: all sets are tried
label_tree         labels on a forest, with pairs, closed, edge loss, pruned
labelled           what problems over sets of labels share: weights, joint features, loss
chain              sequences of labels
ranking            lists of documents, four losses
ranking_oracles    the plane of the most violated ranking
matching           bipartite assignment, decoded by linear programming
parts              places and kinds of parts that springs join into a tree
segmentation       labels of the nodes of a graph, where neighbours attract
windows            one window of an image out of all positions and sizes
window_sets        a set of windows, of several classes; searched greedily
bags               the hidden candidate of a bag; gives planes
real_function      plain Python; the worked example of the tutorial
weights            weights and starts of parts, checked where callers can reach compiled code
"""

from .bags import Bags
from .binary import Binary
from .chain import Chain
from .label_sets import LabelSets
from .label_tree import LabelTree
from .matching import Matching
from .multiclass import Multiclass
from .parts import PartPlaces
from .ranking import AveragePrecision, NDCGAt, PrecisionAt, RocArea
from .real_function import RealFunction
from .regression import Regression
from .segmentation import Segmentation
from .separate_labels import SeparateLabels
from .shared_classes import SharedClasses
from .window_sets import WindowSets
from .windows import Windows

__all__ = [
    "AveragePrecision",
    "Bags",
    "Binary",
    "Chain",
    "LabelSets",
    "LabelTree",
    "Matching",
    "Multiclass",
    "NDCGAt",
    "PartPlaces",
    "PrecisionAt",
    "RealFunction",
    "Regression",
    "RocArea",
    "Segmentation",
    "SeparateLabels",
    "SharedClasses",
    "WindowSets",
    "Windows",
]
