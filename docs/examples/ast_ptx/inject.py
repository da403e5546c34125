"""An expression into a kernel, without a GPU: CUDA to annotated PTX, AST PTX to a stub, both to PTX, and that to a cubin.

    python inject.py OUTPUT.cubin

The kernel is ../cuda/simple.cu, the function z = x * y + 1. Prints inject.txt, the stub over the registers of the site.
"""

import sys
from pathlib import Path

from evo.ast_ptx import AstPTX, I
from evo.native import nvptxcompiler
from evo.ptx_inject import PTXInject

CUDA = Path(__file__).parent.parent / "cuda"
sys.path.insert(0, str(CUDA))

from nvrtc import compile_cuda  # noqa: E402 - in the folder above

if len(sys.argv) != 2:
    sys.exit(f"usage: {sys.argv[0]} OUTPUT.cubin")

inject = PTXInject(compile_cuda((CUDA / "simple.cu").read_text(), "compute_80"))
x, y, z = (inject["func"][name].register for name in "xyz")

ast = AstPTX(inputs=[x, y], output=z)
r = ast.registers
stub = ast.compile([r[x], r[y], I.mul_ftz_f32, 1.0, I.add_ftz_f32])
print(stub)

# cuModuleLoadData of the driver loads it as it is.
Path(sys.argv[1]).write_bytes(nvptxcompiler.compile(inject.render({"func": stub}), ["--gpu-name=sm_90"]))
