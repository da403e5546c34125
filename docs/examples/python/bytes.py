"""Four u8 in one register: sum = 1st + 2nd + 3rd + 4th byte of `packed`, counted from the lowest.

PTX cannot add bytes, so each is converted to u32 first. Prints ../expected/bytes.txt.
"""

from evo import stack_ptx

words = stack_ptx.Words()
I = words.instructions
r = words.registers(packed="u32", sum="u32")
compiler = stack_ptx.Compiler(r, requests=[r.sum])

add_next = [I.cvt_u32_u8, I.add_u32]
print(compiler.compile([r.packed, I.u32_to_v4_u8, I.cvt_u32_u8, *add_next, *add_next, *add_next]))
