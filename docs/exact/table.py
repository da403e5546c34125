"""The table of docs/exact.md: `python docs/exact/table.py [SEEDS] [NAMES]` counts found programs beside others.

Hand-written forms are programs too, checked at a sample and counted by the same slots. NVRTC's PTX of plain CUDA C is
counted in the same way, without moves, loads and stores.
"""

import re
import sys
import time

import numpy as np

from evo.approximation.bits import ExactFunction
from evo.approximation.exact import exact_language, wrong_bits
from evo.approximation.nodes import program_text
from evo.approximation.samples import sample
from evo.approximation.synthesis import synthesized
from evo.evaluate.slots import slots_of
from evo.instructions import shipped_instruction_set
from evo.language.program import parse_program
from evo.native.ptx_vm import VirtualMachine


# By hand, as formulas of nodes: an instruction and its operands; integers are constants, a name is an input.
def _shr(x, k):
    return ("shr", x, k) if k else x


def _marlin(x, right, mask, scale, form):
    """Sign and magnitude of small floats, moved to where the larger format has them, and a product for the exponent."""
    return (f"mul2_{form}", ("lop3_f8", ("lop3_c0", x, 0x80008000, 0), ("shr", x, right), mask), scale)


Q, X = ("%", 0), ("%", 0)
_BIASED = ("lop3_3c", Q, 0x80808080, 0)
_BYTES = [("addf", ("prmt", _BIASED, 0x4B000000, 0x7440 | k), 0xCB000080) for k in range(4)]
_HALVES = ("prmt", ("%", 0), ("%", 1), 0x5140)
_HIGH = ("mulhi", X, 0x24924925)
_SIZE = ("min2_bf16", ("lop3_c0", X, 0x7FFF7FFF, 0), 0x43E043E0)
_POWER = ("max2_bf16", ("lop3_c0", _SIZE, 0x7F807F80, 0), 0x3C803C80)
_ROUND = ("fma2_bf16", _POWER, 0xC180C180, ("fma2_bf16", _POWER, 0x41804180, _SIZE))
_CODES = ("shr", ("fma2_bf16", _ROUND, 0x03800380, 0), 4)


def _delta_swaps(node, *steps):
    for k, mask in steps:
        moved = ("lop3_28", node, ("shr", node, k), mask)
        node = ("lop3_96", node, moved, ("shl", moved, k))
    return node


def _ternary():
    pairs = [("mul", ("lop3_c0", ("mul", Q, factor), 0x00FF00FF, 0), 3) for factor in (0x00030001, 0x001B0009)]
    return [("prmt", *pairs, 0x7531), ("mulhi", ("mul", Q, 81 << 24), 3)]


HAND = {
    "u4x8_f16x2x4": [
        ("fma2_f16", ("lop3_ea", _shr(Q, 8 * (k // 2)), 0x00F000F0, 0x64006400), 0x2C002C00, 0xD400D400)
        if k % 2
        else ("add2_f16", ("lop3_ea", _shr(Q, 8 * (k // 2)), 0x000F000F, 0x64006400), 0xE400E400)
        for k in range(4)
    ],
    "u4x8_bf16x2x4": [("add2_bf16", ("lop3_ea", _shr(Q, 4 * k), 0x000F000F, 0x43004300), 0xC300C300) for k in range(4)],
    "s8x4_f16x2x2": [("add2_f16", ("prmt", _BIASED, 0x64646464, code), 0xE480E480) for code in (0x4140, 0x4342)],
    "s8x4_bf16x2x2": [("prmt", _BYTES[0], _BYTES[1], 0x7632), ("prmt", _BYTES[2], _BYTES[3], 0x7632)],
    "e4m3x4_f16x2x2": [_marlin(word, 1, 0x3F803F80, 0x5C005C00, "f16") for word in (("shl", Q, 8), Q)],
    "e5m2x4_f16x2x2": [("prmt", Q, 0, 0x1404), ("prmt", Q, 0, 0x3424)],
    "e4m3x4_bf16x2x2": [_marlin(word, 4, 0x07F007F0, 0x7B807B80, "bf16") for word in (("shl", Q, 8), Q)],
    "e2m1x8_f16x2x4": [_marlin(("shl", Q, 12 - 4 * k) if k < 3 else Q, 3, 0x0E000E00, 0x74007400, "f16") for k in range(4)],
    "ue4m3_f32": [("mulf", ("shl", Q, 20), 0x7B800000)],
    "f32_bf16": [("bf16x2_of_f32", X, X)],
    "bf16x2_e4m3x2": [("lop3_ca", 0x7F7F7F7F, ("prmt", _CODES, 0, 0x4420), ("prmt", X, 0, 0x4431))],
    "f32x4_s8x4": [
        (
            "pack_s8",
            ("s32_of_f32", ("%", 1)),
            ("s32_of_f32", ("%", 0)),
            ("pack_s8", ("s32_of_f32", ("%", 3)), ("s32_of_f32", ("%", 2)), 0),
        )
    ],
    "ternary5": _ternary(),
    "div7": [("shr", ("add", ("shr", ("sub", X, _HIGH), 1), _HIGH), 2)],
    "div10": [("shr", ("mulhi", X, 0xCCCCCCCD), 3)],
    "morton16": [_delta_swaps(_HALVES, (4, 0x00F000F0), (2, 0x0C0C0C0C), (1, 0x22222222))],
    "average4": [("shr", ("dp4a_u", Q, 0x01010101, 0), 2)],
    "ordered": [("lop3_1e", X, ("sar", X, 31), 0x80000000)],
}

# Plain CUDA C, of inputs a, b, c, d in memory, to outputs r[0] and so on.
_U4_HALF = "for (int k = 0; k < 4; k++) r[k] = {two}({one}((int)(a >> 4*k & 15)), {one}((int)(a >> (4*k + 16) & 15)));"
_FP8 = "for (int k = 0; k < 2; k++) r[k] = {two}({one}(fp8(a >> 8*k)), {one}(fp8(a >> (8*k + 16))));"
C_OF = {
    "div7": "r[0] = a / 7;",
    "div10": "r[0] = a / 10;",
    "average4": "r[0] = ((a & 255) + (a >> 8 & 255) + (a >> 16 & 255) + (a >> 24)) >> 2;",
    "ordered": "r[0] = a >> 31 ? ~a : a | 0x80000000;",
    "f32_bf16": "r[0] = (a + 0x7fff + (a >> 16 & 1)) >> 16;",
    "ue4m3_f32": "r[0] = __float_as_uint(__uint_as_float(a << 20) * 0x1p120f);",
    "e5m2x4_f16x2x2": "r[0] = (a & 255) << 8 | (a >> 8 & 255) << 24; r[1] = (a >> 16 & 255) << 8 | (a & 0xff000000);",
    "morton16": "unsigned v[2] = {a & 0xffff, b & 0xffff}; for (int i = 0; i < 2; i++) { v[i] = (v[i] | v[i] << 8) & 0xff00ff; "
    "v[i] = (v[i] | v[i] << 4) & 0xf0f0f0f; v[i] = (v[i] | v[i] << 2) & 0x33333333; v[i] = (v[i] | v[i] << 1) & 0x55555555; } "
    "r[0] = v[0] | v[1] << 1;",
    "ternary5": "unsigned n = a, e[5]; for (int k = 0; k < 5; k++) { n *= 3; e[k] = n >> 8; n &= 255; } "
    "r[0] = e[0] | e[1] << 8 | e[2] << 16 | e[3] << 24; r[1] = e[4];",
    "f32x4_s8x4": "unsigned x[4] = {a, b, c, d}; r[0] = 0; for (int k = 0; k < 4; "
    "k++) { int n = __float2int_rn(__uint_as_float(x[k])); "
    "n = n < -128 ? -128 : n > 127 ? 127 : n; r[0] |= (n & 255) << 8*k; }",
    "u4x8_f16x2x4": _U4_HALF.format(two="pack", one="half_of"),
    "u4x8_bf16x2x4": _U4_HALF.format(two="pack", one="bf16_of"),
    "s8x4_f16x2x2": "for (int k = 0; k < 2; "
    "k++) r[k] = pack(half_of((signed char)(a >> 16*k)), half_of((signed char)(a >> (16*k + 8))));",
    "s8x4_bf16x2x2": "for (int k = 0; k < 2; "
    "k++) r[k] = pack(bf16_of((signed char)(a >> 16*k)), bf16_of((signed char)(a >> (16*k + 8))));",
}
_C = """
__device__ unsigned short half_of(int n) { unsigned short h; asm("cvt.rn.f16.s32 %0, %1;" : "=h"(h) : "r"(n)); return h; }
__device__ unsigned short bf16_of(int n) { unsigned short h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"((float)n)); return h; }
__device__ unsigned pack(unsigned short low, unsigned short high) { return low | (unsigned)high << 16; }
extern "C" __global__ void k(const unsigned *p, unsigned *out) {
    unsigned a = p[0], b = p[1], c = p[2], d = p[3], r[4];
    BODY
    for (int i = 0; i < OUTPUTS; i++) out[i] = r[i];
}
"""
_FREE = ("ld.", "st.", "mov.", "cvta.", "ret", "cvt.u16", "cvt.s16", "cvt.u32.u16", "cvt.s32.s16", "cvt.s32.s8", "cvt.u32.u32")
_SPECIAL = ("cvt.rn.f16.s32", "cvt.rn.bf16.f32", "cvt.rni", "cvt.rn.f32")


def by_nvrtc(name: str) -> str:
    """Issue slots of what NVRTC makes, by PTX: 8 for conversions between numbers, 2 for integers, 1 for floats."""
    from cuda.bindings import nvrtc

    if name not in C_OF:
        return ""
    source = _C.replace("BODY", C_OF[name]).replace("OUTPUTS", str(len(HAND[name])))
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"k.cu", 0, [], [])
    options = [b"--gpu-architecture=compute_90", b"-default-device"]
    [error] = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(error):
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(log.decode())
    _, size = nvrtc.nvrtcGetPTXSize(program)
    ptx = b" " * size
    nvrtc.nvrtcGetPTX(program, ptx)
    lines = [line.strip() for line in ptx.decode().splitlines()]
    count = 0.0
    for line in lines:
        match = re.match(r"(?:\{\s*)?([a-z][a-z0-9_]*\.[a-zA-Z0-9_.]+)\s", line)
        if match and not match[1].startswith(_FREE):
            count += 8 if match[1].startswith(_SPECIAL) else 1 if match[1].endswith(".f32") else 2
    return f"{count:g}"


def slots(function: ExactFunction, text: str) -> float:
    """Issue slots of a program; NaN if it is wrong somewhere on a sample."""
    language, points = exact_language(function), sample(function, 1 << 14, 5)
    words = parse_program(language, text, function.text)
    results = VirtualMachine(language.lowering).store(words[None], [*points, *[None] * len(function.outputs)])[0].view(np.uint32)
    costs = slots_of(shipped_instruction_set("bits"), "sm_90")
    is_wrong = wrong_bits(function, results, function(*points)).any()
    return float("nan") if is_wrong else float(language.lowering.sums(words[None], costs)[0])


def main() -> None:
    """Prints a row for each function."""
    num_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    for name in sys.argv[2].split(",") if len(sys.argv) > 2 else HAND:
        function, found, seconds = ExactFunction(name), [], [0.0]
        hand = slots(function, program_text(HAND[name], function))
        for seed in range(1, 1 + num_seeds):
            start_s = time.process_time()
            texts = synthesized(function, "sm_90", seed)
            seconds.append(time.process_time() - start_s)
            found.append(slots(function, texts[0]) if texts else float("nan"))
        counts = ", ".join(f"{each:g}" for each in found)
        print(f"| {name} | {counts} | {hand:g} | {by_nvrtc(name)} | {max(seconds):.0f} |", flush=True)


if __name__ == "__main__":
    main()
