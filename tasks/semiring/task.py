"""Kernels of a kernel machine: what a semiring multiplies, and its epilogue, by accuracy and cost.

One program has both. Its points are every pair of values of two rows, where `term` counts, and then numbers from -4 to 4, where
`kernel` does: a function of the terms' sum, which is scaled to mean 0 and deviation 1 first. Between those numbers it is
interpolated.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

import evo

NUM_ROWS = (100, 200, 269)  # those that vote, those that are classified, and those of reports, which no search sees
GRID = np.linspace(-4.0, 4.0, 257, dtype=np.float32)


def _digits():
    """Pictures of 8 x 8 pixels as 4 x 4 means, from 0 to 1."""
    pixels, labels = load_digits(return_X_y=True)
    return pixels.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16) / 16, labels


def _breast_cancer():
    """30 features, each with mean 0 and deviation 1."""
    features, labels = load_breast_cancer(return_X_y=True)
    return (features - features.mean(axis=0)) / features.std(axis=0), labels


DATA = {"digits": _digits, "breast_cancer": _breast_cancer}


class Semiring(evo.Task):
    """See README.md.

    Args:
        data: `digits` or `breast_cancer`.
    """

    inputs = {"a": "f32", "b": "f32", "x": "f32"}
    outputs = {"term": "f32", "kernel": "f32"}
    measures = {"num_instructions": (0.0, 16.0), "likeness": (-1.0, 1.0)}
    objective_range = (0.0, 1.0)
    complexity = "num_instructions"

    def __init__(self, data: str = "digits"):
        if data not in DATA:
            raise evo.UserError(f"task_options.data: '{data}', expected one of: {', '.join(DATA)}")
        features, labels = DATA[data]()
        rows = features.astype(np.float32)
        ends = np.cumsum(NUM_ROWS).tolist()
        (self._known, known), (self._asked, self._labels), (self._test, self._test_labels) = (
            (rows[first:end], labels[first:end]) for first, end in zip((0, *ends), ends, strict=False)
        )
        members = known[:, None] == np.unique(labels)
        self._votes = members / members.sum(axis=0)  # (known rows, classes): a class's mean
        self._squares = ((self._known[:, None] - self._asked[None]) ** 2).sum(-1).ravel()

    def points(self):
        return self._pairs_with(self._asked)

    def programs(self):
        """Programs in common use: squared and absolute differences, products and minima, with and without an exponential."""
        terms = ("(a - b)*(a - b)", "abs(a - b)", "-(a*b)", "-min(a, b)")
        return [f"term = {term}; kernel = {kernel}" for term in terms for kernel in ("-x", "exp(-2*x)")]

    def report_points(self):
        return self._pairs_with(self._test)

    def _pairs_with(self, rows):
        a, b = np.broadcast_arrays(self._known[:, None], rows[None])
        none = np.zeros_like(GRID)
        zeros = np.zeros(a.size, np.float32)
        return {
            "a": np.concatenate([a.ravel(), none]),
            "b": np.concatenate([b.ravel(), none]),
            "x": np.concatenate([zeros, GRID]),
        }

    def score(self, outputs, programs):
        accuracy, sums = self._accuracies(outputs, self._labels)
        centred = self._squares - self._squares.mean()
        likeness = (sums * centred).sum(axis=1) / (len(centred) * centred.std())  # row by row, unlike sums @ centred
        return evo.Scores(accuracy, np.stack([programs.num_instructions, likeness.clip(-1, 1)], axis=1))

    def report(self, outputs):
        return {"test_accuracy": self._accuracies(outputs, self._test_labels)[0]}

    def _accuracies(self, outputs, labels):
        """Accuracy of each program, NaN where it is not finite, and its scaled sums of terms, `(batch_size, pairs)`."""
        size = len(outputs["term"])
        terms = outputs["term"][:, : -len(GRID)].reshape(size, len(self._known) * len(labels), -1)
        with np.errstate(all="ignore"):
            sums = terms.sum(axis=-1, dtype=np.float64)
            sums -= sums.mean(axis=1, keepdims=True)
            sums /= sums.std(axis=1, keepdims=True)
        kernels = outputs["kernel"][:, -len(GRID) :]
        accuracy = np.full(size, np.nan)
        for index in np.flatnonzero(np.isfinite(sums).all(axis=1) & np.isfinite(kernels).all(axis=1)):
            similar = np.interp(sums[index], GRID, kernels[index]).reshape(len(self._known), len(labels))
            accuracy[index] = (np.argmax(self._votes.T @ similar, axis=0) == labels).mean()
        return accuracy, np.nan_to_num(sums, nan=0.0, posinf=0.0, neginf=0.0)
