"""All steps in one file: CUDA to annotated PTX, a program to a stub, both to PTX, and that to a cubin. Needs no GPU.

    python cuda_to_cubin.py OUTPUT.cubin

The kernel is ../cuda/simple.cu, the function z = sin(x) * y. Prints ../expected/cuda_to_cubin.txt, the stub.
"""

import sys
from pathlib import Path

from evo import stack_ptx
from evo.native import nvptxcompiler
from evo.ptx_inject import PTXInject

CUDA = Path(__file__).parent.parent / "cuda"
sys.path.insert(0, str(CUDA))

from nvrtc import compile_cuda  # noqa: E402 - in the folder above

if len(sys.argv) != 2:
    sys.exit(f"usage: {sys.argv[0]} OUTPUT.cubin")

# Once: seconds for kernels with many templates.
inject = PTXInject(compile_cuda((CUDA / "simple.cu").read_text(), "compute_80"))

# For each program: microseconds for the stub and the PTX, milliseconds for the cubin.
func = inject["func"]
words = stack_ptx.Words()
I = words.instructions
r = words.registers({variable.register: "f32" for variable in func.values()})
x, y, z = (r[func[name].register] for name in "xyz")
stub = stack_ptx.Compiler(r, requests=[z]).compile([y, x, I.sin_approx_ftz_f32, I.mul_ftz_f32])
print(stub)
cubin = nvptxcompiler.compile(inject.render({"func": stub}), ["--gpu-name=sm_90"])

# cuModuleLoadData of the driver loads it as it is.
Path(sys.argv[1]).write_bytes(cubin)
