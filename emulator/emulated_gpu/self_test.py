"""The process of a self-test, on a stand-in with options of its own (see `emulated_gpu`)."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import numpy as np

from emulated_gpu import ptx_decode
from emulated_gpu.__main__ import prepare


def main() -> None:
    """As `evo.evaluate.cuda.self_test_child.main`."""
    if path := os.environ.get("EVO_EMULATED_GPU_SELF_TEST_LOG"):
        with open(path, "a") as file:
            file.write(" ".join(sys.argv[1:]) + "\n")
    os.environ["EVO_EMULATED_GPU"] = os.environ.pop("EVO_EMULATED_GPU_SELF_TEST")
    prepare()
    if wrong := os.environ.get("EVO_EMULATED_GPU_SELF_TEST_WRONG"):
        opcode, _, kernel = wrong.partition("@")
        spoil(opcode, kernel)
    from evo.evaluate.cuda import self_test_child

    prepare()
    self_test_child.main(int(sys.argv[1]))


def spoil(opcode: str, kernel: str) -> None:
    """Gives the results of an opcode a wrong lowest bit in the first thread, in one kernel or, if that is empty, in all."""
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


def wrong(result: np.ndarray) -> np.ndarray:
    """A copy with a wrong lowest bit at its beginning."""
    copy = result.copy()
    copy.view(np.uint32)[0] ^= 1
    return copy
