"""Languages with more registers than the values of a short program.

Inputs are values before the first word runs, so that the table of values of a short program starts smaller than their number.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from evo.instructions import shipped_instruction_set
from evo.language.program import word
from evo.native.stack_ptx import Lowering
from evo.native.stack_ptx_words import WordType

LIMITS = SimpleNamespace(stack_size=16, max_nodes=64, max_frame_depth=1, store_size=1, execution_limit=64)
SET = shipped_instruction_set("default")
F32, ADD = SET.stack_index("F32"), SET.instruction_index("add_ftz_f32")


@pytest.mark.parametrize("num_registers", [2, 8, 63, 64, 65, 256, 1000])
def test_equal_values_are_merged_however_many_registers_there_are(num_registers):
    last = num_registers - 1
    lowering = Lowering(SET, [(f"reg_{i}", F32) for i in range(num_registers)], [0], LIMITS)
    sum_of_two = [word(WordType.INPUT), word(WordType.INPUT, payload=last), word(WordType.PTX, payload=ADD)]
    words = np.array([*sum_of_two, *sum_of_two, word(WordType.PTX, payload=ADD), word(WordType.RETURN)], np.uint64)

    assert lowering.lower(words).stub == (
        "{\n.reg .f32 %_s0_<2>;\n"
        f"add.ftz.f32 %_s0_0, %reg_{last}, %reg_0;\nadd.ftz.f32 %_s0_1, %_s0_0, %_s0_0;\nmov.f32 %reg_0, %_s0_1;\n}}"
    )
