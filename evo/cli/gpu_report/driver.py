"""What a GPU and its driver are, and what the driver's calls take: parts of the report.

Owns the kernel that does nothing for a given time.
"""

import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from evo.about import VERSION
from evo.cli.gpu_report.work import MIX, Order, Told, has_nvrtc, programs_of_length, row
from evo.compile.assembler import assembler_options
from evo.compile.compiler import Module, PackCompiler
from evo.compile.packing import Packing
from evo.compile.request import InLine, assemble
from evo.compile.targets import architecture
from evo.evaluate.cuda.device import Device, driver_name
from evo.evaluate.cuda.interpreter_kernels import open_kernel
from evo.instructions import shipped_instruction_set
from evo.kernel import nvrtc
from evo.language.program import Language
from evo.native import nvptxcompiler

LANGUAGE = Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32"), ("z", "f32")), (("f", "f32"),))

_SMI = "clocks.sm,clocks.max.sm,clocks.max.mem,power.limit,temperature.gpu,ecc.mode.current,mig.mode.current,compute_mode"
_ATTRIBUTES = {
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "highest clock, kHz": "CLOCK_RATE",
    "memory clock, kHz": "MEMORY_CLOCK_RATE",
    "memory bus, bits": "GLOBAL_MEMORY_BUS_WIDTH",
    "L2 cache, bytes": "L2_CACHE_SIZE",
    "shared memory of a multiprocessor, bytes": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "shared memory of a block, bytes": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "registers of a multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "ECC": "ECC_ENABLED",
}

# Runs for a number of cycles, and stores the cycles and nanoseconds that it took.
_SPIN = """.version 9.0
.target {target}
.address_size 64
.visible .entry spin(.param .u64 cycles, .param .u64 results)
{{
    .reg .u64 %cycles, %results, %began, %now, %began_ns, %now_ns;
    .reg .pred %again;
    ld.param.u64 %cycles, [cycles];
    ld.param.u64 %results, [results];
    mov.u64 %began_ns, %globaltimer;
    mov.u64 %began, %clock64;
$again:
    mov.u64 %now, %clock64;
    sub.u64 %now, %now, %began;
    setp.lt.u64 %again, %now, %cycles;
    @%again bra $again;
    mov.u64 %now_ns, %globaltimer;
    sub.u64 %now_ns, %now_ns, %began_ns;
    st.global.u64 [%results], %now;
    st.global.u64 [%results+8], %now_ns;
    ret;
}}
"""


class Spinner:
    """The kernel on a device, and a stream for it."""

    def __init__(self, device: Device):
        self.device, self.stream, self.event = device, device.stream(), device.event()
        text = _SPIN.format(target=architecture(device.info.target)).encode()
        self._function = device.function(device.load(assemble(text, device.info.target, assembler_options(3))), "spin")
        self._results, self._host = device.allocate(16), device.pinned(16)

    def start(self, seconds: float) -> None:
        """Starts it, for about so long."""
        cycles = np.uint64(seconds * self.device.clock_hz)
        self.device.launch(self._function, (1, 1), 1, [cycles, np.uint64(int(self._results))], self.stream)

    def run(self, seconds: float) -> None:
        """Starts it, and waits for it."""
        self.wait_for(lambda: self.start(seconds))

    def wait_for(self, submit: Callable[[], None]) -> None:
        """Submits work to the stream, and waits for it."""
        submit()
        self.end()

    def end(self) -> None:
        """Waits for the stream."""
        self.device.record(self.event, self.stream)
        self.device.wait(self.event, lambda: False)

    def clock_hz(self, seconds: float) -> float:
        """The clock that it finds while it runs."""
        self.start(seconds)
        self.device.copy_to_host(self._host, self._results, self.stream)
        self.end()
        cycles, nanoseconds = self._host.view(np.uint64)
        return float(cycles) / max(float(nanoseconds), 1.0) * 1e9


def device(order: Order, told: Told) -> str | None:
    """What the device, its driver and this installation are, and how much of a multiprocessor the interpreter gets."""
    opened = Device(order.ordinal)
    info = opened.info
    told(
        row(
            "device",
            f"{info.name}, {info.architecture}, {opened.free_bytes() / 2**30:.1f} of {info.num_bytes / 2**30:.1f} GiB free",
        )
    )
    told(row("UUID", f"{info.uuid}{', an instance of a GPU (MIG)' if 'MIG' in info.name else ''}"))
    told(row("driver", f"{driver_name()}, modules are loaded {'whole' if opened.loads_whole_modules() else 'kernel by kernel'}"))
    for what, name in _ATTRIBUTES.items():
        told(row(what, f"{opened.attribute(name):,}", value=opened.attribute(name)))
    told(row("clock of a busy kernel", f"{Spinner(opened).clock_hz(order.extent.spin_s) / 1e6:,.0f} MHz"))
    if shutil.which("nvidia-smi"):
        command = ["nvidia-smi", f"--id=GPU-{info.uuid}", f"--query-gpu={_SMI}", "--format=csv,noheader"]
        asked = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        told(row("nvidia-smi", f"{_SMI}: {asked.stdout or asked.stderr}"))
    told(row("evo", f"{VERSION}, assembler {nvptxcompiler.version()}, NVRTC {nvrtc.version() if has_nvrtc() else 'missing'}"))
    for sums in (False, True):
        kernel = open_kernel(opened, LANGUAGE, sums, MIX, None)
        assert kernel, "three inputs and an output leave room"
        got = kernel.resources
        text = "{registers} registers, carve-out {carveout} %, {blocks} blocks at once".format(**got)
        told(row(f"interpreter that {'sums' if sums else 'stores'}", text, figures=got))
        kernel.close()
    opened.close()
    return None


def calls(order: Order, told: Told) -> str | None:
    """What loading, unloading, launching, polling and copying take, and whether loading waits for a running kernel."""
    opened = Device(order.ordinal)
    spinner, rounds = Spinner(opened), order.extent.rounds
    batch = programs_of_length(LANGUAGE, 32, 128)
    compiler = PackCompiler(LANGUAGE, opened.info.target, InLine(), packing=Packing(sites_per_kernel=64, kernels_per_module=2))
    (cubin,) = [each.cubin for each in compiler.compile(batch) if isinstance(each, Module)]

    def tell(what: str, function: Callable[[], Any]) -> float:
        taken = _median_s(function, rounds)
        told(row(what, f"{taken * 1e6:,.1f} us", seconds=taken))
        return taken

    loaded: list[Any] = []
    for what, function in (
        ("load a module of 128 programs", lambda: loaded.append(opened.load(cubin))),
        ("unload it", lambda: opened.unload(loaded.pop())),
    ):
        idle_s = tell(f"{what}, idle", function)
        spinner.start(order.extent.spin_s * 2 * (rounds + 1))  # longer than all rounds, unless they wait for it
        busy_s = tell(f"{what}, beside a kernel", function)
        spinner.end()
        told(row("it waits for running kernels", "yes" if busy_s > idle_s + order.extent.spin_s else "no"))
    tell("launch, the call alone", lambda: spinner.start(0.0))
    tell("launch, until the end is seen", lambda: spinner.run(0.0))
    tell("query an event", lambda: opened.wait(spinner.event, lambda: False))
    for num_bytes in (1 << 12, 1 << 20, 1 << 26):
        host, memory = opened.pinned(num_bytes), opened.allocate(num_bytes)
        copies: list[tuple[str, Callable[[], None]]] = [
            ("copy to the host", partial(opened.copy_to_host, host, memory, spinner.stream)),
            ("copy to the device", partial(opened.copy_to_device, int(memory), host, spinner.stream)),
        ]
        for what, copy in copies:
            taken = _median_s(partial(spinner.wait_for, copy), rounds)
            told(row(f"{what}, {num_bytes >> 10:,} KiB", f"{num_bytes / taken / 1e9:,.2f} GB/s", seconds=taken))
        opened.free_pinned(host)
        opened.free(memory)
    opened.close()
    return None


def _median_s(function: Callable[[], Any], rounds: int) -> float:
    """Seconds: the median of some calls after one that warms up."""
    function()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        taken.append(time.perf_counter() - start)
    return median(taken)
