"""The interpreter kernel: runs many programs at many points from device code, so that no program is compiled.

Owns the kernel's text; `evo.kernel.interpreter_layout` has its shared memory, `evo.kernel.interpreter_cases` what each case does.
csrc/device_code.h describes the device code and how programs are scheduled. One kernel serves all programs over the same
instructions, inputs and outputs. Its results equal those of the compile lane bit by bit: a case applies its instruction as a stub
does.

A block runs programs one after the other on one tile of points. Each value of a program is a vector of shared memory, with
`points_per_thread` neighbouring points for each thread, which no other thread reads. The latest value stays in registers, the
accumulator. All threads are at the same step, so its operands are decoded once for a warp. Up to MAX_POINTS points are one tile,
and a block has just enough warps for it; more points are tiles of MAX_POINTS. Launch contract:

    grid     x: `Layout.num_tiles`    y: ceil(num_programs / num_together)
    block    `Layout.block_size` threads, `Layout.shared_bytes` of dynamic shared memory
    params   one u64 an input: address of its values, 4 bytes each
             one u32 an input: bytes from a point to the next, 4, or 0 for an input that is the same at all points
             u64: address of the device code, with at least one word after the last program's
             u64: address of the numbers of the programs' first words, u32 each
             u32: num_programs; u32: num_together, programs that a block runs, a multiple of `Layout.num_buffered`
             u32: num_points, below 2**31
             u64: address of the results, which must not overlap the inputs
             u64: address of the targets, u64: of the weights, or 0 in a kernel without, u64: of `evo.native.ptx_vm.Targets.sums`;
             in a kernel that sums
             u32: num_steps; u32: record_every; in a kernel with a loop, whose inputs and strides are as `evo.kernel.rollout` says

Results of a kernel that stores are the outputs, `(num_programs, num_outputs, num_points)` of 4 bytes. A kernel that sums keeps
the outputs of `num_buffered` programs in registers and then in the slots, and eight threads, an octet, sum each: no output goes
to memory. Its results are the scratch of `regression_rows` (`evo.kernel.reduction`), one row for each output of each program, as
`regression_blocks` writes it: in the same order and so with the same bits. Targets are `(num_outputs, num_points)` float32.
With a loop, points are trajectories, states stay in registers, and results are the records.

Inputs are read from memory once for all programs of a block. So with sums, a program and a point cost 4 / num_together bytes for
each input, 4 / num_buffered for each target and 88 / 1,024 for the sums of each output.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from evo.kernel import reduction
from evo.kernel.interpreter_cases import Cases, Threads, cases_of, vector
from evo.kernel.interpreter_layout import MAX_POINTS, NUM_OCTETS, WARP, Layout, layout_of
from evo.kernel.pointwise import PTX_VERSION
from evo.kernel.register_cases import register_cases_of
from evo.kernel.rollout import COUNTS, Loop
from evo.language.program import Language

ENTRY = "interpret"
# Part of the cubin's cache key. Change it with the kernel's text.
TEMPLATE = "interpreter-6"

# The 64 KiB of compute capability 7.5 are one block's.
_SHARED_BYTES = {"sm_75": 64 << 10}
# For a multiprocessor, so that the assembler leaves registers for as many.
_MIN_WARPS, _MIN_WARPS_IN_REGISTERS = 32, 16


@dataclass(frozen=True)
class Interpreter:
    """A kernel: its PTX, and the facts that the encoder of device code needs."""

    ptx: str
    layout: Layout
    cases: Cases

    def instructions_at(self, lines: Sequence[int]) -> set[str]:
        """The instructions whose cases have these lines of the PTX, counted from 1."""
        text = self.ptx.splitlines()
        names = set()
        for line in lines:
            label = next((earlier for earlier in reversed(text[:line]) if earlier.startswith("$")), "")
            if match := re.fullmatch(r"\$case_(\d+):", label):
                numbers = self.cases.numbers
                index, _ = np.argwhere(numbers == numbers[numbers <= int(match[1])].max())[0]
                names.add(self.cases.instruction_set.instructions[index].name)
        return names


def interpreter(
    language: Language,
    target: str,
    sums: bool,
    instructions: Collection[str] | None = None,
    *,
    is_weighted: bool = False,
    num_points: int = MAX_POINTS,
    loop: Loop | None = None,
    in_registers: bool = False,
) -> Interpreter | None:
    """The kernel for programs of a language.

    Args:
        target: a GPU architecture such as `sm_90`.
        sums: whether outputs are summed against targets instead of stored. All must be f32.
        instructions: names of those that programs may use; None: the whole set.
        is_weighted: in sums, points have weights.
        num_points: the most that it will sum.
        loop: in which programs run; None: once at each point.
        in_registers: whether vectors are registers. A loop's are not.

    Returns:
        None if there are too many inputs and outputs, or too many cases for vectors in registers.
    """
    layout = layout_of(language, sums, num_points, in_registers)
    if layout is None or layout.shared_bytes > _SHARED_BYTES.get(target, layout.shared_bytes):
        return None
    known = language.instruction_set
    cases = register_cases_of(known, instructions, layout.num_vectors) if in_registers else cases_of(known, instructions)
    if cases is None:
        return None
    lines = [f".version {PTX_VERSION}", f".target {target}", ".address_size 64", *_kernel(layout, cases, sums, is_weighted, loop)]
    return Interpreter("\n".join(lines) + "\n", layout, cases)


def _kernel(layout: Layout, cases: Cases, sums: bool, is_weighted: bool, loop: Loop | None) -> list[str]:
    inputs, points = range(layout.num_inputs), range(layout.points_per_thread)
    threads = Threads(len(points), layout.vector_bytes.bit_length() - 1, are_together=True)
    params = [f".param .u64 input_{i}" for i in inputs] + [f".param .u32 stride_{i}" for i in inputs]
    params = loop.params() if loop else params
    params += [".param .u64 code", ".param .u64 starts", ".param .u32 num_programs", ".param .u32 num_together"]
    params += [".param .u32 num_points", ".param .u64 results"]
    params += [f".param .u64 {name}" for name in ("targets", "weights", "target_sums")] if sums else []
    params += COUNTS if loop else []
    min_warps = _MIN_WARPS_IN_REGISTERS if layout.in_registers else _MIN_WARPS
    lines = [
        ".extern .shared .align 128 .b8 vectors[];",
        f".visible .entry {ENTRY}(",
        ",\n".join(params),
        ")",
        f".maxntid {layout.block_size}, 1, 1",
        f".minnctapersm {min_warps * WARP // layout.block_size // (2 if loop else 1)}",  # states take registers
    ]
    numbers = {"tile": layout.points, "run": layout.run, "run_bytes": 4 * layout.run}
    lines += ["{", _REGISTERS.format(max(4, len(points))), _START.format(**numbers)]
    lines += [f".reg .b32 %v{i}_<{len(points)}>;" for i in range(layout.num_registers)]
    if loop:
        return [*lines, *_looped(layout, cases, threads, loop), *_NEXT]
    suffix, accumulator = vector("%a", points)
    for i in inputs:
        lines += [f"ld.param.u64 %address, [input_{i}];", "cvta.to.global.u64 %address, %address;"]
        lines += [f"ld.param.u32 %index, [stride_{i}];", "mad.wide.u32 %address, %point, %index, %address;"]
        lines += ["cvt.u64.u32 %offset, %index;"]
        for k in points:
            name, step = f"%v{i}_{k}" if layout.in_registers else f"%a{k}", layout.point(k + 1) - layout.point(k)
            lines += [f"mov.b32 {name}, 0;", f"setp.gt.u32 %is_point, %left, {layout.point(k)};"]
            lines += [f"@%is_point ld.global.nc.b32 {name}, [%address];"]
            lines += [f"mad.lo.u64 %address, %offset, {step}, %address;" if step > 1 else "add.u64 %address, %address, %offset;"]
        lines += [] if layout.in_registers else [f"st.shared{suffix} [%mine+{i * layout.vector_bytes}], {accumulator};"]
    held = range(layout.num_held * layout.num_outputs)
    lines += [f".reg .b32 %held{row}_<{len(points)}>;" for row in held]
    lines += [f"mov.b32 %held{row}_{k}, 0;" for row in held for k in points]
    lines += [_PROGRAM, *cases.text(threads), "$program_end:"]
    lines += _share(layout) if layout.in_registers else []
    lines += _sum(layout, is_weighted) if sums else _store(layout)
    return [*lines, *_NEXT]


_NEXT = ("add.u32 %program, %program, 1;", "bra.uni $program;", "$kernel_end:", "ret;", "}")


def _looped(layout: Layout, cases: Cases, threads: Threads, loop: Loop) -> list[str]:
    """A program's steps again and again. Each thread reads and writes its own part of the vectors, so none waits for another."""
    count = layout.points_per_thread
    lines = [*loop.registers(count), ".reg .u64 %first_step;", _PROGRAM, "mov.u64 %first_step, %at;", *loop.begin(count)]
    suffix = vector("", range(count))[0]

    def registers(names: list[str]) -> str:
        return names[0] if count == 1 else f"{{{', '.join(names)}}}"

    for i in range(layout.num_inputs):
        value = registers([loop.value(i, k) for k in range(count)])
        lines += [f"st.shared{suffix} [%mine+{i * layout.vector_bytes}], {value};"]
    lines += ["mov.u64 %at, %first_step;", *cases.text(threads), "$program_end:"]
    for o in range(layout.num_outputs):
        value = registers([f"%result{o}_{k}" for k in range(count)])
        lines += [f"ld.shared{suffix} {value}, [%mine+{(layout.first_output + o) * layout.vector_bytes}];"]
    return [*lines, *loop.end(count)]


_REGISTERS = """
.reg .pred %past_end, %is_point, %p0, %p1, %p2;
.reg .u32 %thread, %tile, %point, %left, %num_points, %program, %end, %num_programs, %num_together, %index, %mine, %base;
.reg .u32 %group, %row;
.reg .b32 %word, %extra, %case, %target, %from, %a<{0}>, %x<{0}>, %y<{0}>, %z<{0}>;
.reg .u64 %code, %starts, %at, %address, %offset, %results;
"""

# mine: address of the thread's part of the first vector; point: its first; left: points from there on.
_START = """
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
mad.lo.u32 %mine, %thread, {run_bytes}, %base;
mul.lo.u32 %point, %tile, {tile};
mad.lo.u32 %point, %thread, {run}, %point;
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
mul.wide.u32 %offset, %index, 4;
add.u64 %at, %code, %offset;"""


def _share(layout: Layout) -> list[str]:
    """Moves a program's outputs from registers to shared memory, to the rows of its place in its group."""
    lines = [f"and.b32 %group, %program, {layout.num_buffered - 1};"]
    for output in range(layout.num_outputs):
        lines += [f"mad.lo.u32 %row, %group, {layout.num_outputs}, {output};", f"and.b32 %index, %row, {_AT_ONCE - 1};"]
        lines += [f"mul.lo.u32 %index, %index, {4 * reduction.LANES if layout.num_buffered > 1 else 0};"]
        lines += ["xor.b32 %from, %mine, %index;", f"mad.lo.u32 %from, %row, {layout.vector_bytes}, %from;"]
        for k in range(0, layout.points_per_thread, layout.run):
            suffix, names = vector(f"%v{layout.first_output + output}_", range(k, k + layout.run))
            lines += [f"st.shared{suffix} [%from+{4 * layout.point(k)}], {names};"]
    return lines


def _store(layout: Layout) -> list[str]:
    """Neighbouring threads store neighbouring points. A warp's points are its own, so it waits for nobody else."""
    points = range(layout.points_per_thread)
    lines = ["bar.warp.sync 0xffffffff;"]
    # The warp's first point in the tile, and the thread's point of the first row of 32.
    lines += ["and.b32 %index, %thread, 0x1f;", "and.b32 %target, %thread, 0xffffffe0;"]
    lines += [f"mad.lo.u32 %target, %target, {layout.run}, %index;", f"mad.lo.u32 %index, %tile, {layout.points}, %target;"]
    lines += ["mad.lo.u32 %from, %target, 4, %base;", "cvt.u64.u32 %offset, %program;", "mul.wide.u32 %address, %num_points, 4;"]
    lines += [f"mul.lo.u64 %offset, %offset, {layout.num_outputs};", "mad.lo.u64 %address, %offset, %address, %results;"]
    lines += ["mul.wide.u32 %offset, %index, 4;", "add.u64 %address, %address, %offset;", "mul.wide.u32 %offset, %num_points, 4;"]
    for output in range(layout.num_outputs):
        first = (layout.first_shared + output) * layout.vector_bytes
        rows = [(k, k % layout.run * WARP + layout.point(k - k % layout.run)) for k in points]
        lines += [f"ld.shared.b32 %a{k}, [%from+{first + 4 * point}];" for k, point in rows]
        for k, point in rows:
            lines += [f"add.u32 %case, %index, {point};", "setp.lt.u32 %is_point, %case, %num_points;"]
            lines += [f"@%is_point st.global.b32 [%address+{4 * point}], %a{k};"]
        lines += ["add.u64 %address, %address, %offset;"] if output + 1 < layout.num_outputs else []
    return [*lines, "bar.warp.sync 0xffffffff;"]


_AT_ONCE = 2  # a lane's points of a trip; twice as many are in flight, and more of them leave too few registers
_TRIP_BYTES = 4 * reduction.LANES * _AT_ONCE
_GOLDEN = 0x9E3779B1  # 2**32 over the golden ratio: products with it scatter (Knuth, The Art of Computer Programming 3, 6.4)

# program: the last one that is summed; place: the thread's, counted from the warp that sums; row: a row of outputs; number: of
# the thread's next point in the tile; done: bytes of a row that are summed. In odd rows of several programs a lane's points lie
# in pairs the other way round, so that no more than two octets meet in the banks of shared memory.
_SUM_REGISTERS = f"""
.reg .pred %is_waiting, %is_octet, %again;
.reg .u32 %place, %lane, %octet, %output, %number, %done, %num_bytes, %y_address<{_AT_ONCE}>;
.reg .u64 %t_address, %w_address, %plane_bytes, %back;
.reg .f32 %y_<{2 * _AT_ONCE}>, %t_<{2 * _AT_ONCE}>, %w_<{2 * _AT_ONCE}>;"""


def _next_trip(trips: int) -> list[str]:
    """Goes on to the points after these trips; %again: whether there are more."""
    num_bytes = trips * _TRIP_BYTES
    lines = [f"add.u32 %{name}, %{name}, {num_bytes};" for name in (*(f"y_address{i}" for i in range(_AT_ONCE)), "done")]
    lines += [f"add.u64 %{name}_address, %{name}_address, {num_bytes};" for name in "tw"]
    return [*lines, "setp.lt.u32 %again, %done, %num_bytes;"]


def _sum(layout: Layout, is_weighted: bool) -> list[str]:
    """Sums the outputs of the programs since the last sums when there are enough, or after the block's last program."""
    held, num_outputs, num_rows = layout.num_buffered, layout.num_outputs, layout.num_buffered * layout.num_outputs
    points, vector_bytes = range(layout.points_per_thread), layout.vector_bytes
    lines = [reduction.SUM_REGISTERS, _SUM_REGISTERS]
    if layout.num_held:
        older = range(num_rows - num_outputs)
        lines += [f"mov.b32 %held{row}_{k}, %held{row + num_outputs}_{k};" for row in older for k in points]
        for output in range(num_outputs):
            suffix, names = vector(f"%held{len(older) + output}_", points)
            lines += [f"ld.shared{suffix} {names}, [%mine+{(layout.first_output + output) * vector_bytes}];"]
        lines += [f"and.b32 %group, %program, {held - 1};"]
    if held > 1:
        lines += [f"setp.ne.u32 %is_waiting, %group, {held - 1};"]
        lines += ["add.u32 %index, %program, 1;", "setp.ne.and.u32 %is_waiting, %index, %end, %is_waiting;"]
        lines += ["@%is_waiting bra.uni $summed;", "bar.warp.sync 0xffffffff;"]
    if layout.num_held:
        for row in range(num_rows):
            suffix, names = vector(f"%held{row}_", points)
            lines += [f"xor.b32 %from, %mine, {row % _AT_ONCE * 4 * reduction.LANES};"]
            lines += [f"st.shared{suffix} [%from+{(layout.num_inputs + row) * vector_bytes}], {names};"]
    first_row = (layout.num_inputs if layout.num_held else layout.first_shared) * vector_bytes
    # A warp's place decides which unit for FP64 it has. So blocks, and the times that one sums, take turns at warps.
    lines += ["mov.u32 %place, %ctaid.y;", "mad.lo.u32 %place, %place, 3, %tile;"]
    lines += [f"mul.lo.u32 %place, %place, {_GOLDEN:#x};", "shr.u32 %place, %place, 29;"]
    lines += [f"shr.u32 %index, %program, {held.bit_length() - 1};", "add.u32 %place, %place, %index;"]
    lines += [f"mad.lo.u32 %place, %place, {WARP}, %thread;", f"and.b32 %place, %place, {layout.block_size - 1};"]
    lines += ["bar.sync 0;", f"setp.ge.u32 %past_end, %place, {-(-num_rows // NUM_OCTETS) * WARP};"]
    lines += ["@%past_end bra $rows_end;", f"and.b32 %lane, %thread, {reduction.LANES - 1};"]
    lines += [f"shr.u32 %octet, %place, {reduction.LANES.bit_length() - 1};", f"min.u32 %row, %octet, {num_rows - 1};"]
    lines += [f"setp.lt.u32 %is_octet, %octet, {num_rows};", "mov.u32 %output, %row;"]
    if held > 1:  # the rows of the group's programs are the last ones if registers held them, else the first ones
        lines += [f"sub.u32 %index, {held - 1}, %group;" if layout.num_held else "add.u32 %index, %group, 1;"]
        lines += [f"mul.lo.u32 %index, %index, {num_outputs};", f"and.b32 %output, %row, {num_outputs - 1};"]
        lines += [f"setp.{'ge' if layout.num_held else 'lt'}.and.u32 %is_octet, %octet, %index, %is_octet;"]
    lines += [f"mad.lo.u32 %from, %row, {vector_bytes}, %base;"]
    lines += [f"and.b32 %number, %row, {_AT_ONCE - 1};" if held > 1 else "mov.u32 %number, 0;"]
    for i in range(_AT_ONCE):
        lines += [f"xor.b32 %index, %number, {i};"]
        lines += [f"mad.lo.u32 %y_address{i}, %index, {4 * reduction.LANES}, %from;"]
    lines += [f"ld.shared.f32 %y_0, [%y_address0+{first_row}];"]
    lines += [f"mad.lo.u32 %y_address{i}, %lane, 4, %y_address{i};" for i in range(_AT_ONCE)]
    lines += [f"mul.lo.u32 %index, %tile, {layout.points};", "sub.u32 %in_block, %num_points, %index;"]
    lines += [f"min.u32 %in_block, %in_block, {layout.points};", "shl.b32 %num_bytes, %in_block, 2;"]
    lines += ["ld.param.u64 %t_address, [targets];", "cvta.to.global.u64 %t_address, %t_address;"]
    lines += ["mul.wide.u32 %plane_bytes, %num_points, 4;", "cvt.u64.u32 %offset, %output;"]
    lines += ["mad.lo.u64 %t_address, %offset, %plane_bytes, %t_address;", "mul.wide.u32 %offset, %index, 4;"]
    lines += ["add.u64 %t_address, %t_address, %offset;", "ld.global.nc.f32 %t_0, [%t_address];"]
    lines += ["ld.param.u64 %w_address, [weights];", "cvta.to.global.u64 %w_address, %w_address;"]
    lines += ["add.u64 %w_address, %w_address, %offset;", "mul.wide.u32 %offset, %lane, 4;"]
    lines += [f"add.u64 %{name}_address, %{name}_address, %offset;" for name in "tw"]
    lines += [reduction.REFERENCES, reduction.NO_SUMS, "mov.u32 %done, 0;"]
    names = "ytw" if is_weighted else "yt"
    if layout.points == MAX_POINTS:
        # While the points of one trip are added, those of the next one are loaded.
        trips = [range(_AT_ONCE), range(_AT_ONCE, 2 * _AT_ONCE)]
        loads = [[_load(name, i, first_row) for name in names for i in trip] for trip in trips]
        sums = [[reduction.add_point(i, is_weighted, has_gaps=False) for i in trip] for trip in trips]
        lines += [f"setp.ne.u32 %again, %in_block, {MAX_POINTS};", "@%again bra.uni $with_gaps;"]
        lines += [*loads[0], "$all_points:", *loads[1], *sums[0], *_next_trip(2)]
        lines += [*(f"@%again {load}" for load in loads[0]), *sums[1]]
        lines += ["mov.b64 {%low, %high}, %sum_squared_error;", "setp.lt.u32 %is_finite, %high, 0x7ff00000;"]
        lines += ["vote.sync.all.pred %is_finite, %is_finite, 0xffffffff;"]
        lines += ["setp.lt.and.u32 %again, %done, %num_bytes, %is_finite;", "@%again bra.uni $all_points;"]
        lines += _KNOWN.splitlines()[1:]
        lines += ["@%is_finite bra.uni $joined;", "$with_gaps:", reduction.NO_SUMS, "cvt.u64.u32 %back, %done;"]
        lines += [f"sub.u64 %{name}_address, %{name}_address, %back;" for name in "tw"]
        lines += [*(f"sub.u32 %y_address{i}, %y_address{i}, %done;" for i in range(_AT_ONCE)), "mov.u32 %done, 0;"]
    lines += ["mov.u32 %number, %lane;", "$points:"]
    for i in range(_AT_ONCE):
        lines += [f"add.u32 %index, %number, {i * reduction.LANES};", "setp.lt.u32 %is_point, %index, %in_block;"]
        lines += [f"mov.f32 %{name}_{i}, {'0f7FFFFFFF' if name == 'y' else '0f00000000'};" for name in names]
        lines += [f"@%is_point {_load(name, i, first_row)}" for name in names]
    lines += [reduction.add_point(i, is_weighted) for i in range(_AT_ONCE)]
    lines += _next_trip(1)
    lines += [f"add.u32 %number, %number, {_TRIP_BYTES // 4};", "@%again bra.uni $points;", "$joined:"]
    lines += [reduction.join_lanes(is_weighted), "mov.u32 %index, %nctaid.x;", "mul.wide.u32 %plane_bytes, %index, 8;"]
    if layout.in_registers:
        lines += ["sub.u32 %index, %program, %group;", f"mad.lo.u32 %row, %index, {num_outputs}, %row;"]
    else:
        lines += [f"mad.lo.u32 %row, %program, {num_outputs}, %row;", f"sub.u32 %row, %row, {num_rows - num_outputs};"]
    lines += [f"mad.lo.u32 %row, %row, {reduction.NUM_FIELDS}, %lane;", "cvt.u64.u32 %offset, %row;"]
    lines += ["mad.lo.u64 %address, %offset, %plane_bytes, %results;", "mul.wide.u32 %offset, %tile, 8;"]
    lines += ["add.u64 %address, %address, %offset;", reduction.store_fields("address", "plane_bytes")]
    lines += ["$rows_end:", "bar.sync 0;"]
    if layout.in_registers:  # so that no register holds these values while the sums need it
        vectors = [f"v{v}_" for v in range(layout.num_inputs, layout.num_vectors)]
        lines += [f"mov.b32 %{name}{k}, 0;" for name in (*vectors, "a", "x") for k in points]
    return [*lines, "$summed:"]


# Of a block whose points all count.
_KNOWN = f"""
mov.u32 %num_finite, {reduction.POINTS_PER_BLOCK // reduction.LANES};
ld.param.u64 %address, [target_sums];
cvta.to.global.u64 %address, %address;
mov.u32 %index, %nctaid.x;
mad.lo.u32 %index, %output, %index, %tile;
mad.lo.u32 %index, %index, {len(reduction.KNOWN_SUMS) * reduction.LANES}, %lane;
mad.wide.u32 %address, %index, 8, %address;
""" + "\n".join(f"ld.global.nc.f64 %{name}, [%address+{8 * reduction.LANES * i}];" for i, name in enumerate(reduction.KNOWN_SUMS))


def _load(name: str, i: int, first_row: int) -> str:
    if name == "y":
        return f"ld.shared.f32 %y_{i}, [%y_address{i % _AT_ONCE}+{first_row + i // _AT_ONCE * _TRIP_BYTES}];"
    return f"ld.global.nc.f32 %{name}_{i}, [%{name}_address+{4 * reduction.LANES * i}];"
