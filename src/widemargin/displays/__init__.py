"""Pictures of fits, and pages of charts.

plots     `ConvergenceDisplay`, `ScoreDisplay`: pictures by Matplotlib
boxes     boxes on images, templates, precision-recall and overlap-recall curves
pages/    HTML pages and their charts
"""

from .boxes import BoxCurveDisplay, BoxesDisplay, OverlapRecallDisplay, TemplateDisplay
from .plots import ConvergenceDisplay, ScoreDisplay, rescaled_columns, spread_out

__all__ = [
    "BoxCurveDisplay",
    "BoxesDisplay",
    "ConvergenceDisplay",
    "OverlapRecallDisplay",
    "ScoreDisplay",
    "TemplateDisplay",
    "rescaled_columns",
    "spread_out",
]
