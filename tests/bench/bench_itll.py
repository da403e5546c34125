"""In-the-loop learning: ridge against scikit-learn's, at the fastest SIMD level, and features of programs, on one core.

32 normal features, 2,000 rows, three targets. scikit-learn has float64 arrays and one thread; RBFSampler makes Ridge's random
features.
An update is a batch of 512 rows that pushes 512 others out of a full window; scikit-learn fits the window anew. The programs
are those of bench_tuning.py. Times are the best of many calls.
"""

import os

import numpy as np
from bench_tuning import NUM_CONSTANTS, NUM_OPERATIONS, draw_words
from bench_vm import best_s

from evo.instructions import shipped_instruction_set
from evo.itll import Model, ProgramFeatures, levels
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine

NUM_FEATURES = 32
NUM_ROWS = 2_000
NUM_QUERIES = 10_000
NUM_FEW = 16
NUM_UPDATE = 512
NUM_TARGETS = 3
NUM_PROBES = 32
NUM_PROGRAMS = 256


def draw_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets, queries."""
    rng = np.random.default_rng(16)
    rows, queries = rng.normal(size=(NUM_ROWS, NUM_FEATURES)), rng.normal(size=(NUM_QUERIES, NUM_FEATURES))
    return rows, np.stack([np.sin(rows[:, 0] + rows[:, 1]), rows[:, 2], np.tanh(rows[:, 3] * rows[:, 4])], axis=1), queries


def rows():
    """Rows of the table."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import Ridge
    from threadpoolctl import threadpool_limits

    data, targets, queries = draw_data()
    sampler = RBFSampler(gamma=1 / (2 * NUM_FEATURES), n_components=256, random_state=0).fit(data)
    ridge = Ridge(alpha=0.1).fit(sampler.transform(data), targets)
    queries_f32, data_f32, targets_f32 = (each.astype(np.float32) for each in (queries, data, targets))
    with threadpool_limits(1):
        times = {}
        for level in levels():
            model = Model("ridge", NUM_FEATURES, NUM_TARGETS, level=level)
            model.update(data_f32, targets_f32)
            times[level] = best_s(lambda m=model: m.predict(queries_f32), 10) / NUM_QUERIES
        reference_s = best_s(lambda: ridge.predict(sampler.transform(queries)), 3) / NUM_QUERIES
        shown = ", ".join(f"{level} {each * 1e6:.2f}" for level, each in times.items())
        what = f"ridge, 256 random features: predict a row of {NUM_QUERIES:,}, {NUM_ROWS:,} rows learned"
        yield what, f"{shown} us", "1 us", "0.3 us"
        what = f"the same against scikit-learn ({reference_s * 1e6:.1f} us)"
        yield what, f"{reference_s / min(times.values()):.0f}x", "10x", "50x"
        few_s = best_s(lambda: model.predict(queries_f32[:NUM_FEW]), 100)
        reference_s = best_s(lambda: ridge.predict(sampler.transform(queries[:NUM_FEW])), 50)
        what = f"the same, a call with {NUM_FEW} rows against scikit-learn ({reference_s * 1e6:.0f} us)"
        yield what, f"{few_s * 1e6:.1f} us, {reference_s / few_s:.0f}x", "10x", "50x"
        times = {}
        for level in levels():
            model = Model("ridge", NUM_FEATURES, 1, level=level)
            for _ in range(3):
                model.update(data_f32, targets_f32[:, :1])
            batch, batch_targets = data_f32[:NUM_UPDATE], targets_f32[:NUM_UPDATE, :1]
            times[level] = best_s(lambda m=model, b=batch, t=batch_targets: m.update(b, t), 6)
        reference_s = best_s(lambda: Ridge(alpha=0.1).fit(sampler.transform(data), targets[:, 0]), 5)
        shown = ", ".join(f"{level} {each * 1e3:.2f}" for level, each in times.items())
        yield f"ridge: update with {NUM_UPDATE} rows, the window full", f"{shown} ms", "1 ms", "0.3 ms"
        what = f"the same against scikit-learn, fitted anew ({reference_s * 1e3:.1f} ms)"
        yield what, f"{reference_s / min(times.values()):.0f}x", "10x", "50x"
    yield from feature_rows()


def feature_rows():
    """The row of features of programs."""
    language = Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32")), (("f", "f32"),))
    rng = np.random.default_rng(17)
    programs = []
    while len(programs) < NUM_PROGRAMS:
        words = draw_words(language, rng)
        if language.lowering.lower(np.array(words, np.uint64)).num_instructions == NUM_OPERATIONS:
            programs.append(words)
    table = np.zeros((NUM_PROGRAMS, max(map(len, programs))), np.uint64)
    for row, words in zip(table, programs, strict=True):
        row[: len(words)] = words
    probes = [*rng.uniform(0.5, 2, (2, NUM_PROBES)).astype(np.float32), None]
    times = {}
    for level in levels():
        features = ProgramFeatures(VirtualMachine(language.lowering, level), probes)
        times[level] = best_s(lambda f=features: f.describe(table), 50) / NUM_PROGRAMS
    shown = ", ".join(f"{level} {each * 1e6:.2f}" for level, each in times.items())
    what = f"features of a program, {NUM_OPERATIONS} instructions, {NUM_CONSTANTS} constants, {NUM_PROBES} probe points"
    yield what, f"{shown} us", "3 us", "1.5 us"
