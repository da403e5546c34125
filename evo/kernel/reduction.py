"""The reduction `regression` on the GPU: sums over outputs, as the pointwise kernel stores them, and targets.

Owns the two kernels, which have no sites: a cubin of `regression_ptx` serves every program. Their results equal those of
`VirtualMachine.reduce` (csrc/ptx_vm.h) bit by bit, since they add in the same order: point j goes to lane j % 8 of block
j / 1024, the lanes of a block are added pairwise, and so are the blocks. Missing values count as zero, which changes no sum, as
no sum is ever -0.

A row is one output of one program. Launch contract, with all addresses u64:

    regression_blocks   params: outputs, targets, scratch; u32: num_rows, num_outputs, num_points
    regression_rows     params: scratch, sums; u32: num_rows, num_points
    grid and block      of `launches`; regression_rows after regression_blocks

    outputs   `(num_rows, num_points)` float32, where row i is output i % num_outputs of its program
    targets   `(num_outputs, num_points)` float32
    scratch   `scratch_bytes` bytes, aligned to 8; opaque
    sums      `(num_rows, NUM_FIELDS)` float64, in the order of FIELDS

In regression_blocks eight threads of a warp, an octet, sum one block, so that each load takes whole sectors of 32 bytes.
In regression_rows a warp adds up one field of one row.
"""

from __future__ import annotations

from evo.kernel.pointwise import PTX_VERSION

FIELDS = ("num_nonfinite", "sum_y", "sum_t", "sum_yy", "sum_tt", "sum_yt", "sum_squared_error", "max_abs_error")
NUM_FIELDS = len(FIELDS)
BLOCK_SIZE = 256

LANES = 8  # as PTX_VM__SUMLANES
POINTS_PER_BLOCK = 1024  # as PTX_VM__SUM_BLOCK
_WARP = 32
_POINTS_AT_ONCE = 8  # a thread's loads in flight, of outputs and targets each


def scratch_bytes(num_rows: int, num_points: int) -> int:
    """Device memory that the two kernels need between them."""
    return num_rows * NUM_FIELDS * _num_blocks(num_points) * 8


def result_bytes(num_rows: int) -> int:
    """Bytes of the sums."""
    return num_rows * NUM_FIELDS * 8


def launches(num_rows: int, num_points: int) -> tuple[tuple[str, tuple[int, int], int], ...]:
    """Name, grid and threads of a block of each kernel, in the order of their launches.

    Raises:
        ValueError: no row or no point, or too many for one launch. A launch has fewer than 2**32 threads, eight for each 1,024
            points of a row.
    """
    num_octets, num_warps = num_rows * _num_blocks(num_points), num_rows * NUM_FIELDS
    threads = {"regression_blocks": num_octets * LANES, "regression_rows": num_warps * _WARP}
    if not (num_rows > 0 and 0 < num_points < 2**32 and max(threads.values()) < 2**32 - BLOCK_SIZE):
        raise ValueError(f"{num_rows} rows of {num_points} points do not fit into one launch")
    return tuple((name, (-(-count // BLOCK_SIZE), 1), BLOCK_SIZE) for name, count in threads.items())


def regression_ptx(target: str) -> str:
    """The module with both kernels.

    Args:
        target: a GPU architecture such as `sm_90`.
    """
    return f".version {PTX_VERSION}\n.target {target}\n.address_size 64\n{_blocks_kernel()}\n{_rows_kernel()}\n"


def _num_blocks(num_points: int) -> int:
    return -(-num_points // POINTS_PER_BLOCK)


# The sums of a lane, which other kernels use as well. They also need the u32 registers `lane`, 0 to 7, and `index`.
SUM_REGISTERS = """
.reg .pred %is_finite, %is_field;
.reg .u32 %nonfinite, %low, %high;
.reg .f64 %y, %t, %error, %product, %other, %value, %max_error, %sum_y, %sum_t, %sum_yy, %sum_tt, %sum_yt, %sum_ee;"""

NO_SUMS = """
mov.u32 %nonfinite, 0;
mov.f64 %max_error, 0d0000000000000000;
mov.f64 %sum_y, 0d0000000000000000;
mov.f64 %sum_t, 0d0000000000000000;
mov.f64 %sum_yy, 0d0000000000000000;
mov.f64 %sum_tt, 0d0000000000000000;
mov.f64 %sum_yt, 0d0000000000000000;
mov.f64 %sum_ee, 0d0000000000000000;"""

# thread: number of this thread in its grid; lane, octet, row, block: what it works on; left: points of the row from this lane's
# on. Shuffles need whole warps, so threads past the last octet repeat the last one's work and do not store it.
_BLOCKS_START = f"""
.visible .entry regression_blocks(
    .param .u64 outputs, .param .u64 targets, .param .u64 scratch,
    .param .u32 num_rows, .param .u32 num_outputs, .param .u32 num_points
)
{{
{SUM_REGISTERS}
.reg .pred %is_point, %is_octet, %again;
.reg .u32 %num_rows, %num_outputs, %num_points, %num_blocks, %thread, %size, %lane, %octet, %last_octet;
.reg .u32 %row, %block, %output, %point, %left, %trip, %index;
.reg .u64 %outputs, %targets, %scratch, %y_address, %t_address, %row_bytes, %offset;
.reg .f32 %y_<{_POINTS_AT_ONCE}>, %t_<{_POINTS_AT_ONCE}>;
ld.param.u64 %outputs, [outputs];
ld.param.u64 %targets, [targets];
ld.param.u64 %scratch, [scratch];
ld.param.u32 %num_rows, [num_rows];
ld.param.u32 %num_outputs, [num_outputs];
ld.param.u32 %num_points, [num_points];
cvta.to.global.u64 %outputs, %outputs;
cvta.to.global.u64 %targets, %targets;
cvta.to.global.u64 %scratch, %scratch;
mov.u32 %thread, %ctaid.x;
mov.u32 %size, %ntid.x;
mov.u32 %index, %tid.x;
mad.lo.u32 %thread, %thread, %size, %index;
sub.u32 %num_blocks, %num_points, 1;
div.u32 %num_blocks, %num_blocks, {POINTS_PER_BLOCK};
add.u32 %num_blocks, %num_blocks, 1;
rem.u32 %lane, %thread, {LANES};
div.u32 %octet, %thread, {LANES};
mul.lo.u32 %last_octet, %num_rows, %num_blocks;
sub.u32 %last_octet, %last_octet, 1;
setp.le.u32 %is_octet, %octet, %last_octet;
min.u32 %octet, %octet, %last_octet;
div.u32 %row, %octet, %num_blocks;
rem.u32 %block, %octet, %num_blocks;
rem.u32 %output, %row, %num_outputs;
mad.lo.u32 %point, %block, {POINTS_PER_BLOCK}, %lane;
setp.lt.u32 %is_point, %point, %num_points;
sub.u32 %left, %num_points, %point;
selp.u32 %left, %left, 0, %is_point;
mul.wide.u32 %row_bytes, %num_points, 4;
cvt.u64.u32 %offset, %row;
mad.lo.u64 %y_address, %offset, %row_bytes, %outputs;
cvt.u64.u32 %offset, %output;
mad.lo.u64 %t_address, %offset, %row_bytes, %targets;
mul.wide.u32 %offset, %point, 4;
add.u64 %y_address, %y_address, %offset;
add.u64 %t_address, %t_address, %offset;
{NO_SUMS}
mov.u32 %trip, {POINTS_PER_BLOCK // LANES // _POINTS_AT_ONCE};
$points:"""

# Subnormal outputs and targets count as zero. In double the difference of two floats is finite only if both are. The product of
# two floats is exact in double, so fma rounds as the CPU does, whether that fuses or not. The product of two errors is not exact.
_ADD_POINT = """
cvt.ftz.f64.f32 %y, %y_{i};
cvt.ftz.f64.f32 %t, %t_{i};
sub.rn.f64 %error, %y, %t;
abs.f64 %other, %error;
setp.le.f64 %is_finite, %other, 0d7FEFFFFFFFFFFFFF;
selp.f64 %y, %y, 0d0000000000000000, %is_finite;
selp.f64 %t, %t, 0d0000000000000000, %is_finite;
selp.f64 %error, %error, 0d0000000000000000, %is_finite;
@!%is_finite add.u32 %nonfinite, %nonfinite, 1;
add.rn.f64 %sum_y, %sum_y, %y;
add.rn.f64 %sum_t, %sum_t, %t;
fma.rn.f64 %sum_yy, %y, %y, %sum_yy;
fma.rn.f64 %sum_tt, %t, %t, %sum_tt;
fma.rn.f64 %sum_yt, %y, %t, %sum_yt;
mul.rn.f64 %product, %error, %error;
add.rn.f64 %sum_ee, %sum_ee, %product;
abs.f64 %other, %error;
max.f64 %max_error, %max_error, %other;"""

_BLOCKS_NEXT = f"""
max.u32 %left, %left, {_POINTS_AT_ONCE * LANES};
sub.u32 %left, %left, {_POINTS_AT_ONCE * LANES};
add.u64 %y_address, %y_address, {_POINTS_AT_ONCE * LANES * 4};
add.u64 %t_address, %t_address, {_POINTS_AT_ONCE * LANES * 4};
sub.u32 %trip, %trip, 1;
setp.ne.u32 %again, %trip, 0;
@%again bra $points;"""

# Each lane of an octet stores one field: scratch is `(num_rows, NUM_FIELDS, num_blocks)` float64.
_BLOCKS_END = f"""
mad.lo.u32 %row, %row, {NUM_FIELDS}, %lane;
mul.wide.u32 %row_bytes, %num_blocks, 8;
cvt.u64.u32 %offset, %row;
mad.lo.u64 %scratch, %offset, %row_bytes, %scratch;
mul.wide.u32 %offset, %block, 8;
add.u64 %scratch, %scratch, %offset;
@%is_octet st.global.f64 [%scratch], %value;
ret;
}}"""

# A warp halves its field's values five times in registers and writes the sums of 32 over the first values, which all its threads
# have read by then. It repeats this until one value is left.
_ROWS_START = f"""
.visible .entry regression_rows(
    .param .u64 scratch, .param .u64 sums,
    .param .u32 num_rows, .param .u32 num_points
)
{{
.reg .pred %past_end, %is_max, %is_first, %is_there, %is_last, %again;
.reg .u32 %num_fields, %num_points, %num_values, %num_groups, %thread, %size, %lane, %warp, %field, %group, %index, %low, %high;
.reg .u64 %scratch, %sums, %address, %offset, %target;
.reg .f64 %value, %other, %largest;
ld.param.u64 %scratch, [scratch];
ld.param.u64 %sums, [sums];
ld.param.u32 %num_fields, [num_rows];
ld.param.u32 %num_points, [num_points];
cvta.to.global.u64 %scratch, %scratch;
cvta.to.global.u64 %sums, %sums;
mov.u32 %thread, %ctaid.x;
mov.u32 %size, %ntid.x;
mov.u32 %index, %tid.x;
mad.lo.u32 %thread, %thread, %size, %index;
rem.u32 %lane, %thread, {_WARP};
div.u32 %warp, %thread, {_WARP};
mul.lo.u32 %num_fields, %num_fields, {NUM_FIELDS};
setp.ge.u32 %past_end, %warp, %num_fields;
@%past_end ret;
rem.u32 %field, %warp, {NUM_FIELDS};
setp.eq.u32 %is_max, %field, {FIELDS.index("max_abs_error")};
setp.eq.u32 %is_first, %lane, 0;
sub.u32 %num_values, %num_points, 1;
div.u32 %num_values, %num_values, {POINTS_PER_BLOCK};
add.u32 %num_values, %num_values, 1;
mul.wide.u32 %offset, %num_values, 8;
cvt.u64.u32 %address, %warp;
mad.lo.u64 %scratch, %address, %offset, %scratch;
mul.wide.u32 %offset, %warp, 8;
add.u64 %sums, %sums, %offset;
$level:
add.u32 %num_groups, %num_values, {_WARP - 1};
div.u32 %num_groups, %num_groups, {_WARP};
setp.eq.u32 %is_last, %num_groups, 1;
mov.u32 %group, 0;
$groups:
mad.lo.u32 %index, %group, {_WARP}, %lane;
setp.lt.u32 %is_there, %index, %num_values;
mul.wide.u32 %offset, %index, 8;
add.u64 %address, %scratch, %offset;
mov.f64 %value, 0d0000000000000000;
@%is_there ld.global.f64 %value, [%address];"""

_ROWS_END = """
mul.wide.u32 %offset, %group, 8;
add.u64 %target, %scratch, %offset;
selp.u64 %target, %sums, %target, %is_last;
@%is_first st.global.f64 [%target], %value;
add.u32 %group, %group, 1;
setp.lt.u32 %again, %group, %num_groups;
@%again bra $groups;
bar.warp.sync 0xffffffff;
mov.u32 %num_values, %num_groups;
@!%is_last bra $level;
ret;
}"""


def _blocks_kernel() -> str:
    points = range(_POINTS_AT_ONCE)
    parts = [_BLOCKS_START]
    for i in points:
        parts += [f"\nsetp.gt.u32 %is_point, %left, {i * LANES};"]
        for name in ("y", "t"):
            parts += [f"\nmov.f32 %{name}_{i}, 0f00000000;"]
            parts += [f"\n@%is_point ld.global.nc.f32 %{name}_{i}, [%{name}_address+{i * LANES * 4}];"]
    parts += [add_point(i) for i in points]
    return "".join([*parts, _BLOCKS_NEXT, join_lanes(), _BLOCKS_END])


def add_point(i: int) -> str:
    """Adds the point with output `y_i` and target `t_i`, f32, to the sums."""
    return _ADD_POINT.format(i=i)


def join_lanes() -> str:
    """Adds up the sums of an octet's lanes, pairwise. The lane's field is then in `value`."""
    parts = []
    for distance in (1, 2, 4):
        for name in ("sum_y", "sum_t", "sum_yy", "sum_tt", "sum_yt", "sum_ee"):
            parts += [_from_lane(name, distance), f"\nadd.rn.f64 %{name}, %{name}, %other;"]
        parts += [_from_lane("max_error", distance), "\nmax.f64 %max_error, %max_error, %other;"]
        parts += [f"\nshfl.sync.bfly.b32 %index, %nonfinite, {distance}, 0x1f, 0xffffffff;"]
        parts += ["\nadd.u32 %nonfinite, %nonfinite, %index;"]
    parts += ["\ncvt.rn.f64.u32 %value, %nonfinite;"]
    for field, name in enumerate(("sum_y", "sum_t", "sum_yy", "sum_tt", "sum_yt", "sum_ee", "max_error"), 1):
        parts += [f"\nsetp.eq.u32 %is_field, %lane, {field};\nselp.f64 %value, %{name}, %value, %is_field;"]
    return "".join(parts)


def _rows_kernel() -> str:
    parts = [_ROWS_START]
    for distance in (1, 2, 4, 8, 16):
        parts += [_from_lane("value", distance), "\nmax.f64 %largest, %value, %other;\nadd.rn.f64 %value, %value, %other;"]
        parts += ["\nselp.f64 %value, %largest, %value, %is_max;"]
    return "".join([*parts, _ROWS_END])


def _from_lane(name: str, distance: int) -> str:
    """Loads `other` from the lane whose number differs in one bit, so that both lanes of a pair get the same sum."""
    lines = [f"mov.b64 {{%low, %high}}, %{name};"]
    lines += [f"shfl.sync.bfly.b32 %{half}, %{half}, {distance}, 0x1f, 0xffffffff;" for half in ("low", "high")]
    return "\n" + "\n".join([*lines, "mov.b64 %other, {%low, %high};"])
