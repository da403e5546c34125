"""Symbolic regression: formulas that give one column of data from others.

`task.py` is the task that searches score formulas with, `estimator.py` the estimator for scikit-learn.
"""
