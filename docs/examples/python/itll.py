"""A model that learns from rows as they come, predicts those to come, and goes on from a saved state."""

import numpy as np

from evo.itll import Model

model = Model("ridge", num_features=2, num_targets=1, window=200, num_units=64, noise=0.01)

for batch in range(8):
    numbers = np.arange(batch * 50, (batch + 1) * 50)
    rows = np.stack([numbers * 7919 % 1000, numbers * 104729 % 1000], axis=1).astype(np.float32) / np.float32(500) - np.float32(1)
    targets = rows[:, :1] * rows[:, 1:]
    # First predict, then learn: the error is that of rows not yet learned from.
    errors = np.abs(model.predict(rows) - targets)
    print(f"{model.num_rows:3d} rows: mean error {errors.mean(dtype=np.float64):.4f}")
    model.update(rows, targets)

state = model.save()
restored = Model.from_state(state, level="baseline")
means, deviations = model.predict(rows, return_std=True)
x, y = rows[0]
print(f"{targets[0, 0]:.4f} at ({x:.3f}, {y:.3f}): {means[0, 0]:.4f} +- {deviations[0, 0]:.4f}")
print(f"restored from {len(state)} bytes: {'the same bits' if np.array_equal(restored.predict(rows), means) else 'other bits'}")
