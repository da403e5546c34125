"""A tensor core instruction: d = a * b + c on the tiles that a warp holds: 16x4, 4x8 and 16x8 elements.

Its operands are vectors of 2, 1 and 4 registers, and so is its result; elements are popped in order, the first
from the top. The factors are rounded to tf32, which has its own stack. Prints ../expected/mma.txt.
"""

from evo import stack_ptx

words = stack_ptx.Words()
I = words.instructions
r = words.registers(dict.fromkeys(["a0", "a1", "b", "c0", "c1", "c2", "c3", "d0", "d1", "d2", "d3"], "f32"))
compiler = stack_ptx.Compiler(r, requests=[r.d0, r.d1, r.d2, r.d3])

# On the tf32 stack, bottom to top: b a1 a0.
factors = [r.b, I.cvt_rna_tf32_f32, r.a1, I.cvt_rna_tf32_f32, r.a0, I.cvt_rna_tf32_f32]
sums = [r.c3, r.c2, r.c1, r.c0]
print(compiler.compile([*factors, *sums, I.mma_sync_aligned_m16n8k4_row_col_f32_tf32_tf32_f32]))
