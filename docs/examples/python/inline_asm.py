"""A stub in CUDA's own inline assembly, without PTX Inject: for generators of CUDA that give each program its own kernel.

The function is z = x * y + 1. Prints ../expected/inline_asm.txt, the CUDA.
"""

from evo import stack_ptx

words = stack_ptx.Words()
I = words.instructions
r = words.registers(x="f32", y="f32", z="f32")
compiler = stack_ptx.Compiler(r, requests=[r.z])
stub = compiler.compile([r.x, r.y, I.mul_ftz_f32, 1.0, I.add_ftz_f32])

# The registers of the stub are declared around it. Inline assembly writes a percent sign of PTX twice.
INPUTS, OUTPUTS = ("x", "y"), ("z",)
lines = ["{"]
lines += [f".reg .f32 %%{name};" for name in (*OUTPUTS, *INPUTS)]
lines += [f"mov.f32 %%{name}, %{i};" for i, name in enumerate(INPUTS, start=len(OUTPUTS))]
lines += stub.replace("%", "%%").splitlines()
lines += [f"mov.f32 %{i}, %%{name};" for i, name in enumerate(OUTPUTS)]
lines += ["}"]
text = "\n".join(f'        "{line}\\n\\t"' for line in lines)

print(f"""\
extern "C" __global__ void kernel(const float* xs, const float* ys, float* out) {{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = xs[i];
    float y = ys[i];
    float z;
    asm(
{text}
        : "=f"(z)
        : "f"(x), "f"(y)
    );
    out[i] = z;
}}""")
