"""Contents of a cubin, by disassembly: every program at its site, live, and no operation that no program asked for."""

import re

import numpy as np
import pytest
from compile_cases import constant_of, program_text, programs

from evo.compile.compiler import PackCompiler
from evo.compile.packing import Packing
from evo.kernel.pointwise import kernel_name

MULTIPLY = re.compile(r"FMUL\.FTZ R\d+, R\d+(?:\.reuse)?, ([\d.]+)")


def operations(sass: list[str]) -> list[str]:
    """The operations, without predicates and operands."""
    return [re.sub(r"^@!?U?P\d+\s+", "", line).split()[0] for line in sass if not line.startswith(".L")]


def site_constants(sass: list[str], num_sites: int) -> list[float]:
    """The constant that the code of each site multiplies by: where the switch goes for it, up to the branch that ends it."""
    starts = [0]
    if num_sites > 1:
        (targets,) = [line for line in sass if "BRANCH_TARGETS" in line]
        labels = re.findall(r"\.L_x_\d+", targets)
        assert len(labels) == num_sites
        starts = [sass.index(label) for label in labels]
    constants = []
    for start in starts:
        found = next(match for match in map(MULTIPLY.match, sass[start:]) if match)
        constants.append(float(found[1]))
    return constants


@pytest.mark.parametrize(
    ("num_programs", "packing"),
    [
        (1, Packing()),
        (3, Packing(sites_per_kernel=2, kernels_per_module=2)),
        (1024, Packing(sites_per_kernel=1024, kernels_per_module=1)),
    ],
)
def test_a_module_holds_each_program_at_its_site_and_nothing_else(language, in_process, disassemble, num_programs, packing):
    batch = programs(language, [program_text(i) for i in range(num_programs)])
    (module,) = PackCompiler(language, "sm_90", in_process, packing=packing).compile(batch)
    kernels = disassemble(module.cubin)
    assert sorted(kernels) == sorted(kernel_name(k) for k in range(len(module.kernel_sizes)))
    assert sum(module.kernel_sizes) == len(module.rows) == num_programs
    expected = [constant_of(row) for (row,) in module.rows]
    found = []
    for k, num_sites in enumerate(module.kernel_sizes):
        sass = kernels[kernel_name(k)]
        found += site_constants(sass, num_sites)
        count = operations(sass).count
        assert count("FMUL.FTZ") == count("FADD.FTZ") == num_sites
        assert not [operation for operation in operations(sass) if operation.startswith("FFMA")]
    assert found == expected
    np.testing.assert_array_equal(np.sort(np.concatenate(module.rows)), np.arange(num_programs))


def test_fma_is_in_the_cubin_where_a_program_asks_for_it_and_only_there(language, in_process, disassemble):
    batch = programs(
        language, ["%x 3.5 mul_ftz_f32 %y add_ftz_f32", "%y 3.5 %x fma_rn_ftz_f32", "%y %x 3.5 mul_ftz_f32 sub_ftz_f32"]
    )
    (module,) = PackCompiler(language, "sm_90", in_process).compile(batch)
    count = operations(disassemble(module.cubin)["pack_0"]).count
    assert (count("FFMA.FTZ"), count("FMUL.FTZ"), count("FADD.FTZ")) == (1, 2, 2)
