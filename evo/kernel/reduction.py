"""The reduction `regression` on the GPU: sums over outputs, as the pointwise kernel stores them, and targets.

Owns the two kernels, which have no sites: a cubin of `regression_ptx` serves every program. Their results equal those of
`VirtualMachine.reduce` (csrc/ptx_vm.h) bit by bit, since they add in the same order: point j goes to lane j % 8 of block
j / 1024, the lanes of a block are added pairwise, and so are the blocks. A block's sums are about the values at its first point,
and change to those at the row's first point before they are added. Missing values count as zero, which changes no sum, as no sum
is ever -0. Slightly long: the PTX of both stands here.

A row is one output of one program. Launch contract, with all addresses u64:

    regression_blocks   params: outputs, targets, weights, scratch; u32: num_rows, num_outputs, num_points
    regression_rows     params: scratch, sums; u32: num_rows, num_points
    grid and block      of `launches`; regression_rows after regression_blocks

    outputs   `(num_rows, num_points)` float32, where row i is output i % num_outputs of its program
    targets   `(num_outputs, num_points)` float32
    weights   `(num_points,)` float32, or 0 in a module without weights
    scratch   `scratch_bytes` bytes, aligned to 8; opaque
    sums      `(num_rows, NUM_FIELDS)` float64, in the order of FIELDS

In regression_blocks eight threads of a warp, an octet, sum one block, so that each load takes whole sectors of 32 bytes.
In regression_rows a warp adds up one row.
"""

from evo.kernel.pointwise import PTX_VERSION

FIELDS = (
    "num_nonfinite",
    "weight",
    "reference_y",
    "reference_t",
    "sum_y",
    "sum_t",
    "sum_yy",
    "sum_tt",
    "sum_yt",
    "sum_squared_error",
    "max_abs_error",
)
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
    threads = {"regression_blocks": num_rows * _num_blocks(num_points) * LANES, "regression_rows": num_rows * _WARP}
    if not (num_rows > 0 and 0 < num_points < 2**32 and max(threads.values()) < 2**32 - BLOCK_SIZE):
        raise ValueError(f"{num_rows} rows of {num_points} points do not fit into one launch")
    return tuple((name, (-(-count // BLOCK_SIZE), 1), BLOCK_SIZE) for name, count in threads.items())


def regression_ptx(target: str, is_weighted: bool = False) -> str:
    """The module with both kernels. target: a GPU architecture such as `sm_90`. is_weighted: points have weights."""
    return f".version {PTX_VERSION}\n.target {target}\n.address_size 64\n{_blocks_kernel(is_weighted)}\n{_rows_kernel()}\n"


def store_fields(address: str, plane_bytes: str) -> str:
    """Stores the results of `join_lanes`, a field a plane, from the lane's own on. Changes `address`."""
    return f"""
@%is_octet st.global.f64 [%{address}], %value;
setp.lt.and.u32 %is_field, %lane, {NUM_FIELDS - LANES}, %is_octet;
mad.lo.u64 %{address}, %{plane_bytes}, {LANES}, %{address};
@%is_field st.global.f64 [%{address}], %rest;"""


def _num_blocks(num_points: int) -> int:
    return -(-num_points // POINTS_PER_BLOCK)


# The sums of a lane, which other kernels use as well. They also need the u32 registers `lane`, 0 to 7, `index`, and `in_block`,
# the points of the block, and for the references y_0 and t_0 with the values at its first point.
_SUMS = ("weight", "sum_y", "sum_t", "sum_yy", "sum_tt", "sum_yt", "sum_squared_error")
SUM_REGISTERS = f"""
.reg .pred %is_finite, %is_field;
.reg .u32 %num_finite, %in_block, %low, %high;
.reg .f64 %y, %t, %error, %w, %weighted_y, %weighted_t, %weighted_error, %product, %other, %value, %rest;
.reg .f64 {", ".join(f"%{name}" for name in FIELDS)};"""

_LARGEST = "0d7FEFFFFFFFFFFFFF"

NO_SUMS = "".join(f"\nmov.f64 %{name}, 0d0000000000000000;" for name in (*_SUMS, "max_abs_error")) + "\nmov.u32 %num_finite, 0;"

# Values that are not finite are as in csrc/ptx_vm.h.
REFERENCES = f"""
cvt.ftz.f64.f32 %reference_y, %y_0;
cvt.ftz.f64.f32 %reference_t, %t_0;
abs.f64 %other, %reference_t;
setp.le.f64 %is_finite, %other, {_LARGEST};
selp.f64 %reference_t, %reference_t, 0d0000000000000000, %is_finite;
abs.f64 %other, %reference_y;
setp.le.and.f64 %is_finite, %other, {_LARGEST}, %is_finite;
selp.f64 %reference_y, %reference_y, %reference_t, %is_finite;"""

# thread: number of this thread in its grid; lane, octet, row, block: what it works on; left: points of the row from this lane's
# on. Shuffles need whole warps, so threads past the last octet repeat the last one's work and do not store it.
_BLOCKS_START = f"""
.visible .entry regression_blocks(
    .param .u64 outputs, .param .u64 targets, .param .u64 weights, .param .u64 scratch,
    .param .u32 num_rows, .param .u32 num_outputs, .param .u32 num_points
)
{{
{SUM_REGISTERS}
.reg .pred %is_point, %is_octet, %again;
.reg .u32 %num_rows, %num_outputs, %num_points, %num_blocks, %thread, %size, %lane, %octet, %last_octet;
.reg .u32 %row, %block, %output, %point, %left, %trip, %index;
.reg .u64 %outputs, %targets, %scratch, %y_address, %t_address, %w_address, %row_bytes, %offset, %first, %address;
.reg .f32 %y_<{_POINTS_AT_ONCE}>, %t_<{_POINTS_AT_ONCE}>, %w_<{_POINTS_AT_ONCE}>;
ld.param.u64 %outputs, [outputs];
ld.param.u64 %targets, [targets];
ld.param.u64 %w_address, [weights];
ld.param.u64 %scratch, [scratch];
ld.param.u32 %num_rows, [num_rows];
ld.param.u32 %num_outputs, [num_outputs];
ld.param.u32 %num_points, [num_points];
cvta.to.global.u64 %outputs, %outputs;
cvta.to.global.u64 %targets, %targets;
cvta.to.global.u64 %w_address, %w_address;
cvta.to.global.u64 %scratch, %scratch;
mov.u32 %thread, %ctaid.x;
mov.u32 %size, %ntid.x;
mov.u32 %index, %tid.x;
mad.lo.u32 %thread, %thread, %size, %index;
sub.u32 %num_blocks, %num_points, 1;
shr.u32 %num_blocks, %num_blocks, {POINTS_PER_BLOCK.bit_length() - 1};
add.u32 %num_blocks, %num_blocks, 1;
and.b32 %lane, %thread, {LANES - 1};
shr.u32 %octet, %thread, {LANES.bit_length() - 1};
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
mul.lo.u32 %index, %block, {POINTS_PER_BLOCK};
sub.u32 %in_block, %num_points, %index;
min.u32 %in_block, %in_block, {POINTS_PER_BLOCK};
mul.wide.u32 %first, %index, 4;
add.u64 %address, %y_address, %first;
ld.global.nc.f32 %y_0, [%address];
add.u64 %address, %t_address, %first;
ld.global.nc.f32 %t_0, [%address];
add.u64 %y_address, %y_address, %offset;
add.u64 %t_address, %t_address, %offset;
add.u64 %w_address, %w_address, %offset;
{NO_SUMS}{REFERENCES}
mov.u32 %trip, {POINTS_PER_BLOCK // LANES // _POINTS_AT_ONCE};
$points:"""

# Subnormal outputs and targets count as zero. In double the difference of two floats is finite only if both are. Products are not
# exact, so none is fused with an addition. The output of a point that is not there is NaN.
_DIFFERENCES = """
cvt.ftz.f64.f32 %y, %y_{i};
cvt.ftz.f64.f32 %t, %t_{i};
sub.rn.f64 %error, %y, %t;
sub.rn.f64 %y, %y, %reference_y;
sub.rn.f64 %t, %t, %reference_t;"""
_LEAVE_OUT = f"""
abs.f64 %other, %error;
setp.le.f64 %is_finite, %other, {_LARGEST};
@%is_finite add.u32 %num_finite, %num_finite, 1;"""
# With its sign, which `join_lanes` drops: a magnitude costs nothing only where it is compared.
_MAX_ERROR = """
abs.f64 %other, %error;
abs.f64 %product, %max_abs_error;
setp.gt.f64 %is_field, %other, %product;
selp.f64 %max_abs_error, %error, %max_abs_error, %is_field;"""
# A sum and the factors of its terms, of which the first takes the weight.
_TERMS = (
    ("sum_y", "y"),
    ("sum_t", "t"),
    ("sum_yy", "y", "y"),
    ("sum_tt", "t", "t"),
    ("sum_yt", "y", "t"),
    ("sum_squared_error", "error", "error"),
)
# Sums of the target alone are the same for all programs without gaps, as `evo.native.ptx_vm.Targets.sums` has them, in its order.
KNOWN_SUMS = ("sum_t", "sum_tt", "weight")


def _add(name: str, a: str, b: str = "") -> str:
    """Adds a, or the product of a and b, to a sum."""
    product = f"\nmul.rn.f64 %product, %{a}, %{b};" if b else ""
    return f"{product}\nadd.rn.f64 %{name}, %{name}, %{'product' if b else a};"


_BLOCKS_NEXT = f"""
max.u32 %left, %left, {_POINTS_AT_ONCE * LANES};
sub.u32 %left, %left, {_POINTS_AT_ONCE * LANES};
add.u64 %y_address, %y_address, {_POINTS_AT_ONCE * LANES * 4};
add.u64 %t_address, %t_address, {_POINTS_AT_ONCE * LANES * 4};
add.u64 %w_address, %w_address, {_POINTS_AT_ONCE * LANES * 4};
sub.u32 %trip, %trip, 1;
setp.ne.u32 %again, %trip, 0;
@%again bra $points;"""

# scratch is `(num_rows, NUM_FIELDS, num_blocks)` float64.
_BLOCKS_END = f"""
mad.lo.u32 %row, %row, {NUM_FIELDS}, %lane;
mul.wide.u32 %row_bytes, %num_blocks, 8;
cvt.u64.u32 %offset, %row;
mad.lo.u64 %scratch, %offset, %row_bytes, %scratch;
mul.wide.u32 %offset, %block, 8;
add.u64 %scratch, %scratch, %offset;
{store_fields("scratch", "row_bytes")}
ret;
}}"""

# A warp takes the sums of 32 blocks, one a lane, changes them to the references of the first block, halves them five times and
# writes them over the first block's, which all its threads have read by then. It repeats this until one block is left.
_ROWS_START = f"""
.visible .entry regression_rows(
    .param .u64 scratch, .param .u64 sums,
    .param .u32 num_rows, .param .u32 num_points
)
{{
.reg .pred %past_end, %is_first, %is_there, %is_last, %again;
.reg .u32 %num_rows, %num_points, %num_values, %num_groups, %thread, %size, %lane, %row, %group, %index, %low, %high;
.reg .u64 %scratch, %sums, %address, %at, %offset, %target, %plane_bytes, %target_bytes;
.reg .f64 %first_y, %first_t, %dy, %dt, %y, %t, %product, %other, {", ".join(f"%{name}" for name in FIELDS)};
ld.param.u64 %scratch, [scratch];
ld.param.u64 %sums, [sums];
ld.param.u32 %num_rows, [num_rows];
ld.param.u32 %num_points, [num_points];
cvta.to.global.u64 %scratch, %scratch;
cvta.to.global.u64 %sums, %sums;
mov.u32 %thread, %ctaid.x;
mov.u32 %size, %ntid.x;
mov.u32 %index, %tid.x;
mad.lo.u32 %thread, %thread, %size, %index;
and.b32 %lane, %thread, {_WARP - 1};
shr.u32 %row, %thread, {_WARP.bit_length() - 1};
setp.ge.u32 %past_end, %row, %num_rows;
@%past_end ret;
setp.eq.u32 %is_first, %lane, 0;
sub.u32 %num_values, %num_points, 1;
shr.u32 %num_values, %num_values, {POINTS_PER_BLOCK.bit_length() - 1};
add.u32 %num_values, %num_values, 1;
mul.wide.u32 %plane_bytes, %num_values, 8;
mul.wide.u32 %offset, %row, {NUM_FIELDS};
mad.lo.u64 %scratch, %offset, %plane_bytes, %scratch;
mad.lo.u64 %sums, %offset, 8, %sums;
mad.lo.u64 %at, %plane_bytes, {FIELDS.index("reference_y")}, %scratch;
ld.global.f64 %first_y, [%at];
mad.lo.u64 %at, %plane_bytes, {FIELDS.index("reference_t")}, %scratch;
ld.global.f64 %first_t, [%at];
$level:
add.u32 %num_groups, %num_values, {_WARP - 1};
shr.u32 %num_groups, %num_groups, {_WARP.bit_length() - 1};
setp.eq.u32 %is_last, %num_groups, 1;
mov.u32 %group, 0;
$groups:
mad.lo.u32 %index, %group, {_WARP}, %lane;
setp.lt.u32 %is_there, %index, %num_values;
mul.wide.u32 %offset, %index, 8;
add.u64 %address, %scratch, %offset;"""

# As csrc/ptx_vm.h moves them.
_MOVE_REFERENCES = """
sub.rn.f64 %dy, %reference_y, %first_y;
sub.rn.f64 %dt, %reference_t, %first_t;
mul.rn.f64 %y, %weight, %dy;
add.rn.f64 %y, %sum_y, %y;
mul.rn.f64 %t, %weight, %dt;
add.rn.f64 %t, %sum_t, %t;
add.rn.f64 %product, %sum_y, %y;
mul.rn.f64 %product, %dy, %product;
add.rn.f64 %sum_yy, %sum_yy, %product;
add.rn.f64 %product, %sum_t, %t;
mul.rn.f64 %product, %dt, %product;
add.rn.f64 %sum_tt, %sum_tt, %product;
mul.rn.f64 %product, %dy, %sum_t;
mul.rn.f64 %other, %dt, %y;
add.rn.f64 %product, %product, %other;
add.rn.f64 %sum_yt, %sum_yt, %product;
mov.f64 %sum_y, %y;
mov.f64 %sum_t, %t;
mov.f64 %reference_y, %first_y;
mov.f64 %reference_t, %first_t;"""

_ROWS_END = """
add.u32 %group, %group, 1;
setp.lt.u32 %again, %group, %num_groups;
@%again bra $groups;
bar.warp.sync 0xffffffff;
mov.u32 %num_values, %num_groups;
@!%is_last bra $level;
ret;
}"""


def _blocks_kernel(is_weighted: bool) -> str:
    points = range(_POINTS_AT_ONCE)
    parts = [_BLOCKS_START]
    for i in points:
        parts += [f"\nsetp.gt.u32 %is_point, %left, {i * LANES};"]
        for name, missing in (("y", "0f7FFFFFFF"), ("t", "0f00000000"), ("w", "0f00000000"))[: 3 if is_weighted else 2]:
            parts += [f"\nmov.f32 %{name}_{i}, {missing};"]
            parts += [f"\n@%is_point ld.global.nc.f32 %{name}_{i}, [%{name}_address+{i * LANES * 4}];"]
    parts += [add_point(i, is_weighted) for i in points]
    return "".join([*parts, _BLOCKS_NEXT, join_lanes(is_weighted), _BLOCKS_END])


def add_point(i: int, is_weighted: bool, has_gaps: bool = True) -> str:
    """Adds the point with output `y_i`, target `t_i` and weight `w_i`, f32, to the sums.

    Args:
        has_gaps: a point that is not finite is left out. Otherwise it makes sum_squared_error infinite or NaN; KNOWN_SUMS stay.
    """
    parts = [_DIFFERENCES, "\ncvt.ftz.f64.f32 %w, %w_{i};" if is_weighted else "", _LEAVE_OUT if has_gaps else ""]
    for name in ("y", "t", "error", *(["w"] if is_weighted else [])) if has_gaps else ():
        parts += [f"\nselp.f64 %{name}, %{name}, 0d0000000000000000, %is_finite;"]
    parts += [_MAX_ERROR]
    terms = [term for term in _TERMS if has_gaps or term[0] not in KNOWN_SUMS]
    if is_weighted:
        factors = sorted({first for _, first, *_ in terms})
        parts += [f"\nmul.rn.f64 %weighted_{name}, %w, %{name};" for name in factors]
        parts += [_add("weight", "w") if has_gaps else ""]
    parts += [_add(name, f"weighted_{first}" if is_weighted else first, *second) for name, first, *second in terms]
    return "".join(parts).format(i=i)


def join_lanes(is_weighted: bool) -> str:
    """Adds up the sums of an octet's lanes, pairwise. The lane's field is then in `value`, and that of 8 lanes on in `rest`."""
    parts = ["\nabs.f64 %max_abs_error, %max_abs_error;"]
    for distance in (1, 2, 4):
        parts += [f"\nshfl.sync.bfly.b32 %index, %num_finite, {distance}, 0x1f, 0xffffffff;"]
        parts += ["\nadd.u32 %num_finite, %num_finite, %index;"]
    parts += ["\nsub.u32 %index, %in_block, %num_finite;\ncvt.rn.f64.u32 %num_nonfinite, %index;"]
    joined: tuple[str, ...] = (*_SUMS, "max_abs_error")
    if not is_weighted:
        parts += ["\ncvt.rn.f64.u32 %weight, %num_finite;"]
        joined = joined[1:]
    for field, name in enumerate(FIELDS):
        operation = {"max_abs_error": "max"}.get(name, "add.rn")
        for distance in (1, 2, 4) if name in joined else ():
            parts += [_from_lane(name, distance), f"\n{operation}.f64 %{name}, %{name}, %other;"]
        register = "value" if field < LANES else "rest"
        parts += [f"\nsetp.eq.u32 %is_field, %lane, {field % LANES};"]
        parts += [f"\nselp.f64 %{register}, %{name}, %{register if field % LANES else name}, %is_field;"]
    return "".join(parts)


def _rows_kernel() -> str:
    parts = [_ROWS_START]
    for field, name in enumerate(FIELDS):
        missing = {"reference_y": "%first_y", "reference_t": "%first_t"}.get(name, "0d0000000000000000")
        parts += [f"\nmad.lo.u64 %at, %plane_bytes, {field}, %address;\nmov.f64 %{name}, {missing};"]
        parts += [f"\n@%is_there ld.global.f64 %{name}, [%at];"]
    parts += [_MOVE_REFERENCES]
    for name in FIELDS:
        operation = "max" if name == "max_abs_error" else "add.rn"
        for distance in () if name.startswith("reference") else (1, 2, 4, 8, 16):
            parts += [_from_lane(name, distance), f"\n{operation}.f64 %{name}, %{name}, %other;"]
    parts += [
        "\nmul.wide.u32 %offset, %group, 8;\nadd.u64 %target, %scratch, %offset;\nselp.u64 %target, %sums, %target, %is_last;"
    ]
    parts += ["\nselp.u64 %target_bytes, 8, %plane_bytes, %is_last;"]
    for name in FIELDS:
        parts += [f"\n@%is_first st.global.f64 [%target], %{name};\nadd.u64 %target, %target, %target_bytes;"]
    return "".join([*parts, _ROWS_END])


def _from_lane(name: str, distance: int) -> str:
    """Loads `other` from the lane whose number differs in one bit, so that both lanes of a pair get the same sum."""
    lines = [f"mov.b64 {{%low, %high}}, %{name};"]
    lines += [f"shfl.sync.bfly.b32 %{half}, %{half}, {distance}, 0x1f, 0xffffffff;" for half in ("low", "high")]
    return "\n" + "\n".join([*lines, "mov.b64 %other, {%low, %high};"])
