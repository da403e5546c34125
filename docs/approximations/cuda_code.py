"""CUDA's own functions as yardsticks: the PTX that NVRTC writes for an expression, its issue slots, and a CPU function of it.

Owns the translation of straight and branching PTX to C, by the arithmetic of csrc/detail/ptx_vm_functions.h, which is that of
evo's proofs: a branch becomes a choice. Loops, local memory and f64 (Payne and Hanek's reduction) are left out: an input that
gets there gives NaN. Needs gcc, and a CPU with AVX2.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from evo.approximation.formats import Format
from evo.approximation.functions import Function
from evo.approximation.sweep import Sweep, SweepResult
from evo.instructions import open_instruction_set
from evo.kernel import nvrtc
from evo.language.program import Language, parse_program

TARGET = "sm_90"
CSRC = Path(__file__).parents[2] / "csrc"
LANGUAGE = Language(open_instruction_set("wide"), (("x", "f32"),), (("y", "f32"),))
_LINE = re.compile(r"(?:@(!?)%(\w+)\s+)?([a-z][\w.]*)\s+(.*);")
_ADDRESSES = ("ld.param", "cvta", "mul.wide", "cvt.u64", "add.s64", "shl.b64", "mov.u64", "add.u64", "ld.global.f32")
_SLOW = re.compile(r"\.local|\.nc\.|f64|\.wide|\.u64")
_SIMPLE = {  # PTX without its type, rounding and .ftz, to a function of ptx_vm_functions.h
    "add": "add_f32", "sub": "sub_f32", "mul": "mul_f32", "fma": "fma_f32", "div.approx": "div_f32", "abs": "abs_f32",
    "neg": "neg_f32", "min": "min_f32", "max": "max_f32", "rcp.approx": "rcp_f32", "sqrt.approx": "sqrt_f32",
    "rsqrt.approx": "rsqrt_f32", "sin.approx": "sin_f32", "cos.approx": "cos_f32", "lg2.approx": "lg2_f32",
    "ex2.approx": "ex2_f32", "tanh.approx": "tanh_f32", "copysign": "copysign_f32", "rcp.rn": "rcp_f32", "div.rn": "div",
    "cvt.rni": "round",
}  # fmt: skip
_INTEGER = {
    "add.s32": "x + y", "sub.s32": "x - y", "and.b32": "x & y", "or.b32": "x | y", "xor.b32": "x ^ y", "shl.b32": "x << y",
    "shr.u32": "x >> y", "shr.s32": "(U)((S)x >> (S)y)", "add.u32": "x + y", "sub.u32": "x - y", "mul.lo.s32": "x * y",
    "and.pred": "x & y", "or.pred": "x | y", "xor.pred": "x ^ y", "not.pred": "~x",
}  # fmt: skip
_COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
# By disassembly for sm_90, as the table's own numbers are, where the table has no row: conversions between floats and to integers
# take the unit of special functions; results that are rounded to nearest take more instructions, here without the branch that
# looks after extreme operands; without .ftz, ex2 and lg2 scale theirs. What saturates is a modifier, what moves is free.
_OTHER_SLOTS = {
    "cvt.rni": 8.0,
    "cvt.rni.s32.f32": 8.0,
    "cvt.sat": 0.0,
    "rcp.rn": 17.0,
    "div.rn": 16.0,
    "bra": 0.0,
    "bra.uni": 0.0,
}
_SCALED = 4.0

_FRAME = """
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "ptx_vm_functions.h"
typedef PtxVmV V;
typedef PtxVmU U;
typedef PtxVmS S;
#define B(bits) ptx_vm__set_bits(bits)
#define PICK(m, yes, no) ptx_vm__select(ptx_vm__to_mask(m), yes, no)
static inline V rounded(V a, V b, V c, unsigned mode) { /* fma in another mode: 1 down, 3 to zero */
    unsigned old, now;
    __asm__ volatile("vstmxcsr %0" : "=m"(old));
    now = (old & ~0x6000u) | mode << 13;
    __asm__ volatile("vldmxcsr %2\\n\\tvfmadd213ps %4, %3, %0\\n\\tvldmxcsr %1"
                     : "+x"(a) : "m"(old), "m"(now), "x"(b), "x"(c));
    return a;
}
void run(const float* in, float* out, uint64_t* reached, size_t n) {
    const unsigned old = _mm_getcsr();
    _mm_setcsr(@MODE@);
    for (size_t i = 0; i < n; i += PTX_VM__LANES) {
        const V x = ptx_vm__load(in + i);
        V y = x;
@CODE@
        ptx_vm__store(out + i, y);
    }
    _mm_setcsr(old);
}
"""


def kernel(expression: str, before: str = "") -> str:
    """CUDA source of a kernel that maps x to an expression."""
    return f'{before}\nextern "C" __global__ void f(const float *in, float *out) {{ float x = *in; *out = {expression}; }}'


def ptx_of(source: str, fast: bool) -> str:
    """The PTX of a source, with or without --use_fast_math."""
    options = [f"--gpu-architecture={TARGET.replace('sm', 'compute')}", *(["--use_fast_math"] if fast else [])]
    return nvrtc.compile(source.encode(), "f.cu", {}, options).decode()


@dataclass
class Block:
    """Instructions that run together: (guard, opcode, operands). slow: it has what is not translated."""

    label: str
    lines: list[tuple[str, str, list[str]]] = field(default_factory=list)
    slow: bool = False

    def slots(self) -> float:
        return sum(_slots(opcode) for _, opcode, _ in self.lines)


def blocks_of(ptx: str) -> list[Block]:
    """The blocks of the one kernel in a text."""
    body = ptx[ptx.rindex(".entry") :]
    found = [Block("entry")]
    for line in body[body.index("{") + 1 :].splitlines():
        if match := re.match(r"\s*(\$\w+):", line):
            found.append(Block(match[1]))
        elif match := _LINE.match(line.strip()):
            opcode = match[3]
            slow = bool(_SLOW.search(opcode)) and not opcode.startswith(_ADDRESSES)
            found[-1].slow |= slow
            if not slow and not opcode.startswith((".", "ret")) and not opcode.startswith(_ADDRESSES[:-1]):
                guard = f"{match[1]}{match[2]}" if match[2] else ""
                found[-1].lines.append((guard, opcode, [part.strip() for part in match[4].split(",")]))
            if opcode.startswith("bra"):  # what follows is a block of its own
                found.append(Block(f"after_{len(found)}"))
    return found


def _stem(opcode: str) -> str:
    parts = [part for part in opcode.split(".") if part not in ("ftz", "f32")]
    if parts[0] in ("add", "sub", "mul", "fma"):
        parts = [parts[0], *(part for part in parts[1:] if part in ("rz", "rm", "s32", "u32", "lo"))]
    return ".".join(parts)


def _slots(opcode: str) -> float:
    stem = _stem(opcode)
    if opcode.startswith(("mov", "ld", "st")):
        return 0.0
    if (found := _OTHER_SLOTS.get(opcode, _OTHER_SLOTS.get(stem))) is not None:
        return found
    known = {each.semantics.vm.split(" ")[0]: each for each in LANGUAGE.instruction_set.instructions if each.semantics.vm}
    if opcode.startswith(("setp", "selp")):
        name = "setp_lt_f32" if opcode.startswith("setp") else "selp_b32"
    elif opcode == "cvt.rn.f32.s32":
        name = "f32_from_s32"
    elif opcode in _INTEGER or opcode.startswith("mul.hi"):
        name = (
            opcode.replace(".", "_")
            .replace("_pred", "_b32")
            .replace("add_s32", "add_u32")
            .replace("sub_s32", "sub_u32")
            .replace("lo_s32", "lo_u32")
        )
    else:
        name = _SIMPLE[stem.replace(".rz", "").replace(".rm", "")]
    slots = known[name].semantics.slots_on(TARGET)
    assert slots is not None, opcode
    return slots + (_SCALED if stem in ("ex2.approx", "lg2.approx") and "ftz" not in opcode else 0.0)


def _expression(opcode: str, sources: list[str]) -> str:
    stem = _stem(opcode)
    if opcode.startswith("mov"):
        return sources[0]
    if opcode.startswith("selp"):
        return f"PICK({sources[2]}, {sources[0]}, {sources[1]})"
    if opcode.startswith("setp"):
        kind, type_name = opcode.split(".")[1], opcode.rpartition(".")[2]
        a, b = (f"({ {'f32': 'V', 's32': 'S'}.get(type_name, 'U') })({source})" for source in sources)
        if kind[-1] == "u" and type_name == "f32":  # true for NaN
            opposite = {"lt": ">=", "le": ">", "gt": "<=", "ge": "<", "eq": "!=", "ne": "=="}[kind[:-1]]
            return f"(V)(~({a} {opposite} {b}))"
        return f"(V)({a} {_COMPARED[kind]} {b})"
    if opcode in _INTEGER:
        text = re.sub(r"\b([xy])\b", lambda m: f"((U){sources['xy'.index(m[1])]})", _INTEGER[opcode])
        return f"(V)({text})"
    if opcode == "mul.hi.u32":
        return f"ptx_vm__mul_hi_u32({sources[0]}, {sources[1]})"
    if opcode == "cvt.rn.f32.s32":
        return f"ptx_vm__f32_from_s32({sources[0]})"
    if opcode == "cvt.rni.s32.f32":
        return f"(V)_mm256_cvtps_epi32({sources[0]})"
    if stem == "cvt.sat":
        return f"_mm256_min_ps(_mm256_max_ps({sources[0]}, B(0)), ptx_vm__set(1.0f))"
    if stem == "add.rz":
        return f"rounded({sources[0]}, ptx_vm__set(1.0f), {sources[1]}, 3)"
    if stem == "fma.rm":
        return f"rounded({', '.join(sources)}, 1)"
    return f"ptx_vm__{_SIMPLE[stem]}({', '.join(sources)})"


def _operand(text: str) -> str:
    if text.startswith("%"):
        return text[1:]
    if text.startswith("0f"):
        return f"B(0x{text[2:]}u)"
    return f"B((uint32_t)({text}))"


def c_source(blocks: list[Block]) -> str:
    """C of a kernel's blocks. Registers are vectors; a block's instructions write where its mask is set."""
    names, code = set(), []
    masks = {block.label: f"m{i}" for i, block in enumerate(blocks)}
    for i, block in enumerate(blocks):
        if i:
            code.append(f"m{i} = ptx_vm__or_b32(m{i}, m{i - 1});")
        code.append(f"if (ptx_vm__any_bit(m{i})) reached[{i}]++;")
        if block.slow:
            code.append(f"y = PICK(m{i}, B(0x7fffffffu), y), out_of_reach = ptx_vm__or_b32(out_of_reach, m{i});")
        for guard, opcode, operands in block.lines:
            mask = f"m{i}"
            if opcode.startswith("bra"):
                condition = guard if guard[:1] != "!" else f"ptx_vm__not_b32({guard[1:]})"
                taken = f"ptx_vm__and_b32({mask}, {condition})" if guard else mask
                if operands[0] in masks and int(masks[operands[0]][1:]) > i:
                    target = masks[operands[0]]
                    code.append(
                        f"{{ V t = {taken}; {target} = ptx_vm__or_b32({target}, t); {mask} = ptx_vm__xor_b32({mask}, t); }}"
                    )
            elif opcode.startswith("st.global"):
                code.append(f"y = PICK(out_of_reach, B(0x7fffffffu), {_operand(operands[1])});")
            elif not block.slow:
                name = operands[0].lstrip("%")
                names.add(name)
                value = "x" if opcode.startswith("ld.") else _expression(opcode, [_operand(each) for each in operands[1:]])
                code.append(f"{name} = {value if i == 0 else f'PICK({mask}, {value}, {name})'};")
    names.update(re.findall(r"\b[frp]\d+\b", "\n".join(code)))
    start = [f"V {', '.join(f'{name} = B(0)' for name in sorted(names))};", "V out_of_reach = B(0);"]
    start += [f"V m{i} = B({'~0u' if i == 0 else '0'});" for i in range(len(blocks))]
    is_ftz = any(".ftz" in opcode and opcode.startswith(("fma", "mul", "add")) for b in blocks for _, opcode, _ in b.lines)
    return _FRAME.replace("@MODE@", "0x9fc0u" if is_ftz else "0x1f80u").replace("@CODE@", "\n".join(start + code))


class Rival:
    """A kernel of one float as a function on the CPU.

    least, most: issue slots of the cheapest way through it that inputs have taken, and of all blocks that they have reached, as a
    warp pays whose threads part. Both are known once it has run.
    """

    def __init__(self, ptx: str, folder: Path):
        self.blocks = blocks_of(ptx)
        source = c_source(self.blocks)
        path = folder / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.so"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".c").write_text(source)
            flags = ["-O2", "-march=x86-64-v3", "-ffp-contract=off", "-fno-strict-aliasing", "-shared", "-fPIC", "-w"]
            subprocess.run(["gcc", *flags, f"-I{CSRC / 'detail'}", path.with_suffix(".c"), "-o", path], check=True)
        self._run = ctypes.CDLL(str(path)).run
        self.reached = np.zeros(len(self.blocks), np.uint64)

    def results(self, x: np.ndarray) -> np.ndarray:
        """Its results for float32 numbers."""
        padded = np.zeros(-(-len(x) // 8) * 8, np.float32)
        padded[: len(x)] = x
        padded[len(x) :] = x[-1]
        out = np.empty_like(padded)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (padded, out, self.reached)]
        self._run(*pointers, ctypes.c_size_t(len(padded)))
        return out[: len(x)]

    @property
    def least(self) -> float:
        costs: dict[str, float] = {"entry": 0.0}
        for i, block in enumerate(self.blocks):
            if block.label not in costs or not self.reached[i]:
                continue
            total = costs[block.label] + block.slots()
            branches = [(guard, operands[0]) for guard, opcode, operands in block.lines if opcode.startswith("bra")]
            following = [target for _, target in branches]
            if i + 1 < len(self.blocks) and all(guard for guard, _ in branches):
                following.append(self.blocks[i + 1].label)
            for target in following:
                costs[target] = min(costs.get(target, np.inf), total)
            if not following:
                return total
        return costs[self.blocks[-1].label] + self.blocks[-1].slots()

    @property
    def most(self) -> float:
        return sum(block.slots() for i, block in enumerate(self.blocks) if self.reached[i])

    def count(self) -> Counter[str]:
        return Counter(opcode for i, block in enumerate(self.blocks) if self.reached[i] for _, opcode, _ in block.lines)


class RivalSweep(Sweep):
    """The sweep of evo's proofs, on a rival instead of a program."""

    def __init__(self, rival: Rival, function: Function, form: Format, interval: tuple[float, float]):
        words = parse_program(LANGUAGE, "%x", "", 8)
        super().__init__(LANGUAGE, words, function, form, *form.keys_of(*interval))
        self._rival = rival

    def results(self, x: np.ndarray) -> np.ndarray:
        return self._form.round(self._rival.results(np.ascontiguousarray(x)))


def swept(rival: Rival, function: Function, form: Format, interval: tuple[float, float]) -> SweepResult:
    """A rival's errors over each number of an interval."""
    return RivalSweep(rival, function, form, interval).run()
