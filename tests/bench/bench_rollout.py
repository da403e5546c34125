"""Rollouts on the CPU: point-steps a second beside the virtual machine's points, and beside a loop over steps in NumPy.

    python tests/bench/run.py rollout

One thread on one core, 1,000 trajectories of 1,000 steps, 8 programs of 32 instructions over two states; a grid of 64 x 64 cells,
200 steps of reaction and diffusion of two states, 8 programs of 8 instructions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

import evo
from evo.evaluate.loops import LoopRunner
from evo.instructions import shipped_instruction_set
from evo.language.infix import parse_infix
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine

COUNT, STEPS, REPEATS = 1000, 1000, 5
POINTS = 1 << 14
SIDE, GRID_STEPS = 64, 200


class Looped(evo.Task):
    """A map of two states."""

    inputs = {"x": "f32", "y": "f32"}
    outputs = {"p": "f32", "q": "f32"}
    rollout = evo.Rollout(steps=STEPS, state={"x": "p", "y": "q"}, record_every=10)


class Cells(evo.Task):
    """Reaction and diffusion of two states."""

    inputs = {"x": "f32", "y": "f32"}
    outputs = {"p": "f32", "q": "f32"}
    rollout = evo.Rollout(
        steps=GRID_STEPS,
        state={
            "x": "x + 0.16*(x_n + x_s + x_w + x_e - 4*x) + p",
            "y": "y + 0.08*(y_n + y_s + y_w + y_e - 4*y) + q",
        },
        record_every=10,
        grid=evo.Grid((SIDE, SIDE), "von_neumann"),
    )


def text_of(number: int) -> str:
    """About 32 instructions."""
    p, q = "s", "t"
    for k in range(4):
        p = f"({p}*x - {0.3 + 0.01 * number:g}*y + {0.1 * k:g}*x)" if k < 3 else f"({p}*y + x)"
        q = f"({q}*y + {0.2 + 0.01 * number:g}*x - {0.1 * k:g}*y)" if k < 3 else f"({q}*x + y)"
    return f"s = x*y; t = x - y; p = sin({p}); q = sin({q})"


def best_s(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def language_of(task: evo.Task) -> Language:
    return Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))


def grid_row() -> tuple[str, str, str, str]:
    task = Cells()
    language = language_of(task)
    names = [each.name for each in language.instruction_set.instructions]
    text = "r = x*y*y\np = {}*(1 - x) - r\nq = r - {}*y"
    words = np.stack([parse_infix(language, text.format(0.03 + 0.001 * k, 0.09), "bench", 96, names) for k in range(8)])
    x, y = np.random.default_rng(1).uniform(0.2, 0.8, (2, 1, SIDE, SIDE)).astype(np.float32)
    machine, loop = VirtualMachine(language.lowering), LoopRunner(language, task)
    columns, _ = loop.columns({"x": x, "y": y}, "points()")
    step_s = best_s(lambda: loop.run(machine, words, columns)) / (len(words) * SIDE**2 * GRID_STEPS)

    def numpy_loop() -> None:
        u, v = x[0], y[0]
        records = []
        for step in range(GRID_STEPS):
            r = u * v * v
            around = [sum(np.roll(each, at, axis) for at in (1, -1) for axis in (0, 1)) - 4 * each for each in (u, v)]
            u, v = u + 0.16 * around[0] + 0.03 * (1 - u) - r, v + 0.08 * around[1] + r - 0.09 * v
            if step % 10 == 9:
                records.append((u, v))

    numpy_s = best_s(numpy_loop) / (SIDE**2 * GRID_STEPS)
    what = f"{SIDE} x {SIDE} cells, {1e-6 / step_s:.0f} million cell-steps/s"
    return f"grid of cells against np.roll in float32 ({what})", f"{numpy_s / step_s:.0f}x", "", ""


def rows() -> Iterator[tuple[str, str, str, str]]:
    """For tests/bench/run.py."""
    task = Looped()
    language = language_of(task)
    names = [each.name for each in language.instruction_set.instructions]
    words = np.stack([parse_infix(language, text_of(number).replace("; ", "\n"), "bench", 96, names) for number in range(8)])
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-1.0, 1.0, (2, POINTS)).astype(np.float32)
    machine, loop = VirtualMachine(language.lowering), LoopRunner(language, task)
    counts = language.lowering.analyze(words)[1]
    starts = [x[:COUNT].copy(), y[:COUNT].copy()]
    registers = [x, y, *[None] * (len(language.registers) - 2)]
    point_s = best_s(lambda: machine.store(words, registers)) / (len(words) * POINTS)
    step_s = best_s(lambda: loop.run(machine, words, starts)) / (len(words) * COUNT * STEPS)
    what = f"{counts.min()} to {counts.max()} instructions, {1e-6 / step_s:.0f} million point-steps/s"
    yield f"rollout against the virtual machine on points ({what})", f"{point_s / step_s:.2f}x", "0.7x", "0.9x"

    scope = {"sin": np.sin}
    lines = [compile(text_of(0).replace("; ", "\n"), "bench", "exec")]

    def numpy_loop(dtype: type = np.float64) -> None:
        scope["x"], scope["y"] = (start.astype(dtype) for start in starts)
        records = []
        for step in range(STEPS):
            exec(lines[0], scope)
            scope["x"], scope["y"] = scope["p"], scope["q"]
            if step % 10 == 9:
                records.append((scope["x"], scope["y"]))

    for dtype in (np.float64, np.float32):  # the latter takes twice the values in a vector
        numpy_s = best_s(lambda dtype=dtype: numpy_loop(dtype)) / (COUNT * STEPS)
        what = f"rollout against a loop in NumPy ({dtype.__name__}), 1,000 trajectories"
        yield what, f"{numpy_s / step_s:.0f}x", "30x", "200x"
    yield grid_row()
