"""Stack PTX and PTX Inject together: two names, each with a stub made from a program.

    python two_sites.py INPUT.ptx OUTPUT.ptx

INPUT.ptx is the PTX of ../cuda/two_sites.cu. Prints ../expected/two_sites.txt.
"""

import sys
from pathlib import Path

from evo import stack_ptx
from evo.ptx_inject import PTXInject

words = stack_ptx.Words()
I = words.instructions

if len(sys.argv) != 3:
    sys.exit(f"usage: {sys.argv[0]} INPUT.ptx OUTPUT.ptx")
source, output = map(Path, sys.argv[1:])
inject = PTXInject(source.read_text())

# Both sites have the variables x and y; each program writes y.
PROGRAMS = {
    "start": lambda v: [1.0, v["x"], I.add_ftz_f32],  # y = x + 1
    "step": lambda v: [1.0, v["x"], v["y"], I.fma_rn_ftz_f32],  # y = y * x + 1
}

stubs = {}
for name, program in PROGRAMS.items():
    sites = inject[name]
    r = words.registers({variable.register: "f32" for variable in sites.values()})
    v = {variable: r[sites[variable].register] for variable in sites}
    stubs[name] = stack_ptx.Compiler(r, requests=[v["y"]]).compile(program(v))
    print(f"{name}: sites {sites.num_sites}")
    print(stubs[name])
output.write_text(inject.render(stubs))
