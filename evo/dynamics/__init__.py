"""Laws of motion from recorded trajectories: `evo.SymbolicDynamics`.

`terms.py` is what a law is made of, `records.py` the recorded trajectories and their smooth courses, `selection.py` chooses the
terms of each law, `shooting.py` fits all constants to the records at once, `estimator.py` is the estimator.
"""
