"""What a mistake costs: losses between classes, all of which become one cost matrix.

A multiclass problem needs the number ``loss(truth, predicted)`` for every pair of classes. However
it is described (the zero-one loss, a matrix, a taxonomy, a graph, a confusion matrix),
:func:`cost_matrix` turns it into one array ``cost[true, predicted]`` in the order of ``classes_``,
checks it, and nothing downstream knows where it came from. A new description is a class with one
method, see :class:`ClassLoss`.

matrices           any description of a loss as one checked matrix
labels             labels and weights of edges
taxonomy           classes in a tree
graph              classes in a graph
confusion          mistakes of an earlier model
kernel_distance    distances in the space of a kernel
"""

from .confusion import Confusion
from .graph import Graph
from .kernel_distance import KernelDistance
from .matrices import ClassLoss, cost_matrix
from .taxonomy import Taxonomy

__all__ = ["ClassLoss", "Confusion", "Graph", "KernelDistance", "Taxonomy", "cost_matrix"]
