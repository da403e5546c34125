"""CPU evaluation: lowering, preparing and running programs by batch call, on one thread; NumPy and pyoperon on the same work.

GPops/s = live instructions x points / seconds / 1e9. The programs are random stack programs over three inputs and constants,
in which each new operation takes its operands as follows, until it has `num_operations`; what is left on the stack is then
folded by additions:

    chain   the first from the top of the stack, others half of the time from there, else an input or a constant
    tree    each half of the time from the top of the stack, else an input or a constant
    dag     as tree, but a quarter of the operands copy a value anywhere on the stack, which stays there

Mix A draws add sub mul fma min max abs neg; mix M three quarters of A and one quarter div rcp sqrt rsqrt sin cos ex2 lg2 tanh.
"""

import ctypes
import os
import time
from importlib.util import find_spec

import numpy as np

from evo.instructions import shipped_instruction_set
from evo.language.program import Language, word
from evo.native.ptx_vm import VirtualMachine, levels
from evo.native.stack_ptx import NodeKind
from evo.native.stack_ptx_words import WordType

SIZES = (32, 100) * 12  # operations of each program
RACE_SIZES = (20,) * 400
NUM_ROUNDS = 30
SHAPES = ("chain", "tree", "dag")
MIX_A = (
    "add_ftz_f32",
    "sub_ftz_f32",
    "mul_ftz_f32",
    "fma_rn_ftz_f32",
    "min_ftz_f32",
    "max_ftz_f32",
    "abs_ftz_f32",
    "neg_ftz_f32",
)
APPROXIMATE = (
    *(f"{name}_approx_ftz_f32" for name in ("div", "rcp", "sqrt", "rsqrt", "sin", "cos", "ex2", "lg2")),
    "tanh_approx_f32",
)
META_YANK_DUP = 1
M_TRIM_THRESHOLD = -1  # malloc.h

NUMPY_FUNCTIONS = {
    "add_ftz_f32": np.add,
    "sub_ftz_f32": np.subtract,
    "mul_ftz_f32": np.multiply,
    "fma_rn_ftz_f32": lambda a, b, c: np.add(np.multiply(a, b), c),
    "min_ftz_f32": np.fmin,
    "max_ftz_f32": np.fmax,
    "abs_ftz_f32": np.abs,
    "neg_ftz_f32": np.negative,
    "div_approx_ftz_f32": np.divide,
    "rcp_approx_ftz_f32": np.reciprocal,
    "sqrt_approx_ftz_f32": np.sqrt,
    "rsqrt_approx_ftz_f32": lambda a: np.reciprocal(np.sqrt(a)),
    "sin_approx_ftz_f32": np.sin,
    "cos_approx_ftz_f32": np.cos,
    "ex2_approx_ftz_f32": np.exp2,
    "lg2_approx_ftz_f32": np.log2,
    "tanh_approx_f32": np.tanh,
}


def draw_operation(rng: np.random.Generator, mix: str) -> str:
    return str(rng.choice(APPROXIMATE if mix == "M" and rng.random() < 0.25 else MIX_A))


def draw_program(language: Language, rng: np.random.Generator, shape: str, mix: str, num_operations: int) -> list[int]:
    """The words of one program."""
    instruction_set = language.instruction_set

    def operation(name: str) -> int:
        return word(WordType.PTX, payload=instruction_set.instruction_index(name))

    words, height = [], 0
    for _ in range(num_operations):
        name = draw_operation(rng, mix)
        num_operands = len(instruction_set.instructions[instruction_set.instruction_index(name)].args)
        num_taken = num_pushed = 0
        for i in range(num_operands):
            takes = rng.random() < 0.5 or (shape == "chain" and i == 0)
            if takes and num_taken < height:
                num_taken += 1
            elif shape == "dag" and height and rng.random() < 0.5:
                words += [word(WordType.META_CONSTANT, payload=int(rng.integers(height + num_pushed)))]
                words += [word(WordType.META, 0, META_YANK_DUP)]
                num_pushed += 1
            elif rng.random() < 0.5:
                words += [word(WordType.INPUT, payload=int(rng.integers(len(language.inputs))))]
                num_pushed += 1
            else:
                words += [word(WordType.CONSTANT, 0, int(np.float32(rng.normal()).view(np.uint32)))]
                num_pushed += 1
        words += [operation(name)]
        height += 1 - num_taken
    return [*words, *[operation("add_ftz_f32")] * (height - 1), word(WordType.RETURN)]


def draw_programs(language: Language, shape: str, mix: str, sizes: tuple[int, ...] = SIZES) -> np.ndarray:
    """`(len(sizes), length)` words."""
    rng = np.random.default_rng(20)
    rows = [draw_program(language, rng, shape, mix, int(size)) for size in sizes]
    table = np.zeros((len(rows), max(map(len, rows))), np.uint64)
    for row, words in zip(table, rows, strict=True):
        row[: len(words)] = words
    return table


def best_s(function, num_rounds: int = NUM_ROUNDS) -> float:
    """Seconds: the best of `num_rounds` calls after one that warms up."""
    function()
    best = float("inf")
    for _ in range(num_rounds):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def numpy_rate(language: Language, programs: np.ndarray, inputs: list) -> float:
    """GPops/s of NumPy, one call for each instruction."""
    names = [instruction.name for instruction in language.instruction_set.instructions]
    lowered = [language.lowering.lower(row) for row in programs[: len(programs) // 4]]

    def run():
        for program in lowered:
            values = []
            for node in program.nodes.tolist():
                kind, _, num_operands, _, payload, first, _ = node
                if kind == NodeKind.INPUT:
                    values.append(inputs[payload])
                elif kind == NodeKind.CONSTANT:
                    values.append(np.uint32(payload).view(np.float32))
                else:
                    operands = program.operands[first : first + num_operands]
                    values.append(NUMPY_FUNCTIONS[names[payload]](*(values[i] for i in operands)))

    with np.errstate(all="ignore"):
        return sum(program.num_instructions for program in lowered) * len(inputs[0]) / best_s(run, 10) / 1e9


def operon_s(mix: str, inputs: np.ndarray, sizes: tuple[int, ...] = SIZES) -> tuple[float, int]:
    """Seconds of pyoperon's EvaluateTrees on trees drawn in the same way, and their functions. inputs: contiguous."""
    import pyoperon as operon

    kinds = operon.NodeType
    simple = [(kinds.Add, 2), (kinds.Sub, 2), (kinds.Mul, 2), (kinds.Fmin, 2), (kinds.Fmax, 2), (kinds.Abs, 1)]
    others = [(kinds.Div, 2), (kinds.Sqrt, 1), (kinds.Sin, 1), (kinds.Cos, 1), (kinds.Exp, 1), (kinds.Log, 1), (kinds.Tanh, 1)]
    dataset = operon.Dataset(np.asfortranarray(inputs.T))
    hashes = [variable.Hash for variable in dataset.Variables]
    rng = np.random.default_rng(21)
    trees, num_functions = [], 0

    def leaf():
        if rng.random() < 0.5:
            node = operon.Node.Variable(1.0)
            node.HashValue = node.CalculatedHashValue = hashes[rng.integers(len(hashes))]
            return node
        return operon.Node.Constant(float(rng.normal()))

    for size in sizes:
        stack: list[list] = []
        for _ in range(size):
            kind, arity = (others if mix == "M" and rng.random() < 0.25 else simple)[rng.integers(6)]
            operands = [stack.pop() if stack and rng.random() < 0.5 else [leaf()] for _ in range(arity)]
            node = operon.Node(kind)
            node.Arity = arity
            stack.append([*(n for operand in operands for n in operand), node])
            num_functions += 1
        while len(stack) > 1:
            node = operon.Node(kinds.Add)
            node.Arity = 2
            stack.append([*stack.pop(), *stack.pop(), node])
            num_functions += 1
        trees.append(operon.Tree(stack[0]).UpdateNodes())
    num_points = inputs.shape[1]
    result = np.empty((num_points, len(trees)), np.float32, order="F")
    points = operon.Range(0, num_points)
    return best_s(lambda: operon.EvaluateTrees(trees, dataset, points, result, 1), 60), num_functions


def operon_rows(language: Language, points: np.ndarray):
    """Rows of a race: outputs of trees of 20 functions."""
    machine = VirtualMachine(language.lowering)
    for num_points, at_least, aim in ((20, "5x", "8x"), (1000, "9x", "12x")):
        inputs, texts = np.ascontiguousarray(points[:, :num_points]), []
        for mix in "AM":
            words = draw_programs(language, "tree", mix, RACE_SIZES)
            *_, kept = language.lowering.lower_all(words)
            theirs, _ = operon_s(mix, inputs, RACE_SIZES)
            ours = [best_s(lambda p=programs, i=[*inputs, None]: machine.store(p, i), 60) for programs in (kept, words)]
            texts.append("mix {}: {:.1f}x ({:.1f}x)".format(mix, *(theirs / seconds for seconds in ours)))
        what = f"trees of 20 functions at {num_points:,} points against pyoperon, lowered before (lowering included)"
        yield what, "; ".join(texts), at_least, aim


def rows():
    """Rows of the table."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    # NumPy at its best: its temporaries come from memory that stays mapped, or page faults may be what is measured.
    ctypes.CDLL(None).mallopt(M_TRIM_THRESHOLD, 1 << 30)
    language = Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32"), ("z", "f32")), (("f", "f32"),))
    rng = np.random.default_rng(22)
    points = rng.uniform(-2, 2, (3, 16_384)).astype(np.float32)
    for mix, at_least, aim in (("A", "12 GPops/s", "16 GPops/s"), ("M", "7.5 GPops/s", "10 GPops/s")):
        batches = {shape: draw_programs(language, shape, mix) for shape in SHAPES}
        for level in levels():
            machine = VirtualMachine(language.lowering, level)
            for num_points in (1024, 4096, 16_384):
                inputs = [*np.ascontiguousarray(points[:, :num_points]), None]
                rates = []
                for programs in batches.values():
                    _, counts = language.lowering.analyze(programs)
                    out = np.empty((len(programs), 1, num_points), np.float32)
                    seconds = best_s(lambda m=machine, p=programs, i=inputs, o=out: m.store(p, i, o))
                    rates.append(counts.sum() * num_points / seconds / 1e9)
                shown = ", ".join(f"{shape} {rate:.1f}" for shape, rate in zip(batches, rates, strict=True))
                is_goal = num_points == 16_384 and level == "avx2"
                what = f"CPU evaluation, mix {mix}, {num_points:,} points, {level}, 1 core"
                yield what, f"{shown} GPops/s", at_least if is_goal else "", aim if is_goal else ""
        rate = numpy_rate(language, batches["tree"], list(points))
        yield f"NumPy op by op, mix {mix}, 16,384 points, tree", f"{rate:.2f} GPops/s", "", ""
        if find_spec("pyoperon"):
            seconds, num_functions = operon_s(mix, points)
            rate = num_functions * points.shape[1] / seconds / 1e9
            yield f"pyoperon EvaluateTrees, mix {mix}, 16,384 points, tree", f"{rate:.1f} GPops/s", "", ""
    if find_spec("pyoperon"):
        yield from operon_rows(language, points)
