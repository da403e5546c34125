"""Rollouts on the CPU: point-steps a second beside the virtual machine's points, and beside a loop over steps in NumPy.

    python tests/bench/run.py rollout

One thread on one core, 1,000 trajectories of 1,000 steps, 8 programs of 32 instructions over two states.
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


class Looped(evo.Task):
    """A map of two states."""

    inputs = {"x": "f32", "y": "f32"}
    outputs = {"p": "f32", "q": "f32"}
    rollout = evo.Rollout(steps=STEPS, state={"x": "p", "y": "q"}, record_every=10)


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


def rows() -> Iterator[tuple[str, str, str, str]]:
    """For tests/bench/run.py."""
    task = Looped()
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
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

    def numpy_loop() -> None:
        scope["x"], scope["y"] = (start.astype(np.float64) for start in starts)
        records = []
        for step in range(STEPS):
            exec(lines[0], scope)
            scope["x"], scope["y"] = scope["p"], scope["q"]
            if step % 10 == 9:
                records.append((scope["x"], scope["y"]))

    numpy_s = best_s(numpy_loop) / (COUNT * STEPS)
    yield "rollout against a loop in NumPy (float64), 1,000 trajectories", f"{numpy_s / step_s:.0f}x", "30x", "200x"
