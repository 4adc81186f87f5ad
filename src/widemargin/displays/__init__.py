"""Pictures of fits, and pages of charts.

plots     `ConvergenceDisplay`, `ScoreDisplay`: pictures by Matplotlib
images    `MaskDisplay`, `PoseDisplay`, `SpringDisplay`: what is found in images
boxes     boxes on images, templates, precision-recall and overlap-recall curves
pages/    HTML pages and their charts
"""

from .boxes import BoxCurveDisplay, BoxesDisplay, OverlapRecallDisplay, TemplateDisplay
from .images import MaskDisplay, PoseDisplay, SpringDisplay
from .plots import ConvergenceDisplay, ScoreDisplay, rescaled_columns, spread_out

__all__ = [
    "BoxCurveDisplay",
    "BoxesDisplay",
    "ConvergenceDisplay",
    "MaskDisplay",
    "OverlapRecallDisplay",
    "PoseDisplay",
    "ScoreDisplay",
    "SpringDisplay",
    "TemplateDisplay",
    "rescaled_columns",
    "spread_out",
]
