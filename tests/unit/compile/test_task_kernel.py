"""Packs in a task's own kernel: every program live at its site, in packs of any size, by requests that hold all."""

import os
import pickle
import re
from pathlib import Path

import pytest
from compile_cases import BAD, constant_of, program_text, programs, reject

from evo.compile.compiler import Compiler, FailedProgram, Module
from evo.compile.packing import Packing
from evo.compile.pool import CompilePool
from evo.compile.request import Compiled, compile_request
from evo.errors import UserError
from evo.instructions import default_instruction_set
from evo.kernel.template import KernelTemplate, task_ptx, task_template
from evo.program import Language
from evo.task import load_task

NUM_SITES = 8


@pytest.fixture(scope="module")
def own_kernel() -> tuple[Language, KernelTemplate]:
    """The language and template of the task with a kernel of its own."""
    if not os.environ.get("CI"):
        pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    from evo.kernel.cuda_source import template_of

    task = load_task(Path(__file__).parents[2] / "data" / "own_kernel", {})
    language = Language(default_instruction_set(), tuple(task.inputs.items()), tuple(task.outputs.items()))
    return language, template_of(task, language, "sm_90", NUM_SITES)


def modules(compiler: Compiler, words) -> list[Module]:
    found = list(compiler.compile(words))
    assert all(isinstance(module, Module) for module in found)
    return sorted(found, key=lambda module: module.rows[0][0])


@pytest.mark.parametrize("num_programs", [1, 2, 5, NUM_SITES, NUM_SITES + 1])
def test_every_program_of_a_pack_is_live_and_nothing_else(own_kernel, in_process, disassemble, num_programs):
    language, template = own_kernel
    words = programs(language, [program_text(i) for i in range(num_programs)])
    # Even where packs of the pointwise kernel would be larger and of several kernels.
    found = modules(Compiler(language, "sm_90", in_process, template=template, packing=Packing(64, 4)), words)
    assert [len(module.rows) for module in found] == [num_programs] if num_programs <= NUM_SITES else [5, 4]
    for module in found:
        assert module.kernel_sizes == (len(module.rows),)
        (sass,) = [lines for name, lines in disassemble(module.cubin).items() if name == template.kernel_name(0)]
        constants = [float(match[1]) for match in map(re.compile(r".*FMUL\.FTZ R\d+, R\d+(?:\.reuse)?, ([\d.]+)").match, sass) if match]
        # Each stands as often as the compiler made copies of the loop's body.
        assert sorted(set(constants)) == sorted(constant_of(row) for (row,) in module.rows)
        assert not [line for line in sass if "FFMA.FTZ" in line]


def test_smaller_packs_are_respected(own_kernel, in_process):
    language, template = own_kernel
    words = programs(language, [program_text(i) for i in range(6)])
    found = modules(Compiler(language, "sm_90", in_process, template=template, packing=Packing(2, 2)), words)
    assert [module.kernel_sizes for module in found] == [(2,)] * 3


def test_the_program_at_fault_is_found_in_a_tasks_own_kernel_too(own_kernel, in_process):
    language, template = own_kernel
    texts = [program_text(i) for i in range(NUM_SITES)]
    texts[3] = BAD
    results = list(Compiler(language, "sm_90", in_process, template=template, compile_function=reject).compile(programs(language, texts)))
    assert [result.rows.tolist() for result in results if isinstance(result, FailedProgram)] == [[3]]


def test_a_worker_needs_nothing_but_the_request(own_kernel, in_process):
    language, template = own_kernel
    seen = []

    def keep(request):
        seen.append(pickle.dumps(request))
        return Compiled(b"")

    words = programs(language, [program_text(i) for i in range(3)])
    list(Compiler(language, "sm_90", in_process, template=template, compile_function=keep).compile(words))
    assert len(seen[0]) < 16_000
    with CompilePool(1) as pool:
        there = pool.submit(compile_request, pickle.loads(seen[0])).result()
    assert there.cubin == compile_request(pickle.loads(seen[0])).cubin


def test_the_cache_key_tells_templates_apart(own_kernel, in_process):
    language, template = own_kernel
    other = task_template(task_ptx(template.content) + b"\n", NUM_SITES)
    words = programs(language, [program_text(0)])
    keys = []
    for one in (template, template, other):
        compiler = Compiler(language, "sm_90", in_process, template=one, compile_function=lambda r: keys.append(r.cache_key()) or Compiled(b""))
        list(compiler.compile(words))
    assert keys[0] == keys[1] != keys[2]


def test_a_kernel_that_cannot_be_assembled_is_no_fault_of_the_programs(own_kernel, in_process):
    language, template = own_kernel
    broken = task_template(task_ptx(template.content).replace(b"bar.sync", b"bar.nonsense"), NUM_SITES)
    with pytest.raises(UserError, match="cannot compile for target 'sm_90'"):
        Compiler(language, "sm_90", in_process, template=broken)
