"""The emulator's threads: divergence, barriers, shuffles, memory spaces, faults, and kernels that NVRTC compiles."""

from __future__ import annotations

import math
import os
import struct

import numpy as np
import pytest
from emulated_gpu.ptx_machine import ORDERS, Deadlock, Timeout, launch
from emulated_gpu.ptx_memory import Area, EmulatorFault, IllegalAddress, Memory, MisalignedAddress
from emulated_gpu.ptx_text import Module, PtxError, Unsupported

from .ptx_cases import HEADER, run_kernel

ADDRESS = ".reg .u32 %i; .reg .u64 %q; mov.u32 %i, %tid.x; mad.wide.u32 %q, %i, 4, %p0;\n"


def per_thread(body: str, threads: int = 32, **options) -> list[int]:
    """The value of %d in each thread."""
    out = np.zeros(threads, np.uint32)
    run_kernel(f".reg .u32 %d;\n{ADDRESS}{body}\nst.global.u32 [%q], %d; ret;", [out], threads, **options)
    return out.tolist()


COLLATZ = """
    .reg .u32 %n, %bit; .reg .pred %odd, %one;
    mov.u32 %d, 0;
    add.u32 %n, %i, 1;
$again:
    setp.eq.u32 %one, %n, 1;
    @%one bra $done;
    and.b32 %bit, %n, 1;
    setp.eq.u32 %odd, %bit, 1;
    @%odd bra $odd;
    shr.u32 %n, %n, 1;
    bra.uni $next;
$odd:
    mad.lo.u32 %n, %n, 3, 1;
$next:
    add.u32 %d, %d, 1;
    bra.uni $again;
$done:
"""


@pytest.mark.parametrize("order", ORDERS)
def test_threads_diverge_and_converge_again(order):
    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(3 * n + 1 if n % 2 else n // 2)

    assert per_thread(COLLATZ, 100, order=order) == [steps(i + 1) for i in range(100)]


def test_a_branch_table_sends_each_thread_to_its_label():
    body = """
    .reg .u32 %case; rem.u32 %case, %i, 3;
    $cases: .branchtargets $zero, $one, $two;
    brx.idx %case, $cases;
    $zero: mov.u32 %d, 10; bra $end;
    $one: mov.u32 %d, 11; bra $end;
    $two: mov.u32 %d, 12;
    $end:
    """
    assert per_thread(body) == [10 + i % 3 for i in range(32)]
    with pytest.raises(PtxError, match="index 3 of 3"):
        per_thread(body.replace("rem.u32 %case, %i, 3", "and.b32 %case, %i, 3"))


def test_a_register_may_hold_the_place_of_a_parameter():
    out = np.zeros(1, np.uint64)
    run_kernel(".reg .u64 %q, %v; mov.b64 %q, p0; ld.param.u64 %v, [%q]; st.global.u64 [%p0], %v; ret;", [out], 1)
    assert out[0] == out.ctypes.data


def test_a_predicate_spares_threads_an_instruction():
    body = ".reg .pred %p; mov.u32 %d, 1; setp.lt.u32 %p, %i, 3; @%p add.u32 %d, %d, 4; @!%p bra $end; add.u32 %d, %d, 8; $end:"
    assert per_thread(body, 6) == [13, 13, 13, 1, 1, 1]


def test_scopes_have_registers_and_labels_of_their_own():
    body = """
    .reg .u32 %x; mov.u32 %x, 1;
    { .reg .u32 %x; mov.u32 %x, 5; { .reg .u64 %x; mov.u64 %x, 7; } bra $end; mov.u32 %x, 9; $end: add.u32 %d, %x, 0; }
    { .reg .u32 %x; mov.u32 %x, 100; bra $end; mov.u32 %x, 9; $end: add.u32 %d, %d, %x; }
    add.u32 %d, %d, %x;
    """
    assert per_thread(body, 1) == [106]


CALLS = """.func halve(.param .b64 where, .param .b32 count)
{
    .reg .u64 %q; .reg .u32 %n, %v; .reg .pred %done;
    ld.param.u64 %q, [where];
    ld.param.u32 %n, [count];
$again:
    setp.eq.u32 %done, %n, 0;
    @%done ret;
    ld.global.u32 %v, [%q];
    shr.u32 %v, %v, 1;
    st.global.u32 [%q], %v;
    sub.u32 %n, %n, 1;
    bra $again;
}
"""


def test_a_call_runs_a_function_with_its_parameters_for_the_threads_that_make_it():
    """Twice: its labels and registers are its own each time."""
    values = np.arange(64, dtype=np.uint32)
    call = "{{ .param .b64 a; st.param.b64 [a], %q; .param .b32 b; st.param.b32 [b+0], {}; call.uni halve, (a, b); }}\n"
    body = f"""
    .reg .u32 %i, %n; .reg .u64 %q; .reg .pred %few;
    ld.param.u64 %q, [p0]; mov.u32 %i, %tid.x; mad.wide.u32 %q, %i, 4, %q;
    and.b32 %n, %i, 3;
    {call.format("%n")}
    setp.lt.u32 %few, %i, 32;
    @%few bra $end;
    {call.format(1)}
$end:
    ret;"""
    module = Module(f"{HEADER}{CALLS}.visible .entry kernel(.param .u64 p0)\n{{\n{body}\n}}\n")
    found = values.copy()
    launch(module, "kernel", (1,), (64,), struct.pack("<Q", found.ctypes.data), Memory.of_arrays(found))
    assert found.tolist() == [value >> (value & 3) >> (value >= 32) for value in values.tolist()]


@pytest.mark.parametrize("call", ["call twice, (a);", "call halve, (a);", "@%p call halve, (a, a);"])
def test_a_call_without_a_meaning_is_reported(call):
    text = f"{HEADER}{CALLS}.visible .entry kernel()\n{{\n.param .b32 a; .reg .pred %p;\n{call}\nret;\n}}\n"
    with pytest.raises(PtxError):
        Module(text).kernel("kernel")


def test_threads_know_who_they_are():
    module = Module(
        f"""{HEADER}.visible .entry who(.param .u64 p) {{
        .reg .u64 %p; .reg .u32 %x, %y, %z, %bx, %by, %bz, %nx, %ny, %nz, %gx, %gy, %i, %v;
        ld.param.u64 %p, [p];
        mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;
        mov.u32 %bx, %ctaid.x; mov.u32 %by, %ctaid.y; mov.u32 %bz, %ctaid.z;
        mov.u32 %nx, %ntid.x; mov.u32 %ny, %ntid.y; mov.u32 %nz, %ntid.z; mov.u32 %gx, %nctaid.x; mov.u32 %gy, %nctaid.y;
        mad.lo.u32 %i, %bz, %gy, %by; mad.lo.u32 %i, %i, %gx, %bx;
        mad.lo.u32 %i, %i, %nz, %z; mad.lo.u32 %i, %i, %ny, %y; mad.lo.u32 %i, %i, %nx, %x;
        mad.wide.u32 %p, %i, 8, %p;
        mov.u32 %v, %laneid; st.global.u32 [%p], %v;
        mov.u32 %v, %lanemask_lt; st.global.u32 [%p+4], %v;
        ret; }}"""
    )
    out = np.full((2 * 3 * 2, 2 * 5 * 7, 2), 99, np.uint32)
    launch(module, "who", (2, 3, 2), (7, 5, 2), out.ctypes.data.to_bytes(8, "little"), Memory.of_arrays(out))
    lanes = np.arange(70, dtype=np.uint32) % 32
    np.testing.assert_array_equal(out, np.broadcast_to(np.stack([lanes, (1 << lanes) - 1], axis=1), out.shape))


REVERSE = """
    .shared .align 4 .b8 words[512];
    .reg .u64 %s, %t; .reg .u32 %n, %j;
    mov.u64 %s, words;
    mad.wide.u32 %t, %i, 4, %s;
    st.shared.u32 [%t], %i;
    {barrier}
    mov.u32 %n, %ntid.x; sub.u32 %j, %n, %i; sub.u32 %j, %j, 1;
    mad.wide.u32 %t, %j, 4, %s;
    ld.shared.u32 %d, [%t];
"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_orders_what_warps_share(order):
    assert per_thread(REVERSE.replace("{barrier}", "bar.sync 0;"), 128, order=order) == list(range(127, -1, -1))


def test_a_missing_barrier_shows_when_warps_go_one_after_the_other():
    racing = REVERSE.replace("{barrier}", "")
    assert per_thread(racing, 128, order="together") == list(range(127, -1, -1))
    for order in ORDERS[1:]:
        assert per_thread(racing, 128, order=order) != list(range(127, -1, -1))


def test_threads_that_have_ended_are_not_waited_for_at_a_barrier():
    body = ".reg .pred %p; setp.lt.u32 %p, %i, 40; mov.u32 %d, 1; @%p bra $on; ret; $on: bar.sync 0; mov.u32 %d, 2;"
    assert per_thread(body, 64) == [2] * 40 + [0] * 24


def test_a_barrier_that_others_do_not_reach_is_a_deadlock():
    body = ".reg .pred %p; mov.u32 %d, 0; setp.lt.u32 %p, %i, 40; @%p bar.sync 0; @!%p bar.sync 1;"
    with pytest.raises(Deadlock):
        per_thread(body, 64)


SHUFFLES = {
    "bfly.b32 %d|%p, %i, 5, 0x1f": lambda i: (i ^ 5, 1),
    "down.b32 %d|%p, %i, 3, 0x1f": lambda i: (i + 3, 1) if i + 3 < 32 else (i, 0),
    "up.b32 %d|%p, %i, 3, 0": lambda i: (i - 3, 1) if i >= 3 else (i, 0),
    "idx.b32 %d|%p, %i, 2, 0x1f": lambda i: (2, 1),
    "idx.b32 %d|%p, %i, 2, 0x181f": lambda i: (i & ~7 | 2, 1),
    "down.b32 %d|%p, %i, 3, 0x181f": lambda i: (i + 3, 1) if i % 8 + 3 < 8 else (i, 0),
}


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_shuffles(shuffle):
    body = f".reg .pred %p; .reg .u32 %v; shfl.sync.{shuffle}, 0xffffffff; selp.u32 %v, 100, 0, %p; add.u32 %d, %d, %v;"
    expected = [SHUFFLES[shuffle](i % 32) for i in range(64)]
    assert per_thread(body, 64) == [32 * (i // 32) + lane + 100 * flag for i, (lane, flag) in enumerate(expected)]


def test_a_shuffle_waits_for_the_threads_that_it_names():
    """The first half comes by a detour; those of the second half shuffle among themselves by another instruction."""
    body = """
    .reg .pred %p, %low; .reg .u32 %x;
    setp.lt.u32 %low, %i, 16;
    mul.lo.u32 %x, %i, 10;
    @%low bra $low;
    shfl.sync.bfly.b32 %d, %x, 1, 0x1f, 0xffff0000;
    bra $end;
    $low: shfl.sync.bfly.b32 %d, %x, 2, 0x1f, 0x0000ffff;
    $end: shfl.sync.bfly.b32 %d, %d, 16, 0x1f, 0xffffffff;
    """
    assert per_thread(body) == [10 * ((i ^ 16) ^ (1 if i < 16 else 2)) for i in range(32)]
    with pytest.raises(Deadlock):
        per_thread(body.replace("0x0000ffff", "0x0001ffff"))


def test_votes():
    body = ".reg .pred %p; setp.lt.u32 %p, %i, 3; vote.sync.ballot.b32 %d, %p, 0xffffffff;"
    assert per_thread(body) == [7] * 32
    body = ".reg .pred %p, %v; setp.lt.u32 %p, %i, 33; vote.sync.{}.pred %v, %p, -1; selp.u32 %d, 1, 0, %v;"
    assert per_thread(body.format("all"), 64) == [1] * 32 + [0] * 32
    assert per_thread(body.format("any"), 96) == [1] * 64 + [0] * 32


def test_vectors_are_loaded_and_stored_whole():
    values = np.arange(8, dtype=np.uint32)
    out = np.zeros(8, np.uint32)
    body = ".reg .u32 %a, %b, %c, %d; ld.global.v4.u32 {%a, %b, %c, %d}, [%p0+16];"
    body += "st.global.v2.u32 [%p1], {%d, %c}; st.global.v2.u32 [%p1+8], {%b, %a}; ret;"
    aligned = np.zeros(64, np.uint32)
    start = -(aligned.ctypes.data // 4) % 4
    aligned[start : start + 8] = values
    run_kernel(body, [aligned[start : start + 8], out], 1)
    assert out.tolist() == [7, 6, 5, 4, 0, 0, 0, 0]
    with pytest.raises(MisalignedAddress):
        run_kernel(body.replace("[%p0+16]", "[%p0+12]"), [aligned[start : start + 8], out], 1)


def test_a_narrow_load_is_extended_as_its_type_says():
    source, out = np.array([0xFF, 0x80, 1, 2], np.uint8), np.zeros(3, np.uint32)
    body = ".reg .b32 %a, %b, %c; ld.global.s8 %a, [%p0]; ld.global.u8 %b, [%p0]; ld.global.u16 %c, [%p0+2];"
    body += "st.global.b32 [%p1], %a; st.global.b32 [%p1+4], %b; st.global.b32 [%p1+8], %c; ret;"
    run_kernel(body, [source, out], 1)
    assert [hex(word) for word in out] == ["0xffffffff", "0xff", "0x201"]


def test_generic_addresses_find_their_space():
    body = """
    .shared .align 8 .u32 word; .local .align 8 .b8 own[8];
    .reg .u64 %s, %l, %g;
    mov.u64 %s, word; cvta.shared.u64 %s, %s;
    mov.u64 %l, own; cvta.local.u64 %l, %l;
    st.u32 [%s], 40; st.u32 [%l+4], 2; st.u32 [%q], 0;
    .reg .u32 %a, %b; ld.shared.u32 %a, [word]; ld.u32 %b, [%l+4]; add.u32 %d, %a, %b;
    """
    assert per_thread(body, 2) == [42, 42]


def test_variables_of_a_module_keep_their_values_from_launch_to_launch():
    text = """.global .u32 count = 5; .const .align 4 .b8 table[8] = {1, 0, 0, 0, 2, 0, 0, 0};
    .visible .entry next(.param .u64 p) { .reg .u64 %p; .reg .u32 %v, %w; ld.param.u64 %p, [p]; ld.global.u32 %v, [count];
    ld.const.u32 %w, [table+4]; add.u32 %v, %v, %w; st.global.u32 [count], %v; st.global.u32 [%p], %v; ret; }"""
    module, out = Module(HEADER + text), np.zeros(1, np.uint32)
    for expected in (7, 9):
        launch(module, "next", (1,), (1,), out.ctypes.data.to_bytes(8, "little"), Memory.of_arrays(out))
        assert out[0] == expected


def test_an_access_outside_of_memory_is_an_illegal_address():
    out = np.zeros(31, np.uint32)
    for body in ("st.global.u32 [%q], %i; ret;", ".reg .u32 %x; ld.global.u32 %x, [%q]; ret;"):
        with pytest.raises(IllegalAddress, match=f"{out.ctypes.data + 124:#x}"):
            run_kernel(ADDRESS + body, [out], 32)
    with pytest.raises(IllegalAddress):
        per_thread(".shared .u32 s[4]; .reg .u64 %s; mov.u64 %s, s; st.shared.u32 [%s+16], 1; mov.u32 %d, 0;")
    with pytest.raises(MisalignedAddress):
        run_kernel(ADDRESS + "st.global.u32 [%q+2], %i; ret;", [out], 1)


def test_dynamic_shared_memory_is_what_the_launch_gives():
    body = ".reg .u64 %s; mov.u64 %s, pool; st.shared.u32 [%s+60], 7; ld.shared.u32 %d, [%s+60];"
    head = ".extern .shared .align 16 .b8 pool[];\n.visible .entry k(.param .u64 p0) {"
    head += " .reg .u64 %p0; ld.param.u64 %p0, [p0]; .reg .u32 %d;"
    text = f"{HEADER}{head} {ADDRESS} {body} st.global.u32 [%q], %d; ret; }}"
    out = np.zeros(4, np.uint32)
    arguments = (Module(text), "k", (1,), (4,), out.ctypes.data.to_bytes(8, "little"), Memory.of_arrays(out))
    launch(*arguments, shared_bytes=64)
    assert out.tolist() == [7] * 4
    with pytest.raises(IllegalAddress):
        launch(*arguments, shared_bytes=60)


def test_memory_of_many_areas_is_used_across_them():
    first, second = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    memory = Memory(areas=(Area(0x1000, first.view(np.uint8)), Area(0x9000, second.view(np.uint8))))
    addresses = np.array([0x9000, 0x1004, 0x90FC, 0x1000], np.uint64)
    memory.store(addresses, np.array([1, 2, 3, 4], np.uint32))
    assert (first[0], first[1], second[0], second[63]) == (4, 2, 1, 3)
    assert memory.load(addresses, np.dtype(np.uint32)).tolist() == [1, 2, 3, 4]
    with pytest.raises(IllegalAddress):
        memory.load(np.array([0x1000, 0x1100], np.uint64), np.dtype(np.uint32))


def test_an_endless_loop_times_out():
    with pytest.raises(Timeout):
        per_thread("mov.u32 %d, 0; $again: bra.uni $again;", max_steps=1000)


def test_a_read_of_an_unwritten_register_is_reported():
    with pytest.raises(EmulatorFault, match="register %never is read before it is written"):
        per_thread(".reg .u32 %never; add.u32 %d, %never, 1;")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("mov.u32 %d, %clock;", Unsupported),
        (".reg .f32 %f; mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 %f, %f, %f, %f;", Unsupported),
        ("bra $nowhere;", PtxError),
        ("mov.u32 %d, %unknown;", PtxError),
        ("add.u32 %d, 1;", PtxError),
    ],
)
def test_text_without_a_meaning_is_reported_with_its_line(body, error):
    with pytest.raises(error, match="kernel: "):
        per_thread(body)


CUDA = r"""
extern "C" __global__ void saxpy(int n, float a, const float* __restrict__ x, float* y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void sum_squares(const double* x, double* out, int n) {
    __shared__ double part[128];
    double sum = 0;
    for (int i = threadIdx.x; i < n; i += 128) sum += x[i] * x[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int k = 64; k > 0; k >>= 1) {
        if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
struct Mixed { float a; double b; int c[3]; };
extern "C" __global__ void mixed(Mixed p, float4* out, unsigned n) {
    unsigned i = threadIdx.x;
    float v = __shfl_xor_sync(~0u, (float)i, 1);
    out[i] = make_float4(p.a + v, (float)p.b, p.c[i % 3], sinf(v * n));
}
extern "C" __global__ void divide(const int* x, const long long* y, long long* out, int n) {
    extern __shared__ long long pool[];
    int i = threadIdx.x;
    pool[i] = y[i] / x[i] + y[i] % x[i] + (x[i] / 7) * (x[i] % 5);
    __syncthreads();
    out[i] = pool[n - 1 - i];
}
"""


@pytest.fixture(scope="module")
def compiled():
    if not os.environ.get("CI"):
        nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
        try:
            nvrtc.nvrtcVersion()
        except RuntimeError:
            pytest.skip("NVRTC is not installed")
    from evo.kernel import nvrtc as compiler

    return Module(compiler.compile(CUDA.encode(), "kernels.cu", {}, ["--gpu-architecture=sm_90"]))


def test_a_compiled_loop(compiled):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 1000)).astype(np.float32)
    expected = (x.astype(np.float64) * 2.5 + y).astype(np.float32)
    launch(compiled, "saxpy", (3,), (64,), struct.pack("<ifQQ", 1000, 2.5, x.ctypes.data, y.ctypes.data), Memory.of_arrays(x, y))
    np.testing.assert_array_max_ulp(y, expected, 1)


@pytest.mark.parametrize("order", ORDERS)
def test_a_compiled_reduction(compiled, order):
    x, out = np.random.default_rng(1).normal(size=1000), np.zeros(2)
    arguments = struct.pack("<QQi", x.ctypes.data, out.ctypes.data, 1000)
    launch(compiled, "sum_squares", (2,), (128,), arguments, Memory.of_arrays(x, out), order=order)
    assert out[0] == out[1] == pytest.approx(math.fsum(x * x), rel=1e-14)


def test_a_compiled_kernel_with_a_structure_local_memory_and_a_library_function(compiled):
    out = np.zeros((64, 4), np.float32)
    arguments = struct.pack("<f4xd3i4xQI", 1.5, 2.25, 7, 8, 9, out.ctypes.data, 100000)
    launch(compiled, "mixed", (1,), (64,), arguments, Memory.of_arrays(out))
    i = np.arange(64)
    np.testing.assert_allclose(
        out, np.stack([1.5 + (i ^ 1), np.full(64, 2.25), 7 + i % 3, np.sin((i ^ 1) * 1e5)], axis=1), atol=1e-6
    )


def test_compiled_division_of_integers(compiled):
    rng = np.random.default_rng(2)
    x = rng.integers(-(2**31), 2**31, 64, np.int32) | 1
    y = rng.integers(-(2**62), 2**62, 64) // rng.integers(1, 2**40, 64)
    out = np.zeros(64, np.int64)
    arguments = struct.pack("<QQQi", x.ctypes.data, y.ctypes.data, out.ctypes.data, 64)
    launch(compiled, "divide", (1,), (64,), arguments, Memory.of_arrays(x, y, out), shared_bytes=512)

    def divided(a: int, b: int) -> tuple[int, int]:
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient, a - quotient * b

    expected = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        product = divided(a, 7)[0] * divided(a, 5)[1]
        product = (product + 2**31) % 2**32 - 2**31
        expected.append(sum(divided(b, a)) + product)
    assert out.tolist() == expected[::-1]
