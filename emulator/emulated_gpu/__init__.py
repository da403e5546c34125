"""A stand-in for a GPU and its driver, for tests where there is none.

- `ptx_*.py`: an emulator of PTX on NumPy, written from the PTX ISA and from nothing of evo, so that it can judge our kernels.
- `libcuda.c`, `driver.py`: a library that cuda.bindings.driver takes for the CUDA driver; kernels run in the emulator.
- `compiling.py`: nvPTXCompiler, with the PTX appended to its cubins; the stand-in runs it instead of the machine code.
- `fixtures.py`, `__main__.py`: how tests use it; `python -m emulated_gpu run CONFIG` is `evo run CONFIG` on it.

It does not model time (nothing overlaps; events tell when work was done, not how long a GPU would need), the machine code
(faults of the assembler go unseen), caches, registers and occupancy, races (threads go in step, but see `order` in
ptx_machine.py), and the bits of a GPU's approximate instructions. Work is done when it is submitted, or, with `deferred=1` in
EVO_EMULATED_GPU, when it is waited for. tests/gpu runs on the real thing.

Options, in the environment's EVO_EMULATED_GPU or by `StandIn.configure`, separated by commas:

    devices=0            number of devices (1)
    driver=12040         version of the driver (13000); functions that came later are missing
    capability=8.6       of all devices (9.0); cubins for others are refused, PTX for later ones
    processors=4         multiprocessors (132)
    total_memory=1000000 bytes of a device (80 GiB)
    deferred=1           streams keep their work until something waits for it
    fault=launch:5:719   the fifth launch fails with 719, and, as that error is of the kind that stays, all later calls;
    fault=load:2:200     the second load fails, once; launch:5:700:late the error is found by the next call that waits.
                         launch:2:600: the second kernel never ends; waiting for it fails with 702, queries say NOT_READY.
                         launch:2:-11: the second launch kills the process with signal 11.
                         Calls: alloc attribute context copy device elapsed event_create event_destroy event_record free function
                         host_alloc host_free init launch load memory_info query release reset retain set stream_create
                         stream_destroy stream_wait synchronize unload

A kernel that takes more steps than EVO_EMULATED_GPU_MAX_STEPS (1,000,000) counts as endless, and fails with 702.

A program at fault, rather than a call, is made by its text: EVO_EMULATED_GPU_FATAL, or `StandIn.fatal_text`.

Approximate instructions are as exact as libm's. With EVO_EMULATED_GPU_ERRORS in the environment they have the largest errors that
the PTX ISA documents: `up`, `down`, or `mixed`, by the bits of the operands.

It models no time, so EVO_EMULATED_GPU_COSTS says what a calibration finds (evo.evaluate.calibration): seconds of a program on the
CPU and on the GPU, such as `1e-3,1e-4`. Without it they are measured, and the stand-in is the slower one.

The stand-in counts as a GPU that passes its self-test (evo.evaluate.cuda.self_test). With EVO_EMULATED_GPU_SELF_TEST in the
environment, the test's process really runs, on a stand-in with these options instead of those above. Then there are also

    EVO_EMULATED_GPU_SELF_TEST_WRONG     an opcode such as `sub.ftz.f32`; its results have a wrong bit in the test's process,
                                         or, as `sub.ftz.f32@interpret`, in kernels of this name there
    EVO_EMULATED_GPU_SELF_TEST_SECONDS   the test's time limit
    EVO_EMULATED_GPU_SELF_TEST_LOG       a file to which each of the test's processes adds a line
"""
