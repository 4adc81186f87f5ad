"""SVMD and NORMA: gradient steps in the space of functions.

solver      `SVMD`, `NORMA`
_learner    what learns
_losses     the losses
_state      what is kept
_steps      the formulas
_recent     the last examples of a stream, which say where the margin of novelty is
"""
