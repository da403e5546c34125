"""What the pointwise kernel reads and writes, thread by thread, by an interpreter of the few PTX instructions that it is made of.

It stands in for a GPU: the launch contract is worked out from the module's docstring, not from the kernel.
"""

import re
from itertools import product

import pytest

from evo.instructions import shipped_instruction_set
from evo.kernel.pointwise import annotated_ptx, kernel_name, site_variables
from evo.language.program import Language
from evo.native.ptx_inject import AnnotatedPtx

LANGUAGE = Language(
    shipped_instruction_set("default"),
    (("n", "u32"), ("m", "u32"), ("both", "u32")),
    (("y", "u32"), ("both", "u32"), ("z", "u32")),
)
BITS = {"u16": 16, "u32": 32, "u64": 64}
BASES = {"n": 0x7_0000_1000, "m": 0x7_0000_2000, "both": 0x7_0000_3000}
OUTPUTS = 0xFFFF_FF00  # the outputs cross the border of 32 bits


def stub(site: int) -> str:
    """y = n + 1000 (site + 1), both += m + site, z = m."""
    register = {variable.name: f"%{variable.register}" for variable in site_variables(LANGUAGE)}
    return "\n".join(
        [
            f"add.u32 {register['y']}, {register['n']}, {1000 * (site + 1)};",
            f"mov.u32 {register['z']}, {register['m']};",
            f"add.u32 {register['both']}, {register['both']}, {register['m']};",
            f"add.u32 {register['both']}, {register['both']}, {site};",
        ]
    )


def instructions_of(ptx: str, kernel: str) -> tuple[list[str], list[str], dict[str, list[str]]]:
    """Parameters, lines of the body, and targets of each table of branches."""
    head, _, rest = ptx.partition(f".visible .entry {kernel}(")[2].partition(")")
    body = rest.partition(".visible")[0]
    lines = [line.strip() for line in re.sub(r"//.*", "", body).splitlines() if line.strip() not in ("", "{", "}")]
    tables = {m[1]: m[2].split(", ") for m in (re.fullmatch(r"(\$\w+): \.branchtargets (.*);", line) for line in lines) if m}
    return re.findall(r"\.param \.\w+ (\w+)", head), [line for line in lines if ".branchtargets" not in line], tables


def run_thread(kernel, params: dict[str, int], special: dict[str, int], memory: dict[int, int], written: dict[int, int]) -> None:
    """Runs one thread; `written` gets what it stores, and no address twice."""
    _, lines, tables = kernel
    values, at = dict(special), 0

    def value(operand: str) -> int:
        return values[operand] if operand.startswith("%") else int(operand)

    while True:
        line = lines[at].rstrip(";")
        at += 1
        if line.startswith(".reg") or line.endswith(":"):
            continue
        guard, line = re.fullmatch(r"(?:@(%\w+) )?(.*)", line).groups()
        if guard and not values[guard]:
            continue
        name, _, operands = line.partition(" ")
        operation, *modifiers = name.split(".")
        target, *sources = [operand.strip("[] ") for operand in operands.split(",")]
        if name == "ret":
            return
        if operation in ("bra", "brx"):
            at = lines.index((tables[sources[0]][value(target)] if operation == "brx" else target) + ":")
            continue
        mask = 2 ** BITS[modifiers[-1]] - 1
        if name.startswith("ld.param"):
            values[target] = params[sources[0]]
        elif name.startswith("ld.global"):
            values[target] = memory[value(sources[0])]
        elif name.startswith("st.global"):
            address = value(target)
            assert address not in written, f"{address:#x} is written twice"
            written[address] = value(sources[0])
        elif name == "setp.ge.u32":
            values[target] = value(sources[0]) >= value(sources[1])
        elif operation in ("mov", "cvta", "cvt"):
            values[target] = value(sources[0])
        elif operation == "add":
            values[target] = (value(sources[0]) + value(sources[1])) & mask
        else:
            assert operation in ("mul", "mad"), f"the interpreter does not know {name}"
            result = value(sources[0]) * value(sources[1])
            if modifiers[0] == "wide":
                mask = 2**64 - 1
            values[target] = (result + (value(sources[2]) if operation == "mad" else 0)) & mask


@pytest.mark.parametrize(("num_points", "num_blocks", "block_size"), [(11, 2, 4), (8, 2, 4), (1, 1, 1), (5, 3, 4), (100, 2, 3)])
def test_every_site_reads_only_its_point_and_writes_only_its_place(num_points, num_blocks, block_size):
    sizes = (3, 1, 2)
    ptx = AnnotatedPtx(annotated_ptx(LANGUAGE, sizes, "sm_90")).render([stub(site) for site in range(sum(sizes))]).decode()
    strides = {"n": 4, "m": 0, "both": 4}
    memory = {BASES[name] + strides[name] * i: 7 * i + len(name) for name in BASES for i in range(num_points)}
    first_site = 0
    for k, num_sites in enumerate(sizes):
        kernel = instructions_of(ptx, kernel_name(k))
        arguments = [*BASES.values(), OUTPUTS, *strides.values(), num_points]
        params = dict(zip(kernel[0], arguments, strict=True))
        written: dict[int, int] = {}
        for site, block, thread in product(range(num_sites), range(num_blocks), range(block_size)):
            special = {"%tid.x": thread, "%ctaid.x": block, "%ctaid.y": site, "%ntid.x": block_size, "%nctaid.x": num_blocks}
            run_thread(kernel, params, special, memory, written)
        expected = {}
        for site, point in product(range(num_sites), range(num_points)):
            n, m, both = (memory[BASES[name] + strides[name] * point] for name in BASES)
            number = first_site + site
            results = [n + 1000 * (number + 1), both + m + number, m]
            for output, result in enumerate(results):
                expected[OUTPUTS + 4 * ((site * len(results) + output) * num_points + point)] = result
        assert written == expected
        first_site += num_sites
