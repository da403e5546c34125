"""No text of an instruction set, task or certificate runs: when it is read, in an export, or when that is checked."""

import ast
import csv
import io
import random
import re
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from run_exports import run_c, run_python, run_sympy

from evo.approximation.certificate import Certificate, Error
from evo.approximation.header import cuda_header
from evo.errors import UserError
from evo.escape import comment_lines, docstring, identifier, printable
from evo.instructions import describe_instruction_set, shipped_instruction_set
from evo.instructions.header import render_header
from evo.language.dag import dag_of
from evo.language.formula import evaluate, formula_of, has_real_form
from evo.language.formula_source import excel_source
from evo.language.formula_text import infix
from evo.language.parsed import NotAllowed, closure, statements
from evo.language.printer import Unsupported
from evo.language.program import Language, parse_program
from evo.language.source import c_source, cuda_source, python_source
from evo.language.tensor_source import torch_source, triton_source
from evo.report.export.sympy_text import latex_text, sympy_text
from evo.report.table import csv_text

MARK = "evo-was-run"
PAYLOADS = (
    f'open("{MARK}", "w")',
    f'__import__("os").system("touch {MARK}")',
    f'"""\nopen("{MARK}", "w")\n"""',
    f"'''\nopen('{MARK}', 'w')\n'''",
    f'\\"""\nopen("{MARK}", "w")\n"""',
    f'a\nopen("{MARK}", "w")',
    f'a\ropen("{MARK}", "w")',
    f'a # \u2028open("{MARK}", "w")',
    f'*/\n__attribute__((constructor)) void f(void) {{ system("touch {MARK}"); }}\n/*',
    f"??/\n*/ #include </{MARK}> /*",
    f'(lambda: open("{MARK}", "w"))()',
    f'[open("{MARK}", "w") for x in (1,)][0]',
    f'a if open("{MARK}", "w") else b',
    "().__class__.__base__.__subclasses__()",
    f"{{open('{MARK}', 'w')}}",
    f"Symbol(\"open('{MARK}', 'w')\")",
    f"sympify(\"open('{MARK}', 'w')\")",
    "abs.__globals__",
    "np.save('evo-was-run', a)",
    "a**9**9**9",
    "Pow(9, Pow(9, 9))",
    f"=cmd|' /C touch {MARK}'!A0",
    f"\x1b]0;{MARK}\x07",
    "exec(a)",
    "eval(a, b)",
    "a \\",
)
WRAPPED = ("{}", "a + {}", "{} + a", "abs({})", "a*b; {}", "sin(a)\n{}")
BASES = (
    {"ptx": "foo.f32", "args": ["F32", "F32"], "infix": "a + b"},
    {"ptx": "foo.f32", "args": ["F32", "F32"], "infix": "max(a, b)", "sympy": "Max(a, b)"},
    {"ptx": "add.ftz.f32", "args": ["F32", "F32"]},
    {"ptx": "max.ftz.f32", "args": ["F32", "F32"]},
    {"ptx": "copysign.f32", "args": ["F32", "F32"]},
)
FIELDS = (
    *("ptx", "name", "display", "infix", "infix", "infix", "sympy", "sympy", "formula", "meaning", "code", "derivative", "error"),
    *("vm", "function", "slots", "stack", "prefix", "arg_type", "special"),
)
X, Y = np.linspace(-2.0, 2.0, 9, dtype=np.float32), np.linspace(1.0, 3.0, 9, dtype=np.float32)


def description(rng: random.Random) -> dict:
    """An instruction set with one hostile text."""
    field, text = rng.choice(FIELDS), rng.choice(WRAPPED).format(rng.choice(PAYLOADS).replace("{", "{{").replace("}", "}}"))
    row = {**rng.choice(BASES), "rets": ["F32"]}
    names = {"stack": "F32", "prefix": "f32", "arg_type": "F32", "special": "tid"}
    if field in names:
        names[field] = text
    else:
        row[field] = {"derivative": {"a": text}, "slots": {text: 1.0}}.get(field, text)
    return {
        "stack_types": [{"name": names["stack"], "literal_prefix": names["prefix"], "constant_type": "f32"}],
        "arg_types": [{"name": names["arg_type"], "stack_type": names["stack"]}],
        "instructions": [row],
        "special_registers": [{"ptx": names["special"], "arg_type": names["arg_type"]}],
    }


def drive(instruction_set, comment: str, *, compiles: bool) -> None:
    """Writes all exports of a program with its instruction, checks them as evo does, and runs Python as Python does."""
    render_header(instruction_set, "c", "own.h")
    language = Language(instruction_set, (("x", "f32"), ("y", "f32")), (("f", "f32"),))
    name = instruction_set.instructions[0].name
    program = dag_of(language, parse_program(language, f"%x %y {name}", "text", 8))
    infix(program)
    expressions = [program]
    if has_real_form(program):
        expressions.append(formula_of(program, {}, {}))
        evaluate(expressions[-1], [X, Y])
    checks = {
        python_source: lambda text: run_python(text, [X, Y]),
        sympy_text: lambda text: run_sympy(text, [X, Y], 9),
        **dict.fromkeys((cuda_source, excel_source), lambda _: None),
        **dict.fromkeys((torch_source, triton_source), ast.parse),
        c_source: lambda text: compiles and run_c(text, [X, Y], 9, [np.float32]),
    }
    for expression in expressions:
        for write, check in checks.items():
            try:
                text = write(expression, comment)
                check(text)
            except (UserError, Unsupported):
                continue
            if write in (python_source, sympy_text) or (write is torch_source and find_spec("torch")):
                exec(compile(text, "export", "exec"), {})
        with suppress(UserError, Unsupported):
            latex_text(expression)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_hostile_instruction_sets_run_nothing(tmp_path, monkeypatch, seed):
    """Of 300, and of 600 with a C compiler."""
    monkeypatch.chdir(tmp_path)
    rng, accepted, refusals = random.Random(seed), 0, []
    for _ in range(300 if seed == 1 else 600):
        try:
            found = describe_instruction_set(description(rng))
        except UserError as error:
            refusals.append(str(error))
            continue
        accepted += 1
        drive(found, rng.choice(PAYLOADS), compiles=seed == 2)
    assert accepted >= 10
    assert all(map(str.isprintable, refusals))
    assert not [*tmp_path.glob("*")]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_text_stays_in_its_place(payload):
    """Python, a C compiler, and CSV as spreadsheets read it."""
    tree = ast.parse(f"{docstring(payload)}\nx = 1\n")
    assert [type(each) for each in tree.body] == [ast.Expr, ast.Assign]
    assert ast.literal_eval(tree.body[0].value) == printable(payload)
    lines = "\n".join(comment_lines(payload, "// "))
    block = "\n".join(["/*", *comment_lines(payload, " * "), " */"])
    for text in (f"{lines}\nint x;\n", f"{block}\nint x;\n"):
        done = subprocess.run(["cc", "-std=c99", "-E", "-P", "-xc", "-"], input=text, capture_output=True, text=True, check=False)
        assert done.stdout.split() == ["int", "x;"]
    assert identifier(payload).isidentifier()
    assert printable(payload).replace("\n", "").replace("\t", "").isprintable()
    [[shown], _] = csv.reader(io.StringIO(csv_text(pd.DataFrame({payload: [1.0]})), newline=""), strict=True)
    assert shown[:1] not in set("=+-@\t\r")


def test_cells_that_begin_like_formulas_are_texts_and_numbers_stay():
    frame = pd.DataFrame({"=a": ["=1+1", "+1", "-x", "@x", "\tx", "\rx", "x"], "b": [-1.0] * 7, "c": [-1] * 7})
    rows = [*csv.reader(io.StringIO(csv_text(frame), newline=""))]
    assert [row[0] for row in rows] == ["'=a", "'=1+1", "'+1", "'-x", "'@x", "'\tx", "'\\rx", "x"]
    assert rows[1][1:] == ["-1.0", "-1"]


@pytest.mark.parametrize(
    "text", ["x.__class__", "[x for y in z]", "lambda: x", "x if y else z", "f'{x}'", "f(*x)", "f(**x)", "(y := x)"]
)
def test_what_is_not_on_the_list_of_nodes_is_refused(text):
    with pytest.raises(NotAllowed, match="not an expression"):
        closure(text)
    with pytest.raises(NotAllowed):
        statements(f"y = {text}")


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "from os import system",
        "from . import x",
        "del x",
        "class A: pass",
        "raise x",
        "global x",
        "x.y = 1",
        "while x: 1",
        "@evil('x')\ndef f(): return 1",
        "def f(x: evil()): return 1",
        "def f(*x: evil()): return 1",
        "def f() -> evil(): return 1",
        "with evil() as q: x = 1",
        "with evil(): x = 1",
        "with np.errstate(all=evil()): x = 1",
        "def f(x=evil()): return 1",
    ],
)
def test_other_statements_are_refused(text):
    with pytest.raises(NotAllowed):
        statements(text)


def test_no_trigraph_is_left_in_a_comment():
    assert not any("??" in line for text in ("what???/", "????/", "??/") for line in comment_lines(text, "// "))


@pytest.mark.parametrize("key", ["error", "infix", "formula", "sympy", "function"])
def test_what_the_library_knows_of_an_instruction_cannot_be_replaced(key):
    value = {"error": "2^-40 relative", "function": "sin"}.get(key, "a")
    types = {"stack_types": [{"name": "F32", "literal_prefix": "f32"}], "arg_types": [{"name": "F32", "stack_type": "F32"}]}
    row = {"ptx": "ex2.approx.ftz.f32", "args": ["F32"], "rets": ["F32"], key: value}
    with pytest.raises(UserError, match=rf"^here: key 'instructions\.0\.{key}': the library finds it by the PTX text"):
        describe_instruction_set({**types, "instructions": [row]}, "here")


def test_a_tasks_warnings_and_errors_reach_the_terminal_without_escapes(tmp_path):
    (tmp_path / "task.py").write_text(
        'import warnings\nimport evo\nwarnings.warn("a\\x1b[31mb")\n'
        'class Wrong(evo.Task):\n    inputs = {"\\x1b]0;c\\x07": "f33"}\n'
    )
    (tmp_path / "own.yaml").write_text(
        "task: .\nprogram: {vocabulary: {instructions: {add_ftz_f32: 1}}}\n"
        "search: {archive: {type: GridArchive, dims: [4]}}\n"
        "stop: {generations: 1}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "evo", "run", "own.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "\\x1b[31m" in done.stderr
    assert not set("\x1b\x07") & {*done.stderr, *done.stdout}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_certificates_texts_stay_in_the_comments_of_a_header(payload):
    """Whatever a certificate's own checks let through."""
    language = Language(shipped_instruction_set("default"), (("x", "f32"),), (("y", "f32"),))
    error = Error(worst="0.5", at="1.0", bound="0.5")
    made = dict.fromkeys(("function", "formula", "enclosure", "format", "target", "why_not", "symmetry"), payload)
    found = Certificate.model_construct(
        **made, interval=(payload, payload), num_inputs=1, num_instructions=1, slots="2.0", cpu={"ulp": error}, any_gpu={}
    )
    text = cuda_header(language, [(found, parse_program(language, "%x tanh_approx_f32", "text", 8))])
    stub = "\\n\\t"
    code = [line for line in text.splitlines() if line and not line.startswith("//") and stub not in line]
    kinds = r"#pragma once|__device__ __forceinline__ float [A-Za-z0-9_]+\(float x\) \{| {4}float y;"
    kinds += r'| {8}: "=f"\(y\)| {8}: "f"\(x\)\);| {4}return y;|\}'
    assert [line for line in code if not re.fullmatch(rf'{kinds}| {{8}}"\}}"', line)] == []
