"""Pickles, copies and sends to other processes of every public class, and the behaviour of its objects."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evo import ast_ptx, ptx_inject, stack_ptx
from evo.ast_ptx import Argument, AstPTX, Bits, Instruction, Register, Routine
from evo.ptx_inject import AnnotationError, DataType, PTXInject
from evo.stack_ptx import Compiler, Limits, Names, Word, Words

WORDS = Words()
R, SET = WORDS.registers(x="f32", z="f32"), WORDS.instructions
LIMITS = Limits(stack_size=7, max_nodes=50, max_frame_depth=2, store_size=3, execution_limit=60)
COMPILER = Compiler(R, ["z"], routines=[[R.x, R.x, SET.mul_ftz_f32]], limits=LIMITS, mode="lenient")
PROGRAM = [R.x, WORDS.routine(0), 1.5, SET.add_ftz_f32, WORDS.meta.dup("f32"), SET.mul_ftz_f32]
SQUARE = Routine("square", 1, [Argument(0), Argument(0), ast_ptx.I.mul_ftz_f32])
AST = AstPTX(["x"], "z", [ast_ptx.I.mul_ftz_f32, Instruction("own.f32", 2)], [SQUARE])
TYPES = [DataType("mask", "u32", "b32", "r", "*(unsigned*)&")]
PTX = "a\n// PTX_INJECT_START func\n// %r1 out mask z\n// %r2 in mask x\n// PTX_INJECT_END\nb\n"
INJECT = PTXInject(PTX, TYPES)


def raised(error: type[Exception], call: Callable[..., Any], *args: Any) -> Exception:
    with pytest.raises(error) as caught:
        call(*args)
    return caught.value


def words_of(names: Names) -> dict[str, Any]:
    return {name: names[name] for name in names}


# Class -> objects of it, and what they are compared by.
EXAMPLES: dict[type, tuple[list[Any], Callable[[Any], Any]]] = {
    stack_ptx.Compiler: ([COMPILER], lambda c: (c.compile(PROGRAM), c.mode, c.requests, c.language.limits, c.value_numbering)),
    stack_ptx.Limits: ([LIMITS], lambda limits: limits),
    stack_ptx.Names: (
        [Names("thing", {"a": 1, "b": "two"}), WORDS.instructions, WORDS.special],
        lambda n: (words_of(n), str(raised(AttributeError, getattr, n, "none"))),
    ),
    stack_ptx.ProgramError: (
        [raised(stack_ptx.ProgramError, Compiler(R, ["z"]).compile, [R.x, Word(99)])],
        lambda e: (str(e), e.result, e.word_idx, e.routine_idx, e.program_idx),
    ),
    stack_ptx.Registers: ([R], lambda r: (words_of(r), r.types, r.words.instruction_set)),
    stack_ptx.Word: ([R.x, WORDS.RETURN], lambda w: (w, repr(w))),
    stack_ptx.Words: (
        [WORDS, Words("wide")],
        lambda w: (w.instruction_set, words_of(w.instructions), w.meta.rotate("f32"), w.constants.u32(7)),
    ),
    ast_ptx.Argument: ([Argument(2)], lambda a: a),
    ast_ptx.AstPTX: ([AST], lambda a: (a.compile(np.array(AST.encode([Register("x"), SQUARE]))), a.inputs, a.instructions)),
    ast_ptx.Bits: ([Bits(0x7FC00001)], lambda b: b),
    ast_ptx.Instruction: ([Instruction("own.f32", 2)], lambda i: i),
    ast_ptx.Instructions: ([ast_ptx.I], lambda i: (list(i), i.mul_ftz_f32)),
    ast_ptx.Register: ([Register("x")], lambda r: r),
    ast_ptx.Registers: ([AST.registers], lambda r: (list(r), r.x)),
    ast_ptx.Routine: ([SQUARE], lambda r: (r.name, r.num_args, r.words)),
    ptx_inject.AnnotationError: (
        [raised(AnnotationError, PTXInject, "\n// PTX_INJECT_START func\n")],
        lambda e: (str(e), e.language, e.line, e.column, e.reason),
    ),
    ptx_inject.DataType: (TYPES, lambda t: t),
    ptx_inject.PTXInject: ([INJECT, PTXInject(PTX.encode(), TYPES)], lambda i: (i.render({"func": "STUB"}), dict(i))),
    ptx_inject.Sites: ([INJECT["func"]], lambda s: (s.name, s.num_sites, dict(s))),
    ptx_inject.Variable: ([INJECT["func"]["x"]], lambda v: v),
}
COPIES = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_a_copy_is_of_the_same_class_and_does_the_same(kind, how):
    examples, meaning = EXAMPLES[kind]
    for example in examples:
        made = COPIES[how](example)
        assert type(made) is kind is type(example)
        assert meaning(made) == meaning(example)


def test_a_routine_and_the_programs_that_call_it_are_pickled_together():
    ast, program = pickle.loads(pickle.dumps((AST, [Register("x"), SQUARE])))
    assert ast.compile(program) == AST.compile([Register("x"), SQUARE])
