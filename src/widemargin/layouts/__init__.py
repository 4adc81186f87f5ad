"""Shapes of packed examples, which problems fill and compiled loops know.

shapes    `BoxRows`, `ClassRows`, `NodeRows`, `SeparateRows`
sizes     what rounding may do to the planes of compiled oracles
"""

from .shapes import BoxRows, ClassRows, NodeRows, SeparateRows, box_hinges, box_losses

__all__ = ["BoxRows", "ClassRows", "NodeRows", "SeparateRows", "box_hinges", "box_losses"]
