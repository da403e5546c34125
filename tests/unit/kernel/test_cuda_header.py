"""evo.cuh: the layout of its struct as CUDA has it, and the names that it refuses."""

import ctypes
import re

import numpy as np
import pytest

from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.kernel.cuda_header import header, points_argument
from evo.kernel.nvrtc import compile as compile_cuda
from evo.language.program import Language


def language_with(*inputs: str) -> Language:
    return Language(shipped_instruction_set("default"), tuple((name, "f32") for name in inputs), (("y", "f32"),))


@pytest.mark.parametrize("num_inputs", range(1, 7))
def test_the_bytes_of_points_are_those_of_the_struct(nvrtc, num_inputs):
    addresses = [0x1111_0000_0000_0001 * (i + 1) for i in range(num_inputs)]
    strides, num_points = [4 * (i % 2) + 0x100 * i for i in range(num_inputs)], 0x7654_3210
    content = points_argument(np.array(addresses, np.uint64), np.array(strides, np.uint32), num_points)
    text = header(language_with(*(f"x{i}" for i in range(num_inputs))), 1, 1, 2)
    fields = re.findall(r"^    (const char\*|unsigned int) (\w+);$", text, re.MULTILINE)
    kinds = {"const char*": ctypes.c_uint64, "unsigned int": ctypes.c_uint32}
    points = type("Points", (ctypes.Structure,), {"_fields_": [(name, kinds[kind]) for kind, name in fields]})
    assert content.dtype == np.uint8
    assert len(content) == ctypes.sizeof(points)
    # NVRTC has no offsetof, but the size shows that it lays out the struct as C does.
    source = f'#include "evo.cuh"\nstatic_assert(sizeof(EvoPoints) == {len(content)});'
    compile_cuda(source.encode(), "points.cu", {"evo.cuh": text.encode()}, [])
    read = points.from_buffer_copy(content)
    assert [getattr(read, f"evo_values_{i}") for i in range(num_inputs)] == addresses
    assert [getattr(read, f"evo_stride_{i}") for i in range(num_inputs)] == strides
    assert read.num_points == num_points


@pytest.mark.parametrize("name", ["float", "a b", "1x", "num_points", "evo_values_0", "EVO_CUH", "é", "x-y", ""])
def test_an_input_that_cpp_cannot_name_is_refused(name):
    with pytest.raises(UserError, match=f"^input '{re.escape(name)}': kernel.cu would call it .* rename it$"):
        header(language_with("x", name), 1, 1, 2)
