"""Shapes of packed examples, which problems fill and compiled loops know; one file a shape.

protocol    `Layout`: what all of them have
box         `BoxRows`: one dual variable per row
classes     `ClassRows`: one class out of K
nodes       `NodeRows`: classes that share the nodes of a tree
separate    `SeparateRows`: labels that do not touch each other
sizes       what rounding may do to the planes of compiled oracles
"""

from .box import BoxRows
from .classes import ClassRows
from .nodes import NodeRows
from .protocol import Layout
from .separate import SeparateRows

__all__ = ["BoxRows", "ClassRows", "Layout", "NodeRows", "SeparateRows"]
