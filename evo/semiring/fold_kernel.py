"""The kernel of folds on a GPU: its PTX, which is shipped, with a fold's programs in its sites.

    python -m evo.semiring.fold_kernel      writes the PTX anew from fold_kernel.cu; needs NVRTC and csrc

Owns what the kernel and its host agree on. Knows nothing of devices and memory.
"""

from __future__ import annotations

import lzma
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from evo.errors import UserError
from evo.kernel import nvrtc
from evo.language.dag import Dag
from evo.language.real_programs import language, words_of
from evo.native.stack_ptx import Lowering, NodeKind
from evo.ptx_inject import PTXInject, Sites
from evo.semiring.folds import LETTERS, Axes, Fold

ENTRY = "fold"
NUM_THREADS = 256  # of a block
ELEMENTS = (8, 4, 2)  # of a thread, along each side of its block's tile
MOST = {"rows": 3, "columns": 3, "pairs": 5, "numbers": 8}  # operands: as many as second derivatives have
KINDS = {np.dtype(np.float32): 1, np.dtype(np.float16): 2, np.dtype(np.int16): 3}  # int16: the bits of bfloat16

_MATRIX = np.dtype([("values", "<u8"), ("strides", "<i8", 4)])
CALL = np.dtype(  # fold_kernel.cu describes it
    [
        *((name, _MATRIX, most) for name, most in MOST.items()),
        ("results", "<u8", 2),
        ("given", "<f4", MOST["numbers"]),
        ("initial", "<f4", 2),
        *((name, "<i4") for name in ("num_rows", "num_columns", "depth", "inner_batch", "first_matrix", "padding")),
    ]
)

_FOLDER = Path(__file__).parent
_DEPTH, _PADDING = 8, 4  # of shared memory: values of k, floats between them
_SHORT = {"rows": "r", "columns": "c", "pairs": "p", "numbers": "h"}
_ARCHITECTURE = "sm_75"  # of the shipped PTX: the oldest one
_TWO_BLOCKS = ".minnctapersm 2"


@dataclass(frozen=True)
class Roles:
    """Roles of a fold in the kernel: the sizes of its results, the one that it goes through, and its operands.

    outer, inner: letters of the results and of the steps. operands: for each of MOST, indices of the fold's operands that are
    used, in order; those of rows share the first letter with the results, those of columns the second, those of pairs both.
    """

    outer: str
    inner: str
    operands: dict[str, tuple[int, ...]]


@cache
def roles_of(fold: Fold) -> Roles:
    """The roles of a fold whose states have one kind of axes; NONE counts as PAIR, whose results are to be added.

    Raises:
        UserError: it has too many operands.
    """
    (axes,) = {state.axes for state in fold.states}
    outer = LETTERS[axes] or "MN"
    (inner,) = set("MNK") - set(outer)
    by_role: dict[str, list[int]] = {role: [] for role in MOST}
    for index in sorted(_used(fold.step) | (_used(fold.finish) if fold.finish else set())):
        if index < len(fold.operands) and fold.operands[index].axes != Axes.INDEX:
            letters = set(LETTERS[fold.operands[index].axes])
            role = (
                "numbers" if not letters else "pairs" if letters == set(outer) else "rows" if outer[0] in letters else "columns"
            )
            by_role[role].append(index)
    for role, most in MOST.items():
        if len(by_role[role]) > most:
            raise UserError(
                f"a semiring on a GPU has at most {most} {role}, this one {len(by_role[role])}: derivatives of third order and "
                "more hyperparameters need tensors on the CPU"
            )
    return Roles(outer, inner, {role: tuple(indices) for role, indices in by_role.items()})


def _used(graph: Dag) -> set[int]:
    ends = {result for result in graph.results if result is not None}
    nodes = ends.union(*(graph.needed_by(end) for end in ends))
    return {graph.nodes[index].payload for index in nodes if graph.nodes[index].kind == NodeKind.INPUT}


def elements_of(fold: Fold) -> tuple[int, ...]:
    """ELEMENTS that a fold can have: threads with many do not take several pairs."""
    return ELEMENTS if len(roles_of(fold).operands["pairs"]) <= 1 else ELEMENTS[1:]


def tile_size(elements: int) -> int:
    """Rows, and columns, of a block."""
    return 16 * elements


def shared_bytes(fold: Fold, elements: int) -> int:
    """Shared memory of a block."""
    operands = roles_of(fold).operands
    return (len(operands["rows"]) + len(operands["columns"])) * 2 * _DEPTH * (tile_size(elements) + _PADDING) * 4


@lru_cache(512)
def kernel_ptx(fold: Fold, kinds: tuple[int, ...], elements: int, architecture: str) -> str:
    """The kernel for a fold.

    Args:
        architecture: of a GPU, such as `sm_90`.
        kinds: of the rows and then the columns, of KINDS.
        elements: of ELEMENTS.
    """
    template = _template(elements)
    roles = roles_of(fold)
    names = {index: f"{_SHORT[role]}{number}" for role, indices in roles.operands.items() for number, index in enumerate(indices)}
    names |= {index: "k" for index, operand in enumerate(fold.operands) if operand.axes == Axes.INDEX}
    names |= {len(fold.operands) + index: f"s{index}" for index in range(len(fold.states))}
    num_rows = len(roles.operands["rows"])
    packed = [sum(kind << 4 * slot for slot, kind in enumerate(part)) for part in (kinds[:num_rows], kinds[num_rows:])]
    packed += [(1 << len(roles.operands[role])) - 1 for role in ("pairs", "numbers")] + [len(fold.results)]
    stubs = {
        "kinds": "\n".join(
            f"mov.u32 %{it.register}, {value};" for it, value in zip(template["kinds"].values(), packed, strict=True)
        ),
        "step": _stub(fold, fold.step, names, template["step"], "t"),
        "finish": _stub(fold, fold.finish, names, template["finish"], "y"),
    }
    ptx = template.render(stubs).replace(f".target {_ARCHITECTURE}", f".target {architecture}")
    # A multiprocessor has registers for two blocks of the largest tiles where a thread keeps one value of each pair.
    is_small = elements < max(ELEMENTS) or (len(fold.states) == 1 and not roles.operands["pairs"])
    return ptx if is_small else ptx.replace(_TWO_BLOCKS, "")


def _stub(fold: Fold, graph: Dag | None, names: dict[int, str], site: Sites, out: str) -> str:
    """The results of a graph of the fold's variables, in the registers of a site; without a graph the states themselves."""
    lines = [f"mov.f32 %{site[f'{out}{i}'].register}, 0f00000000;" for i in range(2)]
    if graph is None:
        lines = [f"mov.f32 %{site[f'{out}{i}'].register}, %{site[f's{i}'].register};" for i in range(2)]
    else:
        outputs = tuple(f"_result_{index}" for index in range(len(graph.results)))
        spoken = language(fold.names, outputs)
        registers = {fold.names[index]: site[name].register for index, name in names.items() if name in site}
        registers |= {output: site[f"{out}{index}"].register for index, output in enumerate(outputs)}
        named = [(registers.get(name, f"_unused_{index}"), stack) for index, (name, stack) in enumerate(spoken.registers)]
        lowering = Lowering(spoken.instruction_set, named, spoken.requests, spoken.limits, folding=spoken.lowering.folding)
        (stub,) = lowering.emit(words_of(graph, fold.names, outputs)[None])
        lines = [*lines[len(outputs) :], stub]
    return "\n".join(lines)


@cache
def _template(elements: int) -> PTXInject:
    return PTXInject(lzma.decompress(path_of(elements).read_bytes()))


def path_of(elements: int) -> Path:
    """Path of a kernel's PTX."""
    return _FOLDER / "generated" / f"fold_kernel_{elements}.ptx.xz"


def compiled(csrc: Path, elements: int) -> bytes:
    """The PTX of fold_kernel.cu, by NVRTC."""
    source, header = _FOLDER / "fold_kernel.cu", csrc / "ptx_inject.h"
    options = (
        f"--gpu-architecture={_ARCHITECTURE.replace('sm', 'compute')}",
        f"--define-macro=EVO_ELEMENTS={elements}",
        "--fmad=false",
    )
    return nvrtc.compile(source.read_bytes(), source.name, {header.name: header.read_bytes()}, options)


def main(csrc: Sequence[str]) -> None:
    """Writes the PTX of all kernels."""
    for elements in ELEMENTS:
        path_of(elements).write_bytes(lzma.compress(compiled(Path(*csrc or ["csrc"]), elements)))


if __name__ == "__main__":
    main(sys.argv[1:])
