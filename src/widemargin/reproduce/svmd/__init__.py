"""Vishwanathan, Schraudolph and Smola, JMLR 2006: SVMD and NORMA.

paper       USPS digits, and all experiments of the paper
runs        runs over rows in order, and their curves
counting    a stream that drifts
sizes       buffers of several sizes, a tree as the loss
"""
