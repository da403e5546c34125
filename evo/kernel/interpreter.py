"""The interpreter kernel: runs many programs at many points from device code, so that no program is compiled.

Owns the kernel's text, its shared memory and the numbers of its cases; `evo.kernel.interpreter_cases` has what each case does.
csrc/device_code.h describes the device code and how programs are scheduled. One kernel serves all programs over the same
instructions, inputs and outputs. Its results equal those of the compile lane bit by bit: a case applies its instruction as a stub
does.

A block of BLOCK_SIZE threads runs programs one after the other on one tile of POINTS points. Each value of a program is a vector
of shared memory, with POINTS_PER_THREAD neighbouring points for each thread, which no other thread reads. The latest value stays
in registers, the accumulator. All threads are at the same step, so its operands are decoded once for a warp. Launch contract:

    grid     x: `num_tiles`    y: ceil(num_programs / num_together)
    block    BLOCK_SIZE threads, `Layout.shared_bytes` of dynamic shared memory
    params   one u64 an input: address of its values, 4 bytes each
             one u32 an input: bytes from a point to the next, 4, or 0 for an input that is the same at all points
             u64: address of the device code, 16 bytes a step, with at least one step after the last program's
             u64: address of the programs' first steps, u32 each
             u32: num_programs; u32: num_together, programs that a block runs, a multiple of `Layout.num_buffered`
             u32: num_points, below 2**31
             u64: address of the results, which must not overlap the inputs
             u64: address of the targets, u64: address of the weights, or 0 in a kernel without; in a kernel that sums

Results of a kernel that stores are the outputs, `(num_programs, num_outputs, num_points)` of 4 bytes. A kernel that sums keeps
the outputs of `num_buffered` programs in shared memory, and then eight threads, an octet, sum each: no output goes to memory. Its
results are the scratch of `regression_rows` (`evo.kernel.reduction`), one row for each output of each program, as
`regression_blocks` writes it: in the same order and so with the same bits. Targets are `(num_outputs, num_points)` float32.

Inputs are read from memory once for all programs of a block. So with sums, a program and a point cost 4 / num_together bytes for
each input, 4 / num_buffered for each target and 88 / 1,024 for the sums of each output.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from evo.kernel import reduction
from evo.kernel.interpreter_cases import IS_STORED, Cases, Threads, cases_of
from evo.kernel.pointwise import PTX_VERSION
from evo.language.program import Language

ENTRY = "interpret"
# Part of the cubin's cache key. Change it with the kernel's text.
TEMPLATE = "interpreter-4"

BLOCK_SIZE = 256
# Four let a load or store of a vector move 16 bytes, the most that one instruction can, and share the work of decoding a step.
# Eight would halve that work again, but also the warps of a multiprocessor, and not the traffic of shared memory (docs/gpu.md).
POINTS_PER_THREAD = 4
POINTS = BLOCK_SIZE * POINTS_PER_THREAD  # as reduction.POINTS_PER_BLOCK
VECTOR_BYTES = 4 * POINTS
_THREADS = Threads(POINTS_PER_THREAD, VECTOR_BYTES.bit_length() - 1, are_together=True)

# Shared memory of a block: 12 vectors. Two such blocks, 16 warps, fit a multiprocessor of compute capability 8.6, 8.9 or 12.0,
# whose 100 KiB are the least since Turing; three fit 8.0, and four 9.0 and 10.0.
NUM_VECTORS = 12
# With many inputs and outputs a block may have twice as much, which is what all GPUs since compute capability 8.0 have for one.
MAX_VECTORS = 24
# The 64 KiB of compute capability 7.5 are one block's.
_SHARED_BYTES = {"sm_75": 64 << 10}
_MIN_BLOCKS = 4  # for a multiprocessor, so that the assembler leaves registers for as many
# Programs whose outputs wait to be summed: as many octets as a warp has.
_MAX_BUFFERED = 4
# Fewer slots would send programs to the compile lane for the sake of more warps.
_MIN_SLOTS = 7


@dataclass(frozen=True)
class Layout:
    """What the vectors of a block's shared memory hold: inputs, then slots, then outputs of the buffered programs.

    num_buffered: programs whose outputs are held at once; 1 in a kernel that stores.
    """

    num_inputs: int
    num_outputs: int
    num_slots: int
    num_buffered: int

    @property
    def first_output(self) -> int:
        """The vector of the first buffered program's first output."""
        return self.num_inputs + self.num_slots

    @property
    def num_vectors(self) -> int:
        """All of them."""
        return self.first_output + self.num_buffered * self.num_outputs

    @property
    def shared_bytes(self) -> int:
        """Of all vectors."""
        return self.num_vectors * VECTOR_BYTES


def layout_of(language: Language, sums: bool) -> Layout | None:
    """How a kernel for these inputs and outputs uses its shared memory; None if they leave too few slots."""
    num_inputs, num_outputs = len(language.inputs), len(language.outputs)
    num_vectors = max(NUM_VECTORS, num_inputs + num_outputs + _MIN_SLOTS)
    num_buffered = (num_vectors - num_inputs - _MIN_SLOTS) // num_outputs if sums else 1
    num_buffered = min(num_buffered, _MAX_BUFFERED)
    num_slots = num_vectors - num_inputs - num_buffered * num_outputs
    return Layout(num_inputs, num_outputs, num_slots, num_buffered) if num_vectors <= MAX_VECTORS else None


@dataclass(frozen=True)
class Interpreter:
    """A kernel: its PTX, and what the encoder of device code must know of it."""

    ptx: str
    layout: Layout
    cases: Cases

    def instructions_at(self, lines: Sequence[int]) -> set[str]:
        """The instructions whose cases have these lines of the PTX, counted from 1."""
        text = self.ptx.splitlines()
        found = set()
        for line in lines:
            label = next((each for each in reversed(text[:line]) if each.startswith("$")), "")
            if match := re.fullmatch(r"\$case_(\d+):", label):
                index, _ = np.argwhere(self.cases.numbers == int(match[1]) & ~IS_STORED)[0]
                found.add(self.cases.instruction_set.instructions[index].name)
        return found


def interpreter(
    language: Language, target: str, sums: bool, instructions: Collection[str] | None = None, *, is_weighted: bool = False
) -> Interpreter | None:
    """The kernel for programs of a language.

    Args:
        target: a GPU architecture such as `sm_90`.
        sums: whether outputs are summed against targets instead of stored. All must be f32.
        instructions: names of those that programs may use; None: the whole set.
        is_weighted: in sums, points have weights.

    Returns:
        None if there are too many inputs and outputs.
    """
    layout = layout_of(language, sums)
    if layout is None or layout.shared_bytes > _SHARED_BYTES.get(target, MAX_VECTORS * VECTOR_BYTES):
        return None
    cases = cases_of(language.instruction_set, instructions)
    lines = [f".version {PTX_VERSION}", f".target {target}", ".address_size 64", *_kernel(layout, cases, sums, is_weighted)]
    return Interpreter("\n".join(lines) + "\n", layout, cases)


def num_tiles(num_points: int) -> int:
    """Blocks along x."""
    return -(-num_points // POINTS)


def _kernel(layout: Layout, cases: Cases, sums: bool, is_weighted: bool) -> list[str]:
    inputs = range(layout.num_inputs)
    params = [f".param .u64 input_{i}" for i in inputs] + [f".param .u32 stride_{i}" for i in inputs]
    params += [".param .u64 code", ".param .u64 starts", ".param .u32 num_programs", ".param .u32 num_together"]
    params += [".param .u32 num_points", ".param .u64 results", *([".param .u64 targets", ".param .u64 weights"] if sums else [])]
    lines = [
        ".extern .shared .align 16 .b8 vectors[];",
        f".visible .entry {ENTRY}(",
        ",\n".join(params),
        ")",
        f".maxntid {BLOCK_SIZE}, 1, 1",
        f".minnctapersm {_MIN_BLOCKS}",
    ]
    lines += ["{", _REGISTERS, _START]
    for i in inputs:
        lines += [f"ld.param.u64 %address, [input_{i}];", "cvta.to.global.u64 %address, %address;"]
        lines += [f"ld.param.u32 %index, [stride_{i}];", "mad.wide.u32 %address, %point, %index, %address;"]
        lines += ["cvt.u64.u32 %offset, %index;"]
        for k in range(POINTS_PER_THREAD):
            lines += [
                f"mov.b32 %a{k}, 0;",
                f"setp.gt.u32 %is_point, %left, {k};",
                f"@%is_point ld.global.nc.b32 %a{k}, [%address];",
            ]
            lines += ["add.u64 %address, %address, %offset;"] if k + 1 < POINTS_PER_THREAD else []
        lines += [f"st.shared.v4.b32 [%mine+{i * VECTOR_BYTES}], {{%a0, %a1, %a2, %a3}};"]
    lines += [_PROGRAM, *cases.text(_THREADS), "$program_end:"]
    lines += _sum(layout, is_weighted) if sums else _store(layout)
    return [*lines, "add.u32 %program, %program, 1;", "bra.uni $program;", "$kernel_end:", "ret;", "}"]


_REGISTERS = """
.reg .pred %past_end, %is_point, %p0, %p1, %p2;
.reg .u32 %thread, %tile, %point, %left, %num_points, %program, %end, %num_programs, %num_together, %index, %mine, %base;
.reg .b32 %next, %first, %second, %third, %case, %target, %from, %a<4>, %x<4>, %y<4>, %z<4>;
.reg .u64 %code, %starts, %at, %address, %offset, %results;
"""

# mine: address of the thread's part of the first vector; point: its first; left: points from there on.
_START = f"""
ld.param.u64 %code, [code];
ld.param.u64 %starts, [starts];
ld.param.u64 %results, [results];
ld.param.u32 %num_programs, [num_programs];
ld.param.u32 %num_together, [num_together];
ld.param.u32 %num_points, [num_points];
cvta.to.global.u64 %code, %code;
cvta.to.global.u64 %starts, %starts;
cvta.to.global.u64 %results, %results;
mov.u32 %thread, %tid.x;
mov.u32 %tile, %ctaid.x;
mov.u32 %program, %ctaid.y;
mul.lo.u32 %program, %program, %num_together;
add.u32 %end, %program, %num_together;
min.u32 %end, %end, %num_programs;
mov.u32 %base, vectors;
mad.lo.u32 %mine, %thread, {4 * POINTS_PER_THREAD}, %base;
mul.lo.u32 %point, %tile, {POINTS};
mad.lo.u32 %point, %thread, {POINTS_PER_THREAD}, %point;
sub.u32 %left, %num_points, %point;
setp.lt.u32 %is_point, %point, %num_points;
selp.u32 %left, %left, 0, %is_point;"""

_PROGRAM = """
$program:
setp.ge.u32 %past_end, %program, %end;
@%past_end bra.uni $kernel_end;
mul.wide.u32 %offset, %program, 4;
add.u64 %address, %starts, %offset;
ld.global.nc.u32 %index, [%address];
mul.wide.u32 %offset, %index, 16;
add.u64 %at, %code, %offset;"""


def _store(layout: Layout) -> list[str]:
    """Neighbouring threads store neighbouring points. A warp's points are its own, so it waits for nobody else."""
    lines = ["bar.warp.sync 0xffffffff;"]
    # The warp's first point in the tile, and the thread's point of the first row of 32.
    lines += ["and.b32 %index, %thread, 0x1f;", "and.b32 %target, %thread, 0xffffffe0;"]
    lines += [f"mad.lo.u32 %target, %target, {POINTS_PER_THREAD}, %index;", f"mad.lo.u32 %index, %tile, {POINTS}, %target;"]
    lines += ["mad.lo.u32 %from, %target, 4, %base;", "cvt.u64.u32 %offset, %program;", "mul.wide.u32 %address, %num_points, 4;"]
    lines += [f"mul.lo.u64 %offset, %offset, {layout.num_outputs};", "mad.lo.u64 %address, %offset, %address, %results;"]
    lines += ["mul.wide.u32 %offset, %index, 4;", "add.u64 %address, %address, %offset;", "mul.wide.u32 %offset, %num_points, 4;"]
    for output in range(layout.num_outputs):
        vector = (layout.first_output + output) * VECTOR_BYTES
        for k in range(POINTS_PER_THREAD):
            lines += [f"ld.shared.b32 %a{k}, [%from+{vector + 128 * k}];"]
        for k in range(POINTS_PER_THREAD):
            lines += [f"add.u32 %case, %index, {32 * k};", "setp.lt.u32 %is_point, %case, %num_points;"]
            lines += [f"@%is_point st.global.b32 [%address+{128 * k}], %a{k};"]
        lines += ["add.u64 %address, %address, %offset;"] if output + 1 < layout.num_outputs else []
    return [*lines, "bar.warp.sync 0xffffffff;"]


# The octets of a warp read rows that lie whole vectors apart: at equal points they would meet in the same banks of shared memory.
# So each is a point of a lane, 32 bytes, behind the one before it.
_SKEW = 8
_NUM_OCTETS = 4  # of a warp
_POINTS_AT_ONCE = 4  # a lane's loads in flight
_NUM_TRIPS = -(-(reduction.POINTS_PER_BLOCK // reduction.LANES + _NUM_OCTETS - 1) // _POINTS_AT_ONCE)

# num_rows: of the programs whose outputs wait; left: points of the tile; number: of the thread's next point in the tile.
_SUM_START = """
.reg .pred %is_waiting, %is_octet, %again;
.reg .u32 %lane, %octet, %num_rows, %row, %number, %trip, %first_program, %y_address;
.reg .u64 %t_address, %w_address, %plane_bytes;
.reg .f32 %y_<{at_once}>, %t_<{at_once}>, %w_<{at_once}>;
rem.u32 %first_program, %program, {num_buffered};
setp.ne.u32 %is_waiting, %first_program, {last_buffered};
add.u32 %index, %program, 1;
setp.ne.and.u32 %is_waiting, %index, %end, %is_waiting;
@%is_waiting bra.uni $summed;
add.u32 %num_rows, %first_program, 1;
mul.lo.u32 %num_rows, %num_rows, {num_outputs};
sub.u32 %first_program, %program, %first_program;
bar.sync 0;
setp.ge.u32 %past_end, %thread, {num_threads};
@%past_end bra $rows_end;
rem.u32 %lane, %thread, {lanes};
div.u32 %octet, %thread, {lanes};
setp.lt.u32 %is_octet, %octet, %num_rows;
min.u32 %row, %octet, {max_row};
rem.u32 %number, %octet, {num_octets};
mul.lo.u32 %number, %number, {skew};
sub.u32 %number, %lane, %number;
mad.lo.u32 %y_address, %row, {vector_bytes}, %base;
ld.shared.f32 %y_0, [%y_address+{first_row}];
mad.lo.u32 %y_address, %number, 4, %y_address;
mul.lo.u32 %index, %tile, {points};
sub.u32 %left, %num_points, %index;
min.u32 %left, %left, {points};
mov.u32 %in_block, %left;
ld.param.u64 %t_address, [targets];
cvta.to.global.u64 %t_address, %t_address;
mul.wide.u32 %plane_bytes, %num_points, 4;
rem.u32 %row, %row, {num_outputs};
cvt.u64.u32 %offset, %row;
mad.lo.u64 %t_address, %offset, %plane_bytes, %t_address;
mul.wide.u32 %offset, %index, 4;
ld.param.u64 %w_address, [weights];
cvta.to.global.u64 %w_address, %w_address;
add.u64 %w_address, %w_address, %offset;
add.u64 %t_address, %t_address, %offset;
ld.global.nc.f32 %t_0, [%t_address];
mul.wide.s32 %offset, %number, 4;
add.u64 %t_address, %t_address, %offset;
add.u64 %w_address, %w_address, %offset;
mov.u32 %trip, {num_trips};"""

_SUM_NEXT = """
add.u32 %number, %number, {step};
add.u32 %y_address, %y_address, {step_bytes};
add.u64 %t_address, %t_address, {step_bytes};
add.u64 %w_address, %w_address, {step_bytes};
sub.u32 %trip, %trip, 1;
setp.ne.u32 %again, %trip, 0;
@%again bra $points;"""

# A row is one output of one program.
_SUM_END = """
mov.u32 %index, %nctaid.x;
mul.wide.u32 %plane_bytes, %index, 8;
mad.lo.u32 %row, %first_program, {num_outputs}, %octet;
mad.lo.u32 %row, %row, {num_fields}, %lane;
cvt.u64.u32 %offset, %row;
mad.lo.u64 %address, %offset, %plane_bytes, %results;
mul.wide.u32 %offset, %tile, 8;
add.u64 %address, %address, %offset;
{store}
$rows_end:
bar.sync 0;
$summed:"""


def _sum(layout: Layout, is_weighted: bool) -> list[str]:
    """Sums the outputs of the programs since the last sums when their vectors are full, or after the block's last program."""
    max_rows = layout.num_buffered * layout.num_outputs
    first_row, step = layout.first_output * VECTOR_BYTES, reduction.LANES * _POINTS_AT_ONCE
    numbers = {
        "at_once": _POINTS_AT_ONCE,
        "num_buffered": layout.num_buffered,
        "last_buffered": layout.num_buffered - 1,
        "num_outputs": layout.num_outputs,
        "num_threads": -(-max_rows // _NUM_OCTETS) * _NUM_OCTETS * reduction.LANES,
        "lanes": reduction.LANES,
        "max_row": max_rows - 1,
        "num_octets": _NUM_OCTETS,
        "skew": _SKEW,
        "vector_bytes": VECTOR_BYTES,
        "points": POINTS,
        "num_trips": _NUM_TRIPS,
        "step": step,
        "step_bytes": 4 * step,
        "num_fields": reduction.NUM_FIELDS,
        "store": reduction.store_fields("address", "plane_bytes"),
        "first_row": first_row,
    }
    lines = [reduction.SUM_REGISTERS, _SUM_START.format(**numbers), reduction.NO_SUMS, "$points:"]
    for i in range(_POINTS_AT_ONCE):
        lines += [f"add.u32 %index, %number, {i * reduction.LANES};", "setp.lt.u32 %is_point, %index, %left;"]
        lines += [f"mov.f32 %y_{i}, 0f7FFFFFFF;", f"mov.f32 %t_{i}, 0f00000000;"]
        lines += [f"@%is_point ld.shared.f32 %y_{i}, [%y_address+{first_row + i * reduction.LANES * 4}];"]
        lines += [f"@%is_point ld.global.nc.f32 %t_{i}, [%t_address+{i * reduction.LANES * 4}];"]
        if is_weighted:
            lines += [
                f"mov.f32 %w_{i}, 0f00000000;",
                f"@%is_point ld.global.nc.f32 %w_{i}, [%w_address+{i * reduction.LANES * 4}];",
            ]
    lines += [reduction.add_point(i, is_weighted) for i in range(_POINTS_AT_ONCE)]
    return [*lines, _SUM_NEXT.format(**numbers), reduction.join_lanes(is_weighted), _SUM_END.format(**numbers)]
