"""The exact text of stubs, of Stack PTX and AST PTX, as tests/data/stubs.json has it: each case is a program and its stub."""

import json
from pathlib import Path

import pytest

from evo import stack_ptx
from evo.ast_ptx import Argument, AstPTX, I, Routine

GOLDEN = json.loads((Path(__file__).parents[2] / "data" / "stubs.json").read_text())
REGISTERS = stack_ptx.Words().registers(GOLDEN["registers"])
ROUTINES = [stack_ptx.Compiler(REGISTERS, ["z"]).parse(text) for text in GOLDEN["routines"]]
OWN_REGISTERS = stack_ptx.Words(GOLDEN["own_set"]["description"]).registers(GOLDEN["own_set"]["registers"])
SQUARE = Routine("square", 1, [Argument(0), Argument(0), I.mul_ftz_f32])
AST = AstPTX(["x", "y", "a_name_that_is_longer_than_fifteen"], "z", routines=[SQUARE])


@pytest.mark.parametrize("mode", ["lenient", "compatible"])
@pytest.mark.parametrize("case", GOLDEN["stack_ptx"], ids=lambda case: case["case"])
def test_stub_of_a_stack_ptx_program(case, mode):
    compiler = stack_ptx.Compiler(REGISTERS, case["requests"], routines=ROUTINES, mode=mode)
    assert compiler.compile(compiler.parse(case["program"])).split("\n") == case[mode]


@pytest.mark.parametrize("case", GOLDEN["own_set"]["cases"], ids=lambda case: case["case"])
def test_stub_of_a_program_in_a_set_of_ones_own(case):
    """Instructions of a user: of three stacks, with results on two, with four operands, with registers alone, volatile."""
    compiler = stack_ptx.Compiler(OWN_REGISTERS, case["requests"], mode="lenient")
    assert compiler.compile(compiler.parse(case["program"])).split("\n") == case["stub"]


def ast_element(token: str):
    if token.startswith("%"):
        return AST.registers[token[1:]]
    return SQUARE if token == "square" else getattr(I, token) if token in dir(I) else float(token)


@pytest.mark.parametrize("case", GOLDEN["ast_ptx"], ids=lambda case: case["case"])
def test_stub_of_an_ast_ptx_program(case):
    assert AST.compile([ast_element(token) for token in case["program"].split()]).split("\n") == case["stub"]
