"""PTX Inject from annotated PTX to PTX with a stub: y = x + y, then z = x + y.

    python inject.py INPUT.ptx OUTPUT.ptx

INPUT.ptx is the PTX of ../cuda/inject.cu. Prints ../expected/inject.txt.
"""

import sys
from pathlib import Path

from evo.ptx_inject import PTXInject

if len(sys.argv) != 3:
    sys.exit(f"usage: {sys.argv[0]} INPUT.ptx OUTPUT.ptx")
source, output = map(Path, sys.argv[1:])
inject = PTXInject(source.read_text())

# Contents of the PTX.
func = inject["func"]
print(f"func: sites {func.num_sites}")
for name, variable in func.items():
    print(f"{variable.mutability} {variable.data_type} {name} in %{variable.register}")

# A stub over the registers that the variables are in: the same at all sites of a name.
x, y, z = (func[name].register for name in "xyz")
stub = f"\tadd.ftz.f32 %{y}, %{x}, %{y};\n\tadd.ftz.f32 %{z}, %{x}, %{y};"
print(stub)

# One stub for each name.
output.write_text(inject.render({"func": stub}))
