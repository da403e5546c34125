"""The stand-in driver, called through cuda.bindings.driver: what it does, and what it refuses as a real driver does."""

from __future__ import annotations

import ctypes
import os
import threading

import numpy as np
import pytest

if not os.environ.get("CI"):  # in CI what is missing is a failure
    pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from cuda.bindings import driver

from evo.native import nvptxcompiler

PTX = """.version 9.0
.target sm_90
.address_size 64
// adds a value to the first n words at p, each with its own index on top
.visible .entry add(.param .u64 p, .param .u32 n, .param .u32 value)
{
    .reg .u64 %p;
    .reg .u32 %n, %value, %i, %old;
    .reg .pred %past;
    ld.param.u64 %p, [p];
    ld.param.u32 %n, [n];
    ld.param.u32 %value, [value];
    cvta.to.global.u64 %p, %p;
    mov.u32 %i, %tid.x;
    setp.ge.u32 %past, %i, %n;
    @%past bra $end;
    mad.wide.u32 %p, %i, 4, %p;
    ld.global.u32 %old, [%p];
    add.u32 %old, %old, %value;
    add.u32 %old, %old, %i;
    st.global.u32 [%p], %old;
$end:
    ret;
}
.visible .entry forever()
{
$again:
    bra.uni $again;
}
"""
NUM_BYTES = 400


def ok(answer):
    """The result of a call that must succeed."""
    assert answer[0] == driver.CUresult.CUDA_SUCCESS, answer[0]
    return answer[1] if len(answer) == 2 else answer[1:]


def code(answer) -> str:
    return answer[0].name.removeprefix("CUDA_ERROR_")


@pytest.fixture
def gpu(emulated_gpu):
    """The stand-in, with a context that is current."""
    ok(driver.cuInit(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
    return emulated_gpu


def load(ptx: str = PTX):
    return ok(driver.cuModuleLoadData(nvptxcompiler.compile(ptx)))


def launch(function, address, num_words=100, value=0, block=128, stream=0):
    parameters = ((int(address), num_words, value), (ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32))
    return driver.cuLaunchKernel(function, 1, 1, 1, block, 1, 1, 0, stream, parameters, 0)


def words(address) -> np.ndarray:
    result = np.zeros(NUM_BYTES // 4, np.uint32)
    ok(driver.cuMemcpyDtoH(result.ctypes.data, address, NUM_BYTES))
    return result


def pinned(values: np.ndarray):
    address = ok(driver.cuMemHostAlloc(values.nbytes, 0))
    array = np.frombuffer((ctypes.c_uint8 * values.nbytes).from_address(int(address)), values.dtype)
    array[:] = values
    return array


def test_fresh_memory_is_not_zero_and_can_be_filled(gpu):
    address = ok(driver.cuMemAlloc(NUM_BYTES))
    assert (words(address) == 0xABABABAB).all()
    ok(driver.cuMemsetD8(address, 0xFF, 100))
    ok(driver.cuMemsetD32(int(address) + 100, 5, 25))
    np.testing.assert_array_equal(words(address), [0xFFFFFFFF] * 25 + [5] * 25 + [0xABABABAB] * 50)


def test_a_thread_without_a_context_is_refused(gpu):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(code(driver.cuMemAlloc(4))))
    thread.start()
    thread.join()
    assert codes == ["INVALID_CONTEXT"]
    ok(driver.cuCtxPopCurrent())
    assert code(driver.cuStreamCreate(0)) == "INVALID_CONTEXT"


def test_memory_is_counted_and_limited(gpu):
    gpu.configure("total_memory=1000")
    address = ok(driver.cuMemAlloc(600))
    assert ok(driver.cuMemGetInfo()) == (400, 1000)
    assert code(driver.cuMemAlloc(401)) == "OUT_OF_MEMORY"
    ok(driver.cuMemFree(address))
    assert ok(driver.cuMemGetInfo()) == (1000, 1000)
    assert code(driver.cuMemFree(address)) == "INVALID_VALUE"


def test_copies_outside_of_an_allocation_are_refused(gpu):
    buffer = np.zeros(200, np.uint32)
    address = ok(driver.cuMemAlloc(NUM_BYTES))
    assert code(driver.cuMemcpyHtoD(address, buffer.ctypes.data, NUM_BYTES + 1)) == "INVALID_VALUE"
    assert code(driver.cuMemcpyDtoH(buffer.ctypes.data, int(address) + 4, NUM_BYTES)) == "INVALID_VALUE"
    assert code(driver.cuMemsetD32(int(address) + 2, 0, 1)) == "INVALID_VALUE"
    ok(driver.cuMemFree(address))
    assert code(driver.cuMemcpyDtoH(buffer.ctypes.data, address, 4)) == "INVALID_VALUE"


def test_destroyed_handles_are_refused(gpu):
    stream, event, module = ok(driver.cuStreamCreate(0)), ok(driver.cuEventCreate(0)), load()
    function = ok(driver.cuModuleGetFunction(module, b"add"))
    assert code(driver.cuModuleGetFunction(module, b"subtract")) == "NOT_FOUND"
    assert code(driver.cuEventRecord(stream, 0)) == "INVALID_HANDLE"
    ok(driver.cuEventDestroy(event))
    ok(driver.cuStreamDestroy(stream))
    ok(driver.cuModuleUnload(module))
    for answer in (
        driver.cuEventRecord(event, 0),
        driver.cuEventDestroy(event),
        driver.cuStreamSynchronize(stream),
        driver.cuModuleUnload(module),
        launch(function, 0),
    ):
        assert code(answer) == "INVALID_HANDLE"


@pytest.mark.parametrize("block", [0, 1025])
def test_a_launch_that_no_gpu_takes_is_refused(gpu, block):
    address = ok(driver.cuMemAlloc(NUM_BYTES))
    function = ok(driver.cuModuleGetFunction(load(), b"add"))
    assert code(launch(function, address, block=block)) == "INVALID_VALUE"
    ok(driver.cuCtxSynchronize())


# CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability": most shared memory of a block.
@pytest.mark.parametrize(("capability", "most_kib"), [("7.5", 64), ("8.0", 163), ("8.6", 99), ("9.0", 227), ("12.0", 99)])
def test_a_block_has_the_shared_memory_of_its_architecture(gpu, capability, most_kib):
    gpu.configure(f"capability={capability}")
    module = ok(driver.cuModuleLoadData(PTX.replace("sm_90", "sm_75").encode() + b"\0"))
    function = ok(driver.cuModuleGetFunction(module, b"add"))
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    ok(driver.cuFuncSetAttribute(function, attribute, most_kib * 1024))
    assert code(driver.cuFuncSetAttribute(function, attribute, most_kib * 1024 + 1)) == "INVALID_VALUE"


def test_a_block_gets_no_more_registers_than_a_multiprocessor_has(gpu):
    """100 values that live at once: 65,536 registers are enough for 512 threads, and too few for 1,024."""
    numbers = range(100)
    loads = [f"ld.global.u32 %v{i}, [%p+{4 * i}];" for i in numbers]
    stores = [f"add.u32 %v{i}, %v{i}, %v{(i + 1) % 100}; st.global.u32 [%p+{4 * i}], %v{i};" for i in reversed(numbers)]
    body = ["ld.param.u64 %p, [p];", "cvta.to.global.u64 %p, %p;", *loads, "bar.sync 0;", *stores, "ret;"]
    head = PTX.partition("//")[0] + ".visible .entry many(.param .u64 p)\n{\n.reg .u64 %p; .reg .u32 %v<100>;\n"
    function = ok(driver.cuModuleGetFunction(load("\n".join([head, *body, "}\n"])), b"many"))
    address = ok(driver.cuMemAlloc(NUM_BYTES))
    assert 100 <= ok(driver.cuFuncGetAttribute(driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, function)) <= 128
    blocks = [ok(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, size, 0)) for size in (512, 1024)]
    assert blocks == [1, 0]
    assert code(launch(function, address, block=1024)) == "LAUNCH_OUT_OF_RESOURCES"
    ok(launch(function, address, block=512))


def test_a_kernel_does_not_reach_the_memory_of_another_device(gpu):
    gpu.configure("devices=2")
    address = ok(driver.cuMemAlloc(NUM_BYTES))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(1))))
    function = ok(driver.cuModuleGetFunction(load(), b"add"))
    launch(function, address)
    assert code(driver.cuCtxSynchronize()) == "ILLEGAL_ADDRESS"


def test_a_module_is_a_cubin_for_this_device_with_its_ptx(gpu):
    cubin = nvptxcompiler.compile(PTX)
    bare = cubin[: cubin.index(b"\nemulated GPU")]
    assert code(driver.cuModuleLoadData(bare)) == "INVALID_IMAGE"
    assert code(driver.cuModuleLoadData(b"no cubin at all" + bytes(100))) == "INVALID_IMAGE"
    other = nvptxcompiler.compile(PTX.replace("sm_90", "sm_80"), ("--gpu-name=sm_80",))
    assert code(driver.cuModuleLoadData(other)) == "NO_BINARY_FOR_GPU"
    gpu.configure("capability=8.6")
    ok(driver.cuModuleLoadData(other))


VARIABLES = """.version 9.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 seen = 7;
.global .align 4 .u32 hidden;
.visible .entry copy(.param .u64 target)
{
    .reg .u64 %q; .reg .u32 %v;
    ld.param.u64 %q, [target];
    ld.global.u32 %v, [seen];
    st.global.u32 [%q], %v;
    st.global.u32 [hidden], %v;
    ret;
}
"""


def test_a_variable_is_a_modules_own_and_is_found_by_its_name(gpu):
    cubin = nvptxcompiler.compile(VARIABLES)
    modules = [ok(driver.cuModuleLoadData(cubin)) for _ in range(2)]
    places = [ok(driver.cuModuleGetGlobal(module, b"seen")) for module in modules]
    assert [num_bytes for _, num_bytes in places] == [4, 4] and int(places[0][0]) != int(places[1][0])
    assert code(driver.cuModuleGetGlobal(modules[0], b"hidden")) == "NOT_FOUND"
    value = np.array([9], np.uint32)
    ok(driver.cuMemcpyHtoD(places[0][0], value.ctypes.data, 4))
    address, found = ok(driver.cuMemAlloc(4)), []
    for module in modules:
        function, parameters = ok(driver.cuModuleGetFunction(module, b"copy")), ((int(address),), (ctypes.c_uint64,))
        ok(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, parameters, 0))
        ok(driver.cuMemcpyDtoH(value.ctypes.data, address, 4))
        found.append(int(value[0]))
    assert found == [9, 7]
    ok(driver.cuModuleUnload(modules[0]))
    assert code(driver.cuMemcpyHtoD(places[0][0], value.ctypes.data, 4)) == "INVALID_VALUE"


def test_an_illegal_address_is_reported_by_the_next_call_that_waits_and_persists(gpu):
    stream = ok(driver.cuStreamCreate(1))
    address = ok(driver.cuMemAlloc(NUM_BYTES))
    function = ok(driver.cuModuleGetFunction(load(), b"add"))
    ok(launch(function, address, 101, stream=stream))
    assert code(driver.cuStreamSynchronize(stream)) == "ILLEGAL_ADDRESS"
    later = driver.cuMemFree(address), driver.cuMemAlloc(4), launch(function, address)
    assert [code(answer) for answer in later] == ["ILLEGAL_ADDRESS"] * 3
    assert gpu.messages == [f"IllegalAddress: global address {int(address) + NUM_BYTES:#x}, 4 bytes"]


def test_faults_come_when_they_are_due(gpu):
    gpu.configure("fault=launch:2:719,fault=load:2:200,fault=alloc:1:2")
    assert code(driver.cuMemAlloc(4)) == "OUT_OF_MEMORY"
    address, module = ok(driver.cuMemAlloc(NUM_BYTES)), load()
    assert code(driver.cuModuleLoadData(nvptxcompiler.compile(PTX))) == "INVALID_IMAGE"
    load()
    function = ok(driver.cuModuleGetFunction(module, b"add"))
    ok(launch(function, address))
    assert [code(launch(function, address)), code(driver.cuCtxSynchronize()), code(driver.cuMemFree(address))] == [
        "LAUNCH_FAILED"
    ] * 3
    with pytest.raises(ValueError, match="a wrong option in 'fault=launch'"):
        gpu.configure("fault=launch")


def test_a_late_fault_is_reported_by_the_next_call_that_waits(gpu):
    address, function = ok(driver.cuMemAlloc(NUM_BYTES)), ok(driver.cuModuleGetFunction(load(), b"add"))
    gpu.configure("fault=launch:1:700:late")
    ok(launch(function, address))
    ok(launch(function, address))
    assert code(driver.cuCtxSynchronize()) == "ILLEGAL_ADDRESS"


def test_a_kernel_that_never_ends_blocks_its_stream_and_those_that_wait_for_it(gpu):
    address, function = ok(driver.cuMemAlloc(NUM_BYTES)), ok(driver.cuModuleGetFunction(load(), b"add"))
    first, second, third = (ok(driver.cuStreamCreate(1)) for _ in range(3))
    event, behind = ok(driver.cuEventCreate(2)), ok(driver.cuEventCreate(2))
    gpu.configure("fault=launch:1:600")
    ok(launch(function, address, stream=first))
    ok(driver.cuEventRecord(event, first))
    ok(driver.cuStreamWaitEvent(second, event, 0))
    ok(driver.cuEventRecord(behind, second))
    for _ in range(3):
        assert [code(driver.cuEventQuery(one)) for one in (event, behind)] == ["NOT_READY"] * 2
    ok(driver.cuStreamSynchronize(third))
    assert code(driver.cuEventSynchronize(behind)) == "LAUNCH_TIMEOUT"


def test_deferred_work_is_done_when_it_is_waited_for(gpu):
    gpu.configure("deferred=1")
    stream, event = ok(driver.cuStreamCreate(1)), ok(driver.cuEventCreate(2))
    address, function = ok(driver.cuMemAlloc(NUM_BYTES)), ok(driver.cuModuleGetFunction(load(), b"add"))
    source, result = pinned(np.zeros(100, np.uint32)), pinned(np.zeros(100, np.uint32))
    ok(driver.cuMemcpyHtoDAsync(address, source.ctypes.data, NUM_BYTES, stream))
    ok(launch(function, address, value=5, stream=stream))
    ok(driver.cuMemcpyDtoHAsync(result.ctypes.data, address, NUM_BYTES, stream))
    ok(driver.cuEventRecord(event, stream))
    source[:] = 1  # too early: the copy has not read it yet
    assert code(driver.cuEventQuery(event)) == "NOT_READY"
    assert (result == 0).all()
    ok(driver.cuEventSynchronize(event))
    np.testing.assert_array_equal(result, 6 + np.arange(100))
    ok(driver.cuEventQuery(event))


def test_a_module_that_is_unloaded_before_its_kernel_ran_is_a_failure(gpu):
    gpu.configure("deferred=1")
    stream, address, module = ok(driver.cuStreamCreate(1)), ok(driver.cuMemAlloc(NUM_BYTES)), load()
    ok(launch(ok(driver.cuModuleGetFunction(module, b"add")), address, stream=stream))
    ok(driver.cuModuleUnload(module))
    assert code(driver.cuStreamSynchronize(stream)) == "LAUNCH_FAILED"


@pytest.mark.parametrize("waits", [False, True])
def test_a_deferred_stream_sees_another_ones_work_only_if_it_waits_for_it(gpu, waits):
    gpu.configure("deferred=1")
    first, second, event = ok(driver.cuStreamCreate(1)), ok(driver.cuStreamCreate(1)), ok(driver.cuEventCreate(2))
    address, result = ok(driver.cuMemAlloc(NUM_BYTES)), pinned(np.zeros(100, np.uint32))
    ok(driver.cuMemsetD8(address, 0, NUM_BYTES))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuMemsetD32Async(address, 9, 100, first))
    ok(driver.cuEventRecord(event, first))
    if waits:
        ok(driver.cuStreamWaitEvent(second, event, 0))
    ok(driver.cuMemcpyDtoHAsync(result.ctypes.data, address, NUM_BYTES, second))
    ok(driver.cuStreamSynchronize(second))
    assert (result == (9 if waits else 0)).all()


def test_what_is_left_when_a_context_ends_is_counted(gpu):
    ok(driver.cuMemAlloc(4))
    kept, module = ok(driver.cuStreamCreate(0)), load()
    ok(driver.cuModuleUnload(module))
    ok(driver.cuEventDestroy(ok(driver.cuEventCreate(0))))
    expected = {"streams": 1, "events": 0, "modules": 0, "device memory": 1, "host memory": 0}
    assert gpu.alive() == expected
    ok(driver.cuDevicePrimaryCtxRelease(0))
    assert gpu.leaked() == expected
    assert not any(gpu.alive().values())
    assert code(driver.cuStreamSynchronize(kept)) == "INVALID_CONTEXT"


SCRIPT = """
from cuda.bindings import driver
assert driver.cuInit(0)[0].name == "CUDA_SUCCESS"
print(driver.cuDriverGetVersion()[1], driver.cuDeviceGetCount()[1])
print(driver.cuDevicePrimaryCtxRetain(0)[0].name, driver.cuDevicePrimaryCtxRetain(0)[0].name)
try:
    driver.cuEventElapsedTime(driver.CUevent(), driver.CUevent())
except RuntimeError as error:
    print(error)
"""


def test_a_process_of_its_own_has_the_options_of_its_environment(run_emulated):
    done = run_emulated(script=SCRIPT, options="driver=12040,devices=3,fault=retain:2:2")
    assert done.returncode == 0, done.stderr
    # An old driver lacks what came later: this function's present form is of CUDA 12.8.
    assert done.stdout.split("\n")[:3] == [
        "12040 3",
        "CUDA_SUCCESS CUDA_ERROR_OUT_OF_MEMORY",
        'Function "cuEventElapsedTime_v2" not found',
    ]
    assert run_emulated(script=SCRIPT, options="colour=red").returncode != 0
