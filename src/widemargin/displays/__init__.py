"""Pictures of fits, and pages of charts.

plots     `ConvergenceDisplay`, `ScoreDisplay`: pictures by Matplotlib
pages/    HTML pages and their charts
"""

from .plots import ConvergenceDisplay, ScoreDisplay, rescaled_columns, spread_out

__all__ = ["ConvergenceDisplay", "ScoreDisplay", "rescaled_columns", "spread_out"]
