"""Certificates: forgeries, headers of what is proven, and the verb."""

import json
import math
import os
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from emulated_gpu.ptx_machine import launch
from emulated_gpu.ptx_memory import Memory
from emulated_gpu.ptx_text import Module

from evo.approximation.certificate import Certificate, certified, check_certificate
from evo.approximation.formats import FORMATS
from evo.approximation.functions import Function
from evo.approximation.header import cuda_header, function_name
from evo.config import load_config
from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.kernel import nvrtc
from evo.language.program import Language, parse_program
from evo.native import nvptxcompiler
from evo.native.ptx_vm import VirtualMachine

from .test_proof import LANGUAGE, run, words_of


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    found = certified(
        LANGUAGE, words_of("tanh(x*0.5)*0.5 + 0.5"), Function("sigmoid"), FORMATS["bf16"], (-3.0, 4.0),
        instruction_set="default", target="sm_90",
    )  # fmt: skip
    path = tmp_path_factory.mktemp("certificate") / "sigmoid.json"
    path.write_text(found.text())
    assert check_certificate(path) == found
    return path


def test_a_proof_with_other_sources_begins_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("evo.approximation.sweep.SAVE_S", -1.0)
    names = set()
    for text in ("first", "second"):
        monkeypatch.setattr("evo.approximation.certificate.sources", lambda text=text: text)
        certified(
            LANGUAGE, words_of("x"), Function("sin"), FORMATS["f32"], (1.0, 1.03), instruction_set="default", target="sm_90",
            state=tmp_path / "a.json", progress=lambda *_: names.update(each.name for each in tmp_path.iterdir()),
        )  # fmt: skip
    assert len(names) == 2 and not [*tmp_path.iterdir()]


# Texts that would run, or end a text, if they were put into code, a page or a terminal.
CODE = (
    '"""\nimport os; os.abort()\n"""',
    "x\n*/ int y; /*",
    "__import__('os').abort()",
    "os:abort",
    "quad(sin)",
    "<script>alert(1)</script>",
    "\x1b[2Jx",
    "=1+1\t",
)


def forged(data: dict) -> list[dict]:
    """Copies with one thing changed each: numbers a little, texts to others that could stand there."""
    others = {
        "function": [
            *CODE,
            "+".join(["x"] * 20000),
            "sys:exit",
            "x\ud800",
            "tanh",
            "gelu",
            "1/(1 + exp(-x))/1.0001",
            "sigmoid_grad",
        ],
        "formula": ["tanh(x)", *CODE],
        "enclosure": ["validated: sigmoid", "theorem", *CODE],
        "format": ["f16", "f32", "f8", *CODE],
        "instruction_set": ["mine.json", *CODE],
        "program": [data["program"].replace("0.5", "0.499", 1), data["program"] + " 1.0001 mul_ftz_f32", "%x", "nonsense", *CODE],
        "target": ["sm_80", "sm_91", *CODE],
        "arithmetic": ["native", "half"],
        "symmetry": ["odd", *CODE],
        "why_not": ["tanh_approx_f32", *CODE],
        "reference": ["0" * 64, data["reference"][::-1]],
        "interval": [["-3.0", "3.984375"], ["-1.0", "1.0"], ["4.0", "-3.0"], ["nan", "4.0"], ["-3.0"], "all"],
        "proof": [1, 3, True],
    }
    words = data["program"].split()
    swaps = {
        "0.5": ("0.505", "-0.5", "%x"),
        "%x": ("0.5",),
        "mul_ftz_f32": ("add_ftz_f32",),
        "add_ftz_f32": ("max_ftz_f32",),
    }
    for place, word in enumerate(words):
        others["program"] += [" ".join([*words[:place], other, *words[place + 1 :]]) for other in swaps.get(word, ())]
    digits = data["reference"]
    others["reference"] += [f"{digits[:i]}{(int(digits[i], 16) + 1) % 16:x}{digits[i + 1 :]}" for i in range(0, 64, 16)]
    copies = [{**data, name: value} for name, values in others.items() for value in values]
    copies += [{**data, name: value + step} for name, value in data.items() if type(value) is int for step in (1, -1)]
    for name in ("cpu", "any_gpu"):
        copies.append({**data, name: {}})
        for kind, error in data[name].items():
            for key, value in error.items():
                for changed in (
                    repr(math.nextafter(float(value), 0.0)) if key == "bound" else "1",
                    repr(float(value) * 0.999),
                    repr(float(value) * 1.001),
                    "0.0",
                    "x",
                    None,
                ):
                    copies.append({**data, name: {**data[name], kind: {**error, key: changed}}})
    copies += [{**data, "special": {**data["special"], name: "0.25"}} for name in data["special"]]
    copies += [{**data, "special": {**data["special"], **extra}} for text in CODE for extra in ({text: "0.0"}, {"0": text})]
    copies += [{name: value for name, value in data.items() if name != left_out} for left_out in data if left_out != "proof"]
    return [*copies, {**data, "more": 1}, {}, {"interval": []}]


def test_no_forged_certificate_passes_or_runs(certificate, tmp_path, monkeypatch):
    data = json.loads(certificate.read_text())
    copies = forged(data)
    assert sum(copy != data for copy in copies) >= 270
    monkeypatch.setattr(os, "abort", lambda: pytest.fail("a certificate ran code"))
    for number, copy in enumerate(copies):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(copy))
        if copy != data:
            with pytest.raises(UserError, match=re.escape(str(path))):
                check_certificate(path)


def test_a_header_compiles_and_says_what_is_proven_without_contraction(certificate):
    found = check_certificate(certificate)
    header = cuda_header(LANGUAGE, [(found, words_of("%x 0.5 mul_ftz_f32 tanh_approx_f32 0.5 mul_ftz_f32 0.5 add_ftz_f32"))])
    [told] = re.findall(r"error at most (\S+) ulp", header)
    assert 0.0 <= float(told) - float(found.any_gpu["ulp"].bound) < 1e-5
    assert "4 instructions, 11 issue slots of a warp on sm_90" in header
    use = f'{header}\nextern "C" __global__ void use(float *p) {{ *p = sigmoid_bf16_11(*p); }}'
    ptx = nvrtc.compile(use.encode(), "header.cu", {}, ["--gpu-architecture=compute_90"]).decode()
    body = [line.strip() for line in ptx.splitlines() if re.match(r"\s*(mul|add|tanh|fma)", line)]
    assert [line.split()[0] for line in body] == ["mul.rn.ftz.f32", "tanh.approx.f32", "mul.rn.ftz.f32", "add.rn.ftz.f32"]
    assert nvptxcompiler.compile(ptx.encode(), ["--gpu-name=sm_90"])


@pytest.mark.parametrize("form", ["f16", "bf16"])
def test_the_function_of_two_halves_in_a_header_gives_the_rounded_result_of_each(form):
    """On an emulated GPU."""
    words, form = words_of("min(x*0.23 + 0.5, 1.0)"), FORMATS[form]
    found = certified(LANGUAGE, words, Function("sigmoid"), form, (-3.0, 4.0), instruction_set="default", target="sm_90")
    name = f"{function_name(found)}_x2"
    use = f'extern "C" __global__ void use(unsigned *in, unsigned *out) {{ out[threadIdx.x] = {name}(in[threadIdx.x]); }}'
    text = f"{cuda_header(LANGUAGE, [(found, words)])}\n{use}"
    ptx = nvrtc.compile(text.encode(), "header.cu", {}, ["--gpu-architecture=compute_90"])
    assert nvptxcompiler.compile(ptx, ["--gpu-name=sm_90"])
    x = form.of_keys(np.linspace(-form.key(3.0), form.key(4.0), 512).astype(int))

    def halves(values: np.ndarray) -> np.ndarray:
        return (
            values.astype(np.float16).view(np.uint16) if form.name == "f16" else (values.view(np.uint32) >> 16).astype(np.uint16)
        )

    given = np.ascontiguousarray(halves(x)).view(np.uint32)
    results = np.zeros_like(given)
    addresses = struct.pack("<2Q", given.ctypes.data, results.ctypes.data)
    launch(Module(ptx), "use", (1,), (256,), addresses, Memory.of_arrays(given, results))
    np.testing.assert_array_equal(results.view(np.uint16), halves(form.round(run("min(x*0.23 + 0.5, 1.0)", x))))


def test_what_is_no_certificate_is_refused_in_one_line(tmp_path):
    path = tmp_path / "file.json"
    for text, message in (("{", "not JSON"), ("[]", r"key '': |Input should|object"), ('{"proof": 2}', "key 'function'")):
        path.write_text(text)
        with pytest.raises(UserError, match=message):
            check_certificate(path)


def test_a_program_that_the_cpu_cannot_run_is_refused_in_one_line(certificate, tmp_path):
    path, data = tmp_path / "other.json", json.loads(certificate.read_text())
    for program, reason in (("special:laneid u32_to_f32", "special register %laneid"), ("%x sqrt_rn_ftz_f32", "sqrt_rn_ftz_f32")):
        path.write_text(json.dumps(data | {"program": program, "instruction_set": "wide"}))
        with pytest.raises(UserError, match=f"^{path}: refused: the program cannot be proven: .*{reason}") as error:
            check_certificate(path)
        assert "\n" not in str(error.value)


def test_a_function_that_is_code_runs_only_by_name(tmp_path):
    words = words_of("x*0.5")
    found = certified(
        LANGUAGE, words, Function("mpmath:sinh"), FORMATS["bf16"], (-1.0, 1.0), instruction_set="default", target="sm_90"
    )
    path = tmp_path / "code.json"
    path.write_text(found.text())
    assert found.enclosure == "validated: mpmath:sinh" and "are estimates" in found.description()
    told = re.findall(r"error at most .*", cuda_header(LANGUAGE, [(found, words)]))
    assert len(told) == 3 and all("(an estimate: values of the function are validated: mpmath:sinh)" in each for each in told)
    for code in (None, "mpmath:cosh"):
        with pytest.raises(UserError, match=r"key 'function': 'mpmath:sinh' is code, .* --code mpmath:sinh"):
            check_certificate(path, code=code)
    assert check_certificate(path, code="mpmath:sinh") == found


@pytest.mark.slow
def test_a_run_is_proven_by_its_verb(fork_evo, tmp_path):
    few = ("stop.evaluations=3000", "search.initial.num_programs=512", "search.batch_size=256", "output.plots=[]")
    options = ("task_options={function: tanh, interval: [-2, 3], format: bf16, error: ulp, num_points: 128}", "output.runs=runs")
    overrides = [part for each in (*few, *options) for part in ("--set", each)]
    assert load_config(Path("approximation"), (*few, *options))
    assert fork_evo("run", "approximation", *overrides, cwd=tmp_path).returncode == 0
    [run_folder] = (tmp_path / "runs").glob("*/*")
    proven = fork_evo("prove", str(run_folder), "--front", cwd=tmp_path)
    assert proven.returncode == 0, proven.stderr
    files = sorted((run_folder / "proofs").iterdir())
    header = files.pop()
    assert header.name == "approximations.cuh" and header.read_text().count("float x) {") == len(files)
    assert len(files) == proven.stdout.count("bf16, [-2.0, 3.0]: ") > 2
    best = Certificate.model_validate_json(files[-1].read_text(), strict=False)
    assert float(best.cpu["ulp"].bound) < 2.0
    for name in ("c", "torch", "triton"):  # which the run's folder tells what is proven
        exported = fork_evo("export", str(run_folder), "--format", name, cwd=tmp_path)
        assert exported.returncode == 0, exported.stderr
        assert "Proven of its PTX: tanh, bf16, [-2.0, 3.0]: " in exported.stdout
    checked = fork_evo("prove", "--check", str(files[0]), cwd=tmp_path)
    assert checked.returncode == 0 and "holds" in checked.stdout
    for arguments, message in (
        ((), "name a run, or a certificate"),
        ((str(run_folder), "--interval", "2", "1"), "--interval: must be two numbers"),
        ((str(run_folder), "--interval", "1.001", "1.002"), "bf16 has no value in"),
    ):
        refused = fork_evo("prove", *arguments, cwd=tmp_path)
        assert refused.returncode == 2 and message in refused.stderr and "Traceback" not in refused.stderr


HALVES = shipped_instruction_set("halves")
NATIVE = {
    "bf16": "%x 0.5:bf16 mul_bf16 dup.bf16 tanh_approx_bf16 %x cvt_f32_bf16 0.03 mul_ftz_f32 dup.f32 mul_ftz_f32 cvt_rn_bf16_f32"
    " add_bf16 0.5:bf16 swap.bf16 fma_rn_bf16 %x neg_bf16 -1.442695:bf16 %x abs_bf16 mul_bf16 ex2_approx_ftz_bf16 %x min_bf16"
    " max_bf16 sub_bf16",
    "f16": "%x 0.5:f16 mul_f16 dup.f16 tanh_approx_f16 %x f16_to_f32 0.03 mul_ftz_f32 dup.f32 mul_ftz_f32 cvt_rn_f16_f32"
    " add_f16 0.5:f16 swap.f16 fma_rn_f16 %x neg_f16 -1.442695:f16 %x abs_f16 mul_f16 ex2_approx_f16 %x min_f16 max_f16 sub_f16",
}


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_both_native_functions_in_a_header_compute_what_the_program_does(name):
    """On an emulated GPU, whose approximate instructions are nearer to the truth: they differ by a unit in the last place."""
    form = FORMATS[name]
    language = Language(HALVES, (("x", name),), (("y", name),))
    words = parse_program(language, NATIVE[name], "test")
    found = certified(language, words, Function("sigmoid"), form, (-3.0, 4.0), instruction_set="halves", target="sm_90")
    assert (found.arithmetic, found.num_instructions) == ("native", 15)
    function = function_name(found)
    use = f"""
extern "C" __global__ void one(unsigned short *in, unsigned short *out) {{ out[threadIdx.x] = {function}(in[threadIdx.x]); }}
extern "C" __global__ void two(unsigned *in, unsigned *out) {{ out[threadIdx.x] = {function}_x2(in[threadIdx.x]); }}
"""
    text = cuda_header(language, [(found, words)]) + use
    ptx = nvrtc.compile(text.encode(), "header.cu", {}, ["--gpu-architecture=compute_90"])
    assert nvptxcompiler.compile(ptx, ["--gpu-name=sm_90"])
    assert {f"fma.rn.{name}", f"fma.rn.{name}x2", f"mul.rn.{name}x2", f"tanh.approx.{name}x2"} <= set(ptx.decode().split())
    x = form.of_keys(np.linspace(-form.key(3.0), form.key(4.0), 1024).astype(int))
    given = np.array([form.bits(each) for each in x], np.uint16)
    results = [np.zeros_like(given), np.zeros_like(given)]
    for result, kernel, threads in zip(results, ("one", "two"), (1024, 512), strict=True):
        addresses = struct.pack("<2Q", given.ctypes.data, result.ctypes.data)
        launch(Module(ptx), kernel, (1,), (threads,), addresses, Memory.of_arrays(given, result))
    np.testing.assert_array_equal(*results)
    expected = VirtualMachine(language.lowering).store(words[None], [x, None])[0, 0]
    emulated = (
        results[0].view(np.float16).astype(np.float32) if name == "f16" else (results[0].astype(np.uint32) << 16).view(np.float32)
    )
    off = np.abs(emulated - expected) / form.ulp(expected.astype(np.float64))
    assert (off == 0.0).mean() > 0.8 and np.abs(emulated - expected).max() < 2.0 ** (1 - form.digits)
