"""Faults of kernels that the emulator reports. What sound kernels compute, tests/contract holds to the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from emulated_gpu.ptx_machine import ORDERS, Deadlock, Timeout, launch
from emulated_gpu.ptx_memory import EmulatorFault, IllegalAddress, Memory, MisalignedAddress
from emulated_gpu.ptx_text import Module, PtxError, Unsupported

from .ptx_cases import HEADER, run_kernel

ADDRESS = ".reg .u32 %i; .reg .u64 %q; mov.u32 %i, %tid.x; mad.wide.u32 %q, %i, 4, %p0;\n"


def per_thread(body: str, threads: int = 32, **options) -> list[int]:
    """The value of %d in each thread."""
    out = np.zeros(threads, np.uint32)
    run_kernel(f".reg .u32 %d;\n{ADDRESS}{body}\nst.global.u32 [%q], %d; ret;", [out], threads, **options)
    return out.tolist()


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


def test_a_missing_barrier_shows_when_warps_go_one_after_the_other():
    racing = REVERSE.replace("{barrier}", "")
    assert per_thread(racing, 128, order="together") == list(range(127, -1, -1))
    for order in ORDERS[1:]:
        assert per_thread(racing, 128, order=order) != list(range(127, -1, -1))


def test_a_barrier_that_others_do_not_reach_is_a_deadlock():
    body = ".reg .pred %p; mov.u32 %d, 0; setp.lt.u32 %p, %i, 40; @%p bar.sync 0; @!%p bar.sync 1;"
    with pytest.raises(Deadlock):
        per_thread(body, 64)


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
