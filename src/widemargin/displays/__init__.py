"""Pictures of fits, and pages of charts.

plots     `ConvergenceDisplay`, `ScoreDisplay`: pictures by Matplotlib
images    `MaskDisplay`, `PoseDisplay`, `SpringDisplay`: what is found in images
pages/    HTML pages and their charts
"""

from .images import MaskDisplay, PoseDisplay, SpringDisplay
from .plots import ConvergenceDisplay, ScoreDisplay, rescaled_columns, spread_out

__all__ = [
    "ConvergenceDisplay",
    "MaskDisplay",
    "PoseDisplay",
    "ScoreDisplay",
    "SpringDisplay",
    "rescaled_columns",
    "spread_out",
]
