"""evo.language.tensor_source: what PyTorch and Triton compute, against the virtual machine."""

import importlib.util

import numpy as np
import pytest
from run_exports import run_triton

from evo.instructions import shipped_instruction_set
from evo.language.dag import Dag, dag_of
from evo.language.formula import formula_of
from evo.language.printer import Unsupported
from evo.language.program import Language, parse_program
from evo.language.tensor_source import torch_source, triton_source
from evo.native.ptx_vm import VirtualMachine

LANGUAGE = Language(shipped_instruction_set("wide"), (("x", "f32"),), (("y", "f32"),))
REAL = (
    "%x 1.5 add_ftz_f32 %x %x 0.25 fma_rn_ftz_f32 %x -0.75 add_ftz_f32 fma_rn_ftz_f32",  # products of sums
    "1.0 %x min_ftz_f32 %x -0.5 max_ftz_f32 sub_ftz_f32 -3.0 mul_ftz_f32",
    "%x 0.25 copysign_f32 -1.0 %x copysign_f32 div_approx_ftz_f32",
    "%x ex2_approx_ftz_f32 %x tanh_approx_f32 sub_ftz_f32 %x sin_approx_ftz_f32 cos_approx_ftz_f32 mul_ftz_f32",
    "%x abs_ftz_f32 sqrt_approx_ftz_f32 lg2_approx_ftz_f32 neg_ftz_f32",
    "%x 2.0 %x 0.5 setp_lt_ftz_f32 selp_f32",
    "0.7",
)
X = np.linspace(-2.0, 3.0, 101, dtype=np.float32)


def read(text: str) -> tuple[Dag, np.ndarray]:
    """A program, and what the virtual machine gives."""
    words = parse_program(LANGUAGE, text, "test", 64)
    return dag_of(LANGUAGE, words), VirtualMachine(LANGUAGE.lowering).store(words[None], [X, None])[0, 0]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install 'evo-ptx[torch]'")
@pytest.mark.parametrize("text", REAL)
def test_a_program_for_pytorch_computes_in_float32_gives_the_type_of_its_input_and_can_be_compiled(text):
    import torch

    (expression, on_cpu), namespace, x = read(text), {}, torch.from_numpy(X)
    exec(torch_source(expression, ""), namespace)
    [found] = namespace["program"](x)
    assert found.dtype == torch.float32 and found.shape == x.shape
    np.testing.assert_allclose(found.numpy(), on_cpu, rtol=1e-3, atol=2e-6)  # tanh.approx is the least exact
    [compiled] = torch.compile(namespace["program"], backend="eager", fullgraph=True)(x)
    assert torch.equal(compiled, found)
    half = x.to(torch.bfloat16)
    [of_half] = namespace["program"](half)
    [of_float] = namespace["program"](half.float())
    assert torch.equal(of_half, of_float.to(torch.bfloat16))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install 'evo-ptx[torch]'")
def test_a_program_for_pytorch_keeps_the_digits_of_a_constant_that_takes_a_sign():
    import torch

    namespace = {}
    exec(torch_source(read("0.1 %x copysign_f32")[0], ""), namespace)
    [found] = namespace["program"](torch.tensor([-3.0, 2.0], dtype=torch.float64))
    assert found.tolist() == [-0.1, 0.1]


def test_what_has_no_function_of_real_numbers_is_refused_for_pytorch():
    with pytest.raises(Unsupported, match="cvt_rni_s32_f32"):
        torch_source(dag_of(LANGUAGE, parse_program(LANGUAGE, "%x cvt_rni_s32_f32 cvt_rn_f32_s32", "test", 8)), "")


def test_a_constant_formula_for_triton_has_all_digits():
    [found] = run_triton(triton_source(formula_of(read("0.7")[0], {}, {}), ""), [X])
    assert found == 0.7
