"""evo.language.definitions in Python and C: the bits of the virtual machine, instruction by instruction."""

import ctypes
import subprocess

import numpy as np
import pytest
from run_exports import python_functions

from evo.instructions import MOVE, shipped_instruction_set
from evo.language.definitions import c_definitions, function_name
from evo.language.program import Language, word
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx_words import WordType

SET = shipped_instruction_set("wide")
INPUTS = (
    *((f"in_f{i}", "f32") for i in range(3)),
    *((f"in_u{i}", "u32") for i in range(3)),
    *((f"in_s{i}", "s32") for i in range(3)),
)


def operand_types(instruction) -> list[str]:
    return [SET.stacks[SET.arg_types[arg].stack_idx].literal_prefix for arg in instruction.args]


def result_type(instruction) -> str:
    return SET.stacks[SET.arg_types[instruction.rets[0]].stack_idx].literal_prefix


def runnable() -> dict[str, object]:
    unsupported = VirtualMachine(Language(SET, INPUTS, (("y", "f32"),)).lowering).unsupported
    plain = {i for i, arg in enumerate(SET.arg_types) if SET.stacks[arg.stack_idx].name in ("F32", "U32", "S32", "PRED")}
    found = [i for i in SET.instructions if i.name not in unsupported and {*i.args, *i.rets} <= plain]
    return {i.name if i.ptx == MOVE else function_name(i.ptx): i for i in found}


INSTRUCTIONS = runnable()
EDGES = [0x00000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x00FFFFFF, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x40490FDB, 0x42FE0000]
EDGES += [0x1E800400, 0x217FF800, 0x1E800800, 0x217FF000]  # products just below the smallest normal number
EDGES += [0x43000000, 0x4B800000, 0x5F000000, 0x7E800000, 0x7E800001, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC01234]
EDGES += [edge | 0x80000000 for edge in EDGES] + [*range(34), 255, 256, 0x7FFFFFFE]


def bits(seed: int) -> np.ndarray:
    """Every pair of edges, then patterns and numbers of all sizes."""
    rng = np.random.default_rng(seed)
    numbers = (rng.normal(size=6_000) * 10.0 ** rng.uniform(-38, 38, 6_000)).astype(np.float32).view(np.uint32)
    near = (rng.normal(size=6_000) * 4).astype(np.float32).view(np.uint32)
    edges = np.array(EDGES, np.uint32)
    pairs = np.repeat(edges, len(edges)) if seed == 0 else np.tile(edges, len(edges))
    return np.concatenate([pairs, rng.integers(0, 1 << 32, 6_000, np.uint32), numbers, near])


OPERANDS = [bits(0), bits(1), np.roll(bits(2), 17)]


def by_machine(instruction) -> np.ndarray:
    """Outputs of the virtual machine; predicates are compared with zero first, and selected by."""
    language = Language(SET, INPUTS, (("y", {"pred": "u32"}.get(result_type(instruction), result_type(instruction))),))
    index = {name: i for i, (name, _) in enumerate(INPUTS)}
    words = []
    for i, kind in reversed(list(enumerate(operand_types(instruction)))):
        if kind == "pred":
            words += [word(WordType.CONSTANT, SET.stack_index("u32"), 0), word(WordType.INPUT, payload=index[f"in_u{i}"])]
            words += [word(WordType.PTX, payload=SET.instruction_index("setp_ne_u32"))]
        else:
            words.append(word(WordType.INPUT, payload=index[f"in_{kind[0]}{i}"]))
    words.append(word(WordType.PTX, payload=SET.instruction_index(instruction.name)))
    if result_type(instruction) == "pred":
        words[:0] = [word(WordType.CONSTANT, SET.stack_index("u32"), n) for n in (0, 1)]
        words.append(word(WordType.PTX, payload=SET.instruction_index("selp_u32")))
    arrays = [
        OPERANDS[i % 3].view({"f": np.float32, "u": np.uint32, "s": np.int32}[name[3]]) for i, (name, _) in enumerate(INPUTS)
    ]
    rows = np.array([[*words, word(WordType.RETURN)]], np.uint64)
    return VirtualMachine(language.lowering).store(rows, [*arrays, None])[0, 0].view(np.uint32)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """All definitions in C, with a loop for each instruction."""
    folder = tmp_path_factory.mktemp("semantics")
    parts = [f"#include <{name}.h>" for name in ("math", "stdbool", "stdint", "string")]
    parts += c_definitions().texts.values()
    for name, instruction in INSTRUCTIONS.items():
        casts = {"f32": "f32(a[{0}][i])", "pred": "a[{0}][i] != 0"}
        operands = ", ".join(casts.get(kind, "a[{0}][i]").format(i) for i, kind in enumerate(operand_types(instruction)))
        call = f"{name}({operands})"
        call = f"bits_of({call})" if result_type(instruction) == "f32" else call
        head = f"void run_{name}(uint64_t n, uint32_t **a, uint32_t *out)"
        parts.append(f"{head} {{ for (uint64_t i = 0; i < n; i++) out[i] = {call}; }}")
    (folder / "all.c").write_text("\n".join(parts))
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-O1", "-ffp-contract=off", "-shared", "-fPIC"]
    command += ["all.c", "-o", "all.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "all.so"))


def test_python_and_c_give_the_bits_of_the_virtual_machine(library):
    views = {"f32": lambda a: a.view(np.float32), "pred": lambda a: a != 0}
    out = np.empty(len(OPERANDS[0]), np.uint32)
    pointers = (ctypes.c_void_p * 3)(*(operand.ctypes.data for operand in OPERANDS))
    for name, instruction in INSTRUCTIONS.items():
        operands = [views.get(kind, lambda a: a)(OPERANDS[i]) for i, kind in enumerate(operand_types(instruction))]
        with np.errstate(all="ignore"):
            by_python = np.asarray(python_functions()[name](*operands))
        by_python = by_python.astype(np.uint32) if by_python.dtype == bool else by_python.view(np.uint32)
        getattr(library, f"run_{name}")(ctypes.c_uint64(len(out)), pointers, ctypes.c_void_p(out.ctypes.data))
        expected = by_machine(instruction)
        np.testing.assert_array_equal(by_python, expected, err_msg=f"{name} in Python")
        np.testing.assert_array_equal(out, expected, err_msg=f"{name} in C")
