"""A sweep on a GPU, over the stand-in: for exact programs it finds what the CPU's finds, and what certificates say of it."""

import math

import numpy as np
import pytest
from click.testing import CliRunner

from evo.approximation import gpu_sweep
from evo.approximation.certificate import Certificate, certified, check_certificate
from evo.approximation.formats import FORMATS
from evo.approximation.functions import Function
from evo.approximation.gpu_sweep import GpuSweep
from evo.approximation.header import cuda_header
from evo.approximation.pieces import pieces_of
from evo.approximation.sweep import Sweep
from evo.cli import main
from evo.errors import UserError

from .test_proof import LANGUAGE, words_of

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")


@pytest.fixture
def gpu(emulated_gpu, nvrtc):
    sweep = GpuSweep()
    yield sweep
    sweep.close()
    assert not any(emulated_gpu.leaked().values()) and not emulated_gpu.messages


CASES = [
    ("f32", "fma(fma(0.5, x, 1.0), x, 1.0)", "exp", 0.9999, 1.0001),
    ("f32", "x + 1e-42", "x", -1e-42, 1e-42),  # subnormal results are zero, and zero has both signs
    ("bf16", "min(x, 0.0) + 1.01", "exp", 2e-16, 1e-14),  # perhaps below a power of two, where ulps change
    ("f16", "x*60000.0", "60000*x", 0.5, 9.0),  # infinities that are right
    ("f16", "x*0.75", "x", -1e-6, 2e-6),  # subnormal numbers, whose ulps are all alike
    ("bf16", "fma(fma(0.16, x, 0.5), x*x, x + 1.0)", "exp", -3.0, 4.0),  # wrong signs
    ("bf16", "copysign(1.0, x)", "1 + 0*x", -1.0, 2.0),
    ("f16", "x*x*x*x*x*x", "exp(x)", 0.25, 60000.0),  # infinities that are wrong
    ("bf16", "x", "exp(200*x)", 1.0, 2.0),  # beyond 2^200, where finite results count as infinitely wrong
    ("f16", "t = x*3e38*3e38; y = t - t", "exp(-x)", 0.0, 9.0),  # NaN
    ("f16", "min(x*0.75, 0.6)", "sin", 0.0, 1.5707),  # falls of the function's where there are none
    ("f16", "x", "sin", -40.0, 40.0),  # many pieces, and steps against the function
]


@pytest.mark.parametrize("threads", [gpu_sweep.MAX_THREADS, 50], ids=["a number each", "many each"])
@pytest.mark.parametrize(("form", "text", "function", "low", "high"), CASES, ids=[f"{case[0]} {case[1]}" for case in CASES])
def test_an_exact_program_has_the_cpus_errors_and_counts(gpu, monkeypatch, threads, form, text, function, low, high):
    monkeypatch.setattr(gpu_sweep, "MAX_THREADS", threads)
    monkeypatch.setattr(gpu_sweep, "KEYS", 3000)
    function, form = Function(function), FORMATS[form]
    first, last = form.keys_of(low, high)
    if threads == 50:
        first, last = max(first, -3000), min(last, max(first, -3000) + 6000)
    expected = Sweep(LANGUAGE, words_of(text), function, form, first, last, 1).run()
    found = gpu.run(LANGUAGE, words_of(text), pieces_of(function, form, first, last), form)
    assert found.cpu == expected.cpu
    assert [math.copysign(1.0, x) for x in found.cpu.at] == [math.copysign(1.0, x) for x in expected.cpu.at]
    for name in ("num_inputs", "num_nans", "num_wrong_signs", "num_falls"):
        assert getattr(found, name) == getattr(expected, name), name


def proven(gpu) -> Certificate:
    options = {"instruction_set": "default", "target": "sm_90", "gpu": gpu}
    return certified(LANGUAGE, words_of("tanh(x*0.5)*0.5 + 0.5"), Function("sigmoid"), FORMATS["bf16"], (-3.0, 4.0), **options)


def test_a_certificate_has_what_this_gpu_gives_and_only_such_a_gpu_checks_it(gpu, emulated_gpu, tmp_path):
    found, path = proven(gpu), tmp_path / "sigmoid.json"
    path.write_text(found.text())
    assert check_certificate(path) == found
    told = found.on_gpu
    assert (told.device, told.capability, told.driver[:9]) == ("Emulated GPU", "9.0", "CUDA 13.0")
    # The stand-in's tanh is libm's.
    x = FORMATS["bf16"].of_keys(np.arange(*FORMATS["bf16"].keys_of(-3.0, 4.0)))
    half = np.float32(0.5)
    y = FORMATS["bf16"].round(np.tanh(x.astype(np.float64) / 2).astype(np.float32) * half + half)
    worst = np.abs(y - 1 / (1 + np.exp(-x.astype(np.float64)))).max()
    assert float(told.errors["absolute"].worst) == pytest.approx(worst, rel=1e-6)
    assert float(told.errors["ulp"].bound) <= float(found.any_gpu["ulp"].bound)
    for text in (found.description(), cuda_header(LANGUAGE, [(found, words_of("tanh(x*0.5)*0.5 + 0.5"))])):
        assert f"Emulated GPU (compute capability 9.0, driver {told.driver}): {told.errors['ulp'].at_most()} ulp at x = " in text

    error = told.errors["ulp"]
    for changed in (
        {"errors": {**told.errors, "ulp": error.model_copy(update={"worst": repr(float(error.worst) * 0.99)})}},
        {"errors": {**told.errors, "ulp": error.model_copy(update={"at": "0.5"})}},
        {"num_falls": told.num_falls + 1},
    ):
        path.write_text(found.model_copy(update={"on_gpu": told.model_copy(update=changed)}).text())
        with pytest.raises(UserError, match=r"refused: 'on_gpu\."):
            check_certificate(path)
    for other in ({"device": "NVIDIA H100"}, {"capability": "8.0"}):
        path.write_text(found.model_copy(update={"on_gpu": told.model_copy(update=other)}).text())
        assert check_certificate(path).on_gpu is None
    done = CliRunner().invoke(main, ["prove", "--check", str(path)])
    assert done.exit_code == 0 and done.output.count("Emulated GPU") == 1
    assert "\nnot recomputed, since this machine has no such GPU: Emulated GPU (compute capability 8.0" in done.output
    path.write_text(found.model_copy(update={"on_gpu": told.model_copy(update={"driver": "CUDA 13.1"})}).text())
    assert check_certificate(path) == found


def test_approximate_instructions_that_err_as_far_as_they_may_stay_below_the_bound_for_any_gpu(gpu, monkeypatch):
    errors = []
    for direction in ("up", "down"):
        monkeypatch.setenv("EVO_EMULATED_GPU_ERRORS", direction)
        found = proven(gpu)
        errors.append(float(found.on_gpu.errors["ulp"].worst))
        assert errors[-1] <= float(found.any_gpu["ulp"].worst)
    assert max(errors) > float(found.cpu["ulp"].worst)
