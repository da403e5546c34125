"""The process that works with a GPU (`evo.evaluate.cuda.device_child`), on a stand-in with options of its own.

It is light where a self-test passes without being done, as most tests want it.
"""

from __future__ import annotations

import os

SELF_TEST = "EVO_EMULATED_GPU_SELF_TEST"


def run_work(work: str, argument: object) -> tuple[str | None, bool]:
    """As `evo.evaluate.cuda.device_child.run_work`."""
    if work.startswith("evo.evaluate.cuda.device_tests:"):
        if SELF_TEST not in os.environ:
            return None, True
        if path := os.environ.get(f"{SELF_TEST}_LOG"):
            with open(path, "a") as file:
                file.write(f"{os.getpid()}\n")
        options = os.environ.pop(SELF_TEST)
    else:
        options = os.environ.get("EVO_EMULATED_GPU", "")
    os.environ["EVO_EMULATED_GPU"] = options
    from emulated_gpu.__main__ import prepare

    prepare()
    if wrong := os.environ.get(f"{SELF_TEST}_WRONG"):
        opcode, _, kernel = wrong.partition("@")
        spoil(opcode, kernel)
    from emulated_gpu.compiling import run_work_on_device
    from evo.evaluate.cuda import evaluator  # noqa: F401 - compiles by what `prepare` replaces

    prepare()
    return run_work_on_device(work, argument)


def spoil(opcode: str, kernel: str) -> None:
    """Gives the results of an opcode a wrong lowest bit in the first thread, in one kernel or, if that is empty, in all."""
    from dataclasses import replace

    from emulated_gpu import ptx_decode

    operation, decode = ptx_decode.operation, ptx_decode.Code.decode
    kernels = []  # that are being decoded

    def spoiled(name: str, num_operands: int):
        meaning = operation(name, num_operands)
        is_wrong = name == opcode and kernel in ("", kernels[-1])
        return replace(meaning, function=lambda *args: wrong(meaning.function(*args))) if is_wrong else meaning

    def decode_in(code, place: int):
        kernels.append(code.kernel.name)
        return decode(code, place)

    ptx_decode.operation, ptx_decode.Code.decode = spoiled, decode_in


def wrong(result):
    """A copy of an array with a wrong lowest bit at its beginning."""
    copy = result.copy()
    copy.view("uint32")[0] ^= 1
    return copy
