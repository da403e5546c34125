"""Your own types from end to end: z = popcount(x & y) * w, where y is a mask and w a weight.

    python custom_types.py INPUT.ptx OUTPUT.ptx

INPUT.ptx is the PTX of ../cuda/custom_types.cu after `ptxinject --types ../custom_types/data_types.json`. Each type of PTX
Inject has its own stack here, so that a program can never add a mask to a number. Prints ../expected/custom_types.txt.
"""

import sys
from pathlib import Path

from evo import stack_ptx
from evo.ptx_inject import PTXInject
from evo.ptx_inject.types import load_types

TYPES = Path(__file__).parent.parent / "custom_types"
words = stack_ptx.Words(TYPES / "instructions.json")
I = words.instructions

if len(sys.argv) != 3:
    sys.exit(f"usage: {sys.argv[0]} INPUT.ptx OUTPUT.ptx")
source, output = map(Path, sys.argv[1:])
inject = PTXInject(source.read_text(), load_types(TYPES / "data_types.json"))

# The stack of a data type: both have the same name, here in lower case, there in upper case.
func = inject["func"]
r = words.registers({variable.register: variable.data_type for variable in func.values()})
for name, variable in func.items():
    print(f"{variable.data_type} {name} in %{variable.register}")

w, x, y, z = (r[func[name].register] for name in "wxyz")
program = [y, x, I.apply_mask, I.popc_b32, I.cvt_rn_f32_u32, w, I.weight_to_f32, I.mul_f32]
stub = stack_ptx.Compiler(r, requests=[z]).compile(program)
print(stub)
output.write_text(inject.render({"func": stub}))
