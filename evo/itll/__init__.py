"""In-the-loop learning: models that learn while a search runs, in microseconds.

    from evo.itll import Model

    model = Model("ridge", num_features=32, num_targets=1, window=2000, seed=1)
    model.update(rows, targets)                            # as often as there is something to learn
    means, deviations = model.predict(rows, return_std=True)
    state = model.save()                                   # uint8: for a checkpoint
    model = Model.from_state(state)

`ProgramFeatures` describes programs by what they compute and what they are made of, without running their task.

Kinds of models, and where they come from; csrc/itll.h has their meaning and options:

    ridge  ridge regression on random Fourier features, with uncertainty (Rahimi & Recht, Random features for large-scale kernel
           machines, 2007)
    pca    principal components as learned measures, as in AURORA (Cully, Autonomous skill discovery with quality-diversity and
           unsupervised descriptors, 2019)

Options and the rows in order decide every bit, whatever SIMD level or machine. Owns the public names. Knows nothing of searches.
"""

from evo.native.itll import KINDS, STATE_VERSION, Model, levels
from evo.native.program_features import ProgramFeatures

__all__ = ["KINDS", "STATE_VERSION", "Model", "ProgramFeatures", "levels"]
