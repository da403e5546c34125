"""Lanes: results whose parts depend on one input each, so that each input is proven by itself.

A function may have an attribute `lanes`: for each input, a mask of each output. In these bits the function is then what it is
with all other inputs 0. A program computes it if its bits there depend on that input alone, and are right for each of its words.
Owns which bits of a program depend on which inputs. Knows nothing of functions.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evo.language.program import Language
from evo.native.stack_ptx import NodeKind

_Bits = list[int]  # of each bit, the inputs that it may depend on, as a mask


def depends_on_lane_alone(language: Language, words: NDArray[np.uint64], lanes: Sequence[Sequence[int]]) -> bool:
    """Whether each lane's bits of a program depend on no other input. Instructions are taken to mix all bits, but for logic, and
    shifts and permutations by constants.
    """
    outputs = _dependences(language, words)
    return all(
        all(outputs[k][bit] in (0, 1 << lane) for bit in range(32) if mask >> bit & 1)
        for lane, masks in enumerate(lanes)
        for k, mask in enumerate(masks)
    ) and all(sum(masks[k] for masks in lanes) == 0xFFFFFFFF for k in range(len(outputs)))


def _dependences(language: Language, words: NDArray[np.uint64]) -> list[_Bits]:
    lowered, instructions = language.lowering.lower(words), language.instruction_set.instructions
    found: dict[int, _Bits] = {}
    constants: dict[int, int] = {}
    for node in lowered.nodes:
        value, payload = int(node["first_value"]), int(node["payload"])
        if node["kind"] == NodeKind.INPUT:
            found[value] = [1 << payload] * 32
        elif node["kind"] == NodeKind.CONSTANT:
            found[value], constants[value] = [0] * 32, payload
        else:
            first, count = int(node["first_operand"]), int(node["num_operands"])
            ids = [int(each) for each in lowered.operands[first : first + count]]
            found[value] = _of(instructions[payload].ptx, [found[i] for i in ids], [constants.get(i) for i in ids])
    return [found.get(int(each), [0] * 32) for each in lowered.request_values]


def _of(ptx: str, operands: list[_Bits], constants: list[int | None]) -> _Bits:
    last = constants[-1]
    if ptx.startswith("lop3."):
        return [a | b | c for a, b, c in zip(*operands, strict=True)]
    if ptx == "prmt.b32" and last is not None:
        both = operands[0] + operands[1]
        fields = [both[8 * (last >> 4 * k & 7) : 8 * (last >> 4 * k & 7) + 8] for k in range(4)]
        return [d for k, f in enumerate(fields) for d in (f if not last >> 4 * k & 8 else [f[7]] * 8)]
    if ptx in ("shl.b32", "shr.u32") and last is not None and last < 32:
        return [0] * last + operands[0][: 32 - last] if ptx == "shl.b32" else operands[0][last:] + [0] * last
    if ptx.startswith("cvt.pack.sat."):
        a, b = (_any(each) for each in operands[:2])
        return [b] * 8 + [a] * 8 + operands[2][:16]
    mixed = 0
    for each in operands:
        mixed |= _any(each)
    return [mixed] * 32


def _any(bits: _Bits) -> int:
    found = 0
    for each in bits:
        found |= each
    return found
