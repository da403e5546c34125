"""`evo_program` as an interpreter, for a task's own kernel whose programs are not compiled.

Owns its CUDA text, which stands in evo.cuh (`evo.kernel.cuda_header`) in place of the sites. It takes the steps that the kernel
of `evo.kernel.interpreter` takes, with the same cases and so the same bits, but for one point of a thread: threads may call it
where others do not. A vector of shared memory has a value for each thread of the block. Launch contract, beside the kernel's own:

    grid     y: the number of programs
    block    `Layout` vectors of VECTOR_BYTES each as dynamic shared memory
    CODE     a u64 in global memory: the address of the numbers of the programs' first words, u32 each, padded to a multiple of
             TABLE_ALIGNMENT bytes, and of the device code behind them, with at least one word after the last program's
"""

from collections.abc import Sequence

from evo.kernel.interpreter_cases import Cases, Threads
from evo.kernel.interpreter_layout import Layout

CODE = "evo_code"
TABLE_ALIGNMENT = 256

_THREADS = Threads(1, 10, are_together=False)
VECTOR_BYTES = 1 << _THREADS.vector_bits

_REGISTERS = """
.reg .pred %p0, %p1, %p2;
.reg .u32 %mine;
.reg .u64 %at;
.reg .b32 %word, %extra, %case, %target, %from, %a0, %x0, %y0, %z0;
mov.u64 %at, {0};
mov.u32 %mine, {1};"""


def shared_bytes(layout: Layout) -> int:
    """Dynamic shared memory of a block."""
    return layout.num_vectors * VECTOR_BYTES


def program_text(layout: Layout, cases: Cases, inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """The lines of CUDA that define evo_program. inputs, outputs: their C++ types, in the language's order."""
    body = [*_REGISTERS.format("\1", "\2").splitlines()[1:], *cases.text(_THREADS), "$program_end:"]
    text = ["{", *body, "}"]
    lines = [f'extern "C" {{ __device__ const char* {CODE}; }}', "extern __shared__ unsigned int evo_vectors[];"]
    lines += ["static __device__ __noinline__ void evo_run(const char* steps, unsigned int mine) {", "    asm volatile("]
    lines += [f'        "{line.replace("%", "%%").translate({1: "%0", 2: "%1"})}\\n"' for line in text]
    lines += ['        : : "l"(steps), "r"(mine) : "memory");', "}"]
    parameters = [f"{name} in_{i}" for i, name in enumerate(inputs)] + [f"{name}& out_{i}" for i, name in enumerate(outputs)]
    lines += [f"static __device__ __forceinline__ void evo_program(unsigned int site, {', '.join(parameters)}) {{"]
    lines += ["    unsigned int* mine = evo_vectors + threadIdx.x;"]
    for i, name in enumerate(inputs):
        lines += [f"    mine[{i} * EVO_BLOCK_SIZE] = {f'__float_as_uint(in_{i})' if name == 'float' else f'in_{i}'};"]
    lines += [f"    const unsigned int table = (4 * gridDim.y + {TABLE_ALIGNMENT - 1}) / {TABLE_ALIGNMENT} * {TABLE_ALIGNMENT};"]
    lines += [f"    const unsigned int first = __ldg(reinterpret_cast<const unsigned int*>({CODE}) + site);"]
    lines += [f"    evo_run({CODE} + table + 4ull * first, static_cast<unsigned int>(__cvta_generic_to_shared(mine)));"]
    for i, name in enumerate(outputs):
        value = f"mine[{layout.first_output + i} * EVO_BLOCK_SIZE]"
        lines += [f"    out_{i} = {f'__uint_as_float({value})' if name == 'float' else value};"]
    return [*lines, "}"]
