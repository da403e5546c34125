"""The pointwise kernel: evaluates many programs at many points, independently of each other.

Owns the annotated PTX of this kernel. It is generated where it is needed, in half a millisecond, without a CUDA compiler. A file
could not hold it: parameters and registers depend on the task's inputs and outputs, and the number of sites on the pack.

A module holds kernels `pack_0`, `pack_1`, ...; a kernel holds sites, one for each of its programs. Launch contract:

    grid     x: any number of blocks; they stride over the points    y: exactly the kernel's number of sites
    block    x: any number of threads
    params   one u64 an input: address of its values, 4 bytes each
             u64: address of the outputs of the kernel's first program
             one u32 an input: bytes from a point to the next, 4, or 0 for an input that is the same at all points
             u32: number of points; with the number of threads of a grid row added it must stay below 2**32

Outputs are 4 bytes each, `(num_sites, num_outputs, num_points)`; they must not overlap the inputs. Neighbouring threads have
neighbouring points, so loads and stores coalesce. The sites share loads, bounds and stores: a switch on the block's y,
the same for all threads of a block, chooses the site. This is the layout that compiles fastest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from evo.language.program import Language
from evo.native.stack_ptx import Lowering

# Part of every cubin's cache key. Change it with the kernel's text.
TEMPLATE = "pointwise-1"

# The PTX version of CUDA 13.0, which the build pins; it covers every target of its assembler.
PTX_VERSION = "9.0"

# Register types that can be loaded from and stored to 4 bytes of memory.
_WORD_TYPES = ("f32", "u32", "s32", "b32")


@dataclass(frozen=True)
class SiteVariable:
    """A variable of every site. register: without the percent sign; kind: `m` (read and written), `o` or `i`."""

    name: str
    register: str
    kind: str
    register_type: str
    data_type: str


def site_variables(language: Language) -> tuple[SiteVariable, ...]:
    """The variables of a site, in the order mod, out, in. Raises ValueError: an input or output is not a value of 4 bytes."""
    inputs = [name for name, _ in language.inputs]
    outputs = [name for name, _ in language.outputs]
    stacks = {name: language.instruction_set.stacks[stack_idx] for name, stack_idx in language.registers}
    for name, stack in stacks.items():
        if stack.literal_prefix not in _WORD_TYPES:
            known = ", ".join(_WORD_TYPES)
            raise ValueError(
                f"'{name}' is {stack.name} (.{stack.literal_prefix}), but a kernel's inputs and outputs are .{known}"
            )
    ordered = [(name, "m") for name in inputs if name in outputs]
    ordered += [(name, "o") for name in dict.fromkeys(outputs) if name not in inputs]
    ordered += [(name, "i") for name in inputs if name not in outputs]
    return tuple(
        SiteVariable(name, f"_x{i}", kind, stacks[name].literal_prefix, stacks[name].name)
        for i, (name, kind) in enumerate(ordered)
    )


def site_lowering(language: Language) -> Lowering:
    """The lowering that emits stubs over the registers of a site. Its hashes equal those of the language's own lowering."""
    registers = {variable.name: variable.register for variable in site_variables(language)}
    named = [(registers[name], stack_idx) for name, stack_idx in language.registers]
    folding = language.lowering.folding
    return Lowering(language.instruction_set, named, language.requests, language.limits, (), folding, language.template)


def annotated_ptx(language: Language, kernel_sizes: Sequence[int], target: str) -> str:
    """A module of kernels whose sites are named `site_0`, `site_1`, ... through all of them.

    Args:
        kernel_sizes: number of sites of each kernel.
        target: a GPU architecture such as `sm_90`.
    """
    variables = site_variables(language)
    lines = [f".version {PTX_VERSION}", f".target {target}", ".address_size 64"]
    first_site = 0
    for kernel_idx, num_sites in enumerate(kernel_sizes):
        lines += _kernel(language, variables, kernel_idx, first_site, num_sites)
        first_site += num_sites
    return "\n".join(lines) + "\n"


def kernel_name(kernel_idx: int) -> str:
    """The name of a module's kernel."""
    return f"pack_{kernel_idx}"


def _kernel(
    language: Language, variables: tuple[SiteVariable, ...], kernel_idx: int, first_site: int, num_sites: int
) -> list[str]:
    type_of = {variable.name: variable.register_type for variable in variables}
    inputs = [name for name, _ in language.inputs]
    outputs = [name for name, _ in language.outputs]
    num_inputs, num_outputs = len(inputs), len(outputs)
    params = [f".param .u64 input_{i}" for i in range(num_inputs)] + [".param .u64 outputs"]
    params += [f".param .u32 stride_{i}" for i in range(num_inputs)] + [".param .u32 num_points"]
    sites = range(first_site, first_site + num_sites)

    lines = [f".visible .entry {kernel_name(kernel_idx)}(", ",\n".join(params), ")", "{"]
    lines += [".reg .pred %past_end;", ".reg .u32 %site, %point, %step, %num_points, %block, %block_size;"]
    lines += [".reg .u64 %outputs, %out_address, %in_address, %plane_bytes, %offset;"]
    lines += [f".reg .u64 %input_{i};\n.reg .u32 %stride_{i};\n.reg .{type_of[name]} %in_{i};" for i, name in enumerate(inputs)]
    lines += [f".reg .{type_of[name]} %out_{i};" for i, name in enumerate(outputs)]
    for i in range(num_inputs):
        lines += [f"ld.param.u64 %input_{i}, [input_{i}];", f"cvta.to.global.u64 %input_{i}, %input_{i};"]
        lines += [f"ld.param.u32 %stride_{i}, [stride_{i}];"]
    lines += [
        "ld.param.u64 %outputs, [outputs];",
        "cvta.to.global.u64 %outputs, %outputs;",
        "ld.param.u32 %num_points, [num_points];",
    ]
    # point = block * block_size + thread; step = number of threads along x; outputs += site * num_outputs * num_points * 4
    lines += ["mov.u32 %block, %ctaid.x;", "mov.u32 %block_size, %ntid.x;", "mov.u32 %point, %tid.x;"]
    lines += ["mad.lo.u32 %point, %block, %block_size, %point;"]
    lines += ["mov.u32 %step, %nctaid.x;", "mul.lo.u32 %step, %step, %block_size;", "mov.u32 %site, %ctaid.y;"]
    lines += ["mul.wide.u32 %plane_bytes, %num_points, 4;", "cvt.u64.u32 %offset, %site;"]
    lines += [f"mul.lo.u64 %offset, %offset, {num_outputs};", "mad.lo.u64 %outputs, %offset, %plane_bytes, %outputs;"]
    labels = ", ".join(f"$site_{site}" for site in sites)
    lines += [f"$sites_{kernel_idx}: .branchtargets {labels};"]

    lines += [f"$loop_{kernel_idx}:", "setp.ge.u32 %past_end, %point, %num_points;", f"@%past_end bra $end_{kernel_idx};"]
    for i, name in enumerate(inputs):
        lines += [f"mad.wide.u32 %in_address, %point, %stride_{i}, %input_{i};"]
        lines += [f"ld.global.nc.{type_of[name]} %in_{i}, [%in_address];"]
    lines += [f"brx.idx.uni %site, $sites_{kernel_idx};"]
    for site in sites:
        lines += [f"$site_{site}:", *site_lines(variables, inputs, outputs, site), f"bra.uni $join_{kernel_idx};"]
    lines += [f"$join_{kernel_idx}:", "mad.wide.u32 %out_address, %point, 4, %outputs;"]
    for i, name in enumerate(outputs):
        lines += [f"st.global.{type_of[name]} [%out_address], %out_{i};"]
        lines += ["add.u64 %out_address, %out_address, %plane_bytes;"] if i + 1 < num_outputs else []
    lines += ["add.u32 %point, %point, %step;", f"bra.uni $loop_{kernel_idx};", f"$end_{kernel_idx}:", "ret;", "}"]
    return lines


def site_lines(variables: tuple[SiteVariable, ...], inputs: list[str], outputs: list[str], site: int) -> list[str]:
    """A site's own registers, filled before its markers and read after them; ptx_inject.h describes the marker format."""
    lines = ["{"]
    for variable in variables:
        lines.append(f".reg .{variable.register_type} %{variable.register};")
        if variable.kind != "o":
            lines.append(f"mov.{variable.register_type} %{variable.register}, %in_{inputs.index(variable.name)};")
    lines.append(f"// PTX_INJECT_START site_{site}")
    lines += [f"// {v.register} {v.kind} {v.register_type} {v.data_type} {v.name}" for v in variables]
    lines.append("// PTX_INJECT_END")
    registers = {variable.name: variable.register for variable in variables}
    types = {variable.name: variable.register_type for variable in variables}
    lines += [f"mov.{types[name]} %out_{i}, %{registers[name]};" for i, name in enumerate(outputs)]
    return [*lines, "}"]
