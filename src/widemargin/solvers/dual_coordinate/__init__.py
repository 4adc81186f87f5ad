"""Dual coordinate ascent (Ramanan 2013, Algorithm 1), and its loops for layouts.

solver            `DualCoordinate` on planes; hands over to the loops below where the layout allows
box               one dual variable per example
classes           one block of K dual variables per example
class_steps       the exact steps of a block
_extrapolation    its conjugate-gradient step
_nodes            classes whose scores are sums over the nodes of a tree: another step in the loop
                  of `classes`
_places           planes of which a few integers are kept
_separate         labels that do not touch each other: all labels of a row in one step
"""
