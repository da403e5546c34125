"""How the CUDA evaluator does its work, as a config's section `evaluation` says it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from evo.compile.executor import num_local_workers
from evo.compile.packing import Packing
from evo.evaluate.cpu import SCORE_SECONDS, ExecutorName
from evo.evaluate.cuda.choice import COMPILE


@dataclass(frozen=True)
class CudaOptions:
    """How to do the work. Only `compile_seconds` can change a result.

    device: its ordinal; None: the first usable one. num_workers: compile processes; None: one per core; 0: none, but only a
    farm. farm: as in a config; None: none. packing: how many programs go together. opt_level: the assembler's; None:
    `evo.compile.assembler.choose_opt_level`. compile_seconds: limit for one compilation. launch_seconds: limit for one pack on
    the device. num_threads: threads that encode, and threads or processes that score; None: one per core. executor: which of
    them score outputs in Python; auto: processes, if there are several and they can. score_seconds: limit for scoring a chunk
    in a process. lane: of `evo.evaluate.cuda.choice`. lanes_problem: why it must be this one, or None. instructions: names of
    those that programs may use, for the interpreter; None: any.
    """

    device: int | None = None
    num_workers: int | None = None
    farm: Mapping[str, Any] | None = None
    packing: Packing = field(default_factory=Packing)
    opt_level: int | None = None
    compile_seconds: float = 60.0
    launch_seconds: float = 60.0
    num_threads: int | None = None
    executor: ExecutorName = "auto"
    score_seconds: float = SCORE_SECONDS
    lane: str = COMPILE
    lanes_problem: str | None = None
    instructions: Collection[str] | None = None

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], instructions: Collection[str] | None = None) -> CudaOptions:
        """The options in a config's section `evaluation`, given as plain values."""
        return cls(
            device=settings["device"],
            num_workers=num_local_workers(settings),
            farm=settings["farm"],
            packing=Packing(**settings["packing"]),
            opt_level=settings["opt_level"],
            compile_seconds=settings["compile_seconds"],
            launch_seconds=settings["launch_seconds"],
            num_threads=settings["threads"],
            executor=settings["executor"],
            score_seconds=settings["score_seconds"],
            lane=settings["lane"],
            instructions=instructions,
        )
