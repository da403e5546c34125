"""Options of evaluation: the section `evaluation` of a config."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evo.compile.packing import Packing
from evo.options import Integer, Options, Seconds, Workers
from evo.workers import MAX_WORKERS

AUTO = "auto"
BackendName = Literal["auto", "cuda", "cpu"]  # `evo.evaluate.backends` has them
ExecutorName = Literal["auto", "threads", "processes"]
LaneName = Literal["auto", "interpret", "compile"]


class TlsFiles(Options):
    """PEM files, relative to the config file: the authority's certificate, and this client's certificate and key."""

    ca: str
    cert: str
    key: str


class ClusterOptions(Options):
    """Dask workers that evaluate batches in place of this machine (docs/cluster.md).

    `scheduler`: its address; in Python also a `distributed.Client`. `tls`: for an address that begins with `tls://`; null: Dask's
    own config decides. `wait_seconds`: longest wait for a first worker, or for another one after all were lost.
    """

    scheduler: str
    tls: TlsFiles | None = None
    wait_seconds: Seconds = 60.0

    @model_validator(mode="after")
    def _is_address(self) -> Self:
        if not re.fullmatch(r"\w+://[^/\s]+:\d+|inproc://\S+", self.scheduler):
            raise ValueError(f"scheduler {self.scheduler}: must be an address such as tcp://10.0.0.1:8786")
        if self.tls and not self.scheduler.startswith("tls://"):
            raise ValueError(f"scheduler {self.scheduler}: 'tls' needs an address that begins with tls://")
        return self


class FarmOptions(Options):
    """Compile workers on other machines (`evo worker`).

    `listen` is where they connect, such as tcp://0.0.0.0:5711. `keys` is the folder of the run's keys (`evo worker --new-keys`),
    relative to the config file; an address beyond this machine needs it. `server_file`: where the run writes its address for
    workers, relative to the config file.
    """

    listen: str
    keys: str | None = None
    server_file: str | None = None


class EvaluationOptions(Options):
    """Options of evaluation: devices, lanes, workers, limits.

    `backend`: auto takes an NVIDIA GPU if one can be used, passes its self-test and is measured to be faster
    (`evo.evaluate.calibration`). CPU and GPU differ in the last bits of approximate instructions. No other key changes a result,
    except `compile_seconds`, after which a program counts as failed, and `opt_level` last bits of rare programs (docs/gpu.md).
    Both: `threads` evaluate and score; null: one per core. `executor` says whether these are threads or processes, which run
    a `score` in Python in parallel; auto: processes, or on the CPU threads, if the task has a reduction or `cpu_sums`.
    `score_seconds` limits the scoring of a chunk of programs, and the run ends when it passes. `simd`, auto: the
    widest, portable: the least that every machine has. GPU: `device` is its number,
    null: the first that can be used; runs of a sweep and Dask workers beside each other take one each; `lane`: programs are
    interpreted or compiled, auto: by the number of points; `registers` lets the interpreter keep all values in registers if it
    can (docs/gpu.md), which no GPU has measured yet; `compile_workers` are processes, null: one per core; `farm` adds workers
    of other machines, and `local_workers` are the processes beside it, null: `compile_workers`, 0: none; `packing`; `opt_level`
    of the assembler, null: by the number of points; `launch_seconds` limits the kernels of one pack, and the run ends when it
    passes; `cache_megabytes` of cubins are kept on disk for all runs, 0: none.
    `cluster`: Dask workers do the work.
    """

    backend: BackendName = "auto"
    threads: Workers | None = None
    simd: Literal["auto", "portable", "baseline", "avx2", "avx512"] = "auto"
    executor: ExecutorName = "auto"
    score_seconds: Seconds = 300.0
    device: Annotated[Integer, Field(ge=0)] | None = None
    lane: LaneName = "auto"
    registers: bool = False
    compile_workers: Workers | None = None
    local_workers: Annotated[Integer, Field(ge=0, le=MAX_WORKERS)] | None = None
    farm: FarmOptions | None = None
    packing: Packing = Packing()
    opt_level: Annotated[Integer, Field(ge=0, le=3)] | None = None
    compile_seconds: Seconds = 60.0
    launch_seconds: Seconds = 60.0
    cache_megabytes: Annotated[Integer, Field(ge=0, le=1 << 20)] = 2048
    cluster: ClusterOptions | None = None

    @property
    def num_compilers(self) -> int | None:
        """Compile processes of this machine; None: one per core."""
        return self.compile_workers if self.local_workers is None else self.local_workers

    @model_validator(mode="after")
    def _somebody_compiles(self) -> Self:
        if self.local_workers is not None and self.farm is None:
            raise ValueError("local_workers are the processes beside a farm; without one, set compile_workers")
        if self.farm and self.cluster:
            raise ValueError("farm and cluster do not go together: the cluster's workers compile what they run")
        return self
