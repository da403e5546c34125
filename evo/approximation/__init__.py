"""Approximations of functions of one number: the functions, the task, and the proof over every input.

Owns `evo.ApproximationTask` and `evo prove`. Every other part of evo knows nothing of functions.
"""
