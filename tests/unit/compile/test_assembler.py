"""Optimisation levels: which one a run takes, and what they leave of a program."""

import re
from collections import Counter

import numpy as np
import pytest

from evo.compile.assembler import assembler_options, choose_opt_level
from evo.compile.compiler import FailedProgram, PackCompiler
from evo.compile.packing import Packing
from evo.evaluate.cuda.agreement import LANGUAGE, NAMES, programs_of
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program

# Instructions that round or approximate. Selects, moves and integers are exact.
ARITHMETIC = re.compile(r"(?:@!?U?P\w+ )?(MUFU\.\w+|FADD|FMUL|FFMA|F2I|I2F|FRND)\b")


@pytest.mark.parametrize(("num_points", "level"), [(1, 0), (2_000_000, 0), (2_000_001, 1), (1 << 24, 1)])
def test_few_points_take_the_level_that_compiles_fastest(num_points, level):
    assert choose_opt_level(num_points) == level


@pytest.fixture
def arithmetic(in_process, disassemble):
    """Counts a batch's rounding and approximating machine instructions at a level."""

    def count(language: Language, words: np.ndarray, level: int) -> Counter:
        packing, options = Packing(sites_per_kernel=len(words), kernels_per_module=1), assembler_options(level)
        compiler = PackCompiler(language, "sm_90", in_process, packing=packing, options=options)
        (module,) = compiler.compile(Batch.analyze(language.lowering, words))
        return Counter(
            found[1] for lines in disassemble(module.cubin).values() for line in lines if (found := ARITHMETIC.match(line))
        )

    return count


def test_all_levels_leave_an_instruction_the_same_arithmetic(arithmetic):
    words = programs_of(NAMES)
    unoptimised = arithmetic(LANGUAGE, words, 0)
    assert unoptimised["MUFU.SIN"] and unoptimised["FFMA"]
    assert arithmetic(LANGUAGE, words, 1) == arithmetic(LANGUAGE, words, 3) == unoptimised


def test_a_choice_between_equal_values_is_why_a_run_keeps_its_level(arithmetic):
    language = Language(shipped_instruction_set("default"), (("x", "f32"),), (("z", "f32"),))
    text = "0.7 0.7 %x 1.0 setp_lt_ftz_f32 selp_f32 sin_approx_ftz_f32 %x add_ftz_f32"
    words = parse_program(language, text, "test", 16)[None]
    assert arithmetic(language, words, 0)["MUFU.SIN"] == 1
    assert arithmetic(language, words, 1)["MUFU.SIN"] == 0


def test_the_oldest_target_assembles_every_instruction_that_the_cpu_knows(in_process):
    compiler = PackCompiler(LANGUAGE, "sm_75", in_process, options=assembler_options(0))
    results = list(compiler.compile(Batch.analyze(LANGUAGE.lowering, programs_of(NAMES))))
    assert [NAMES[row] for result in results if isinstance(result, FailedProgram) for row in result.rows] == []
    assert sum(len(rows) for result in results for rows in result.rows) == len(NAMES)
