"""Laws of motion from recorded trajectories: `evo.SymbolicDynamics`.

`terms.py` has the terms of laws, `tables.py` checks recordings, `records.py` has trajectories and their smooth courses,
`selection.py` chooses the terms of each law, `shooting.py` fits all constants to the records at once, `refinement.py` chooses
among candidates, `estimator.py` is the estimator.
"""
