"""Kernels that run programs in a loop: a thread carries the states of its trajectories in registers from step to step.

Owns the PTX around the programs, for both lanes, and the kernel of the compiled one. A step has one stage, with rk4 four; a stage
runs the program, then the field, which says how states change, then the integrator. All three stand in a kernel once. They do
what csrc/detail/rollout.h does, in the same order, so both lanes give the CPU's bits where instructions are exact. Launch
contract of `loop_template`; `evo.kernel.interpreter` has the other one:

    grid     x: enough blocks for the trajectories    y: the number of programs
    params   one u64 a column: address of its values, 4 bytes each, of a shape as `Loop.columns` says; of states the beginnings
             u64: address of the times of a step, the whole, a half and a sixth, f32, or of each step one after the other
             u64: address of the records, `(num_programs, num_states, num_records, num_trajectories)` of 4 bytes
             u32: num_trajectories; u32: num_steps; u32: record_every

What has ended is decided at records. Threads go on until their whole warp has ended, and then only count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evo.kernel.pointwise import PTX_VERSION, site_lines, site_lowering, site_variables
from evo.kernel.template import ENTRY, KernelTemplate, task_template
from evo.language.program import Language

COUNTS = (".param .u32 num_steps", ".param .u32 record_every")


@dataclass(frozen=True)
class Loop:
    """Loop of a rollout: its repetitions, and the shape of the values it reads.

    language: of programs. field: reads the columns and then the programs' outputs, and gives how each state changes. words: the
    field's program. states: the column of each state. columns: for each whether it differs by step and by trajectory; the first
    ones are the programs' inputs. times_differ: by step.
    """

    language: Language
    field: Language
    words: NDArray[np.uint64]
    integrator: str
    states: tuple[int, ...]
    columns: tuple[tuple[bool, bool], ...]
    times_differ: bool

    def params(self) -> list[str]:
        """Declarations of the columns and times."""
        return [*(f".param .u64 column_{j}" for j in range(len(self.columns))), ".param .u64 times"]

    def value(self, column: int, point: int) -> str:
        """The register of a column at the thread's trajectory."""
        if column in self.states:
            return f"%{'stage' if self.integrator == 'rk4' else 'state'}{self.states.index(column)}_{point}"
        return f"%column{column}_{point if self.columns[column][1] else 0}"

    def registers(self, num_points: int) -> list[str]:
        """Declarations, for this many trajectories of a thread."""
        lines = [f".reg .pred %goes_on, %is_last, %is_there<{num_points}>, %is_alive<{num_points}>;"]
        lines += [".reg .u32 %step, %num_steps, %record_every, %countdown, %stage;"]
        lines += [".reg .u64 %row_bytes, %plane_bytes, %record, %plane, %times;", ".reg .b32 %time<3>, %bits;"]
        for i in range(len(self.states)):
            lines += [f".reg .b32 %{name}{i}_<{num_points}>;" for name in ("state", "stage", "change", "first", "middle")]
        lines += [f".reg .b32 %column{j}_<{num_points}>;\n.reg .u64 %at_column{j};" for j in range(len(self.columns))]
        return [*lines, *(f".reg .b32 %result{o}_<{num_points}>;" for o in range(len(self.language.outputs)))]

    def begin(self, num_points: int) -> list[str]:
        """From a program's start up to where its inputs are `value`s. %point is the thread's first trajectory, %left how many
        there are from there on, %num_points how many in all; %program is the program's number, %results where records begin.
        """
        points = range(num_points)
        lines = ["ld.param.u32 %num_steps, [num_steps];", "ld.param.u32 %record_every, [record_every];"]
        lines += ["div.u32 %step, %num_steps, %record_every;", "mul.wide.u32 %row_bytes, %num_points, 4;"]
        lines += ["cvt.u64.u32 %plane, %step;", "mul.lo.u64 %plane_bytes, %plane, %row_bytes;", "cvt.u64.u32 %plane, %program;"]
        lines += [f"mul.lo.u64 %plane, %plane, {len(self.states)};", "mad.lo.u64 %record, %plane, %plane_bytes, %results;"]
        lines += ["mad.wide.u32 %record, %point, 4, %record;", "mov.u32 %step, 0;", "mov.u32 %countdown, %record_every;"]
        lines += ["setp.eq.u32 %goes_on, %step, 0;"]
        lines += [f"setp.gt.u32 %{name}{k}, %left, {k};" for name in ("is_there", "is_alive") for k in points]
        for j, (by_step, by_trajectory) in enumerate(self.columns):
            lines += [f"ld.param.u64 %at_column{j}, [column_{j}];", f"cvta.to.global.u64 %at_column{j}, %at_column{j};"]
            lines += [f"mad.wide.u32 %at_column{j}, %point, 4, %at_column{j};"] if by_trajectory else []
            if j in self.states:
                lines += self._load(j, [f"%state{self.states.index(j)}_{k}" for k in points])
            elif not by_step:
                lines += self._load(j, list(dict.fromkeys(self.value(j, k) for k in points)))
        lines += ["ld.param.u64 %times, [times];", "cvta.to.global.u64 %times, %times;"]
        load_times = [f"ld.global.nc.b32 %time{i}, [%times+{4 * i}];" for i in range(3)]
        lines += [] if self.times_differ else load_times
        lines += ["$steps:", "@!%goes_on bra.uni $stepped;"]
        lines += [*load_times, "add.u64 %times, %times, 12;"] if self.times_differ else []
        for j, (by_step, by_trajectory) in enumerate(self.columns):
            if by_step:
                lines += self._load(j, list(dict.fromkeys(self.value(j, k) for k in points)))
                lines += [f"add.u64 %at_column{j}, %at_column{j}, {'%row_bytes' if by_trajectory else 4};"]
        if self.integrator == "rk4":
            lines += [f"mov.b32 %stage{i}_{k}, %state{i}_{k};" for i in range(len(self.states)) for k in points]
            lines += ["mov.u32 %stage, 0;", "$stages:"]
        return lines

    def _load(self, column: int, registers: Sequence[str]) -> list[str]:
        if not self.columns[column][1]:
            return [f"ld.global.nc.b32 {register}, [%at_column{column}];" for register in registers]
        lines = [f"mov.b32 {register}, 0;" for register in registers]
        return lines + [
            f"@%is_there{k} ld.global.nc.b32 {register}, [%at_column{column}+{4 * k}];" for k, register in enumerate(registers)
        ]

    def end(self, num_points: int) -> list[str]:
        """Lines from the program's outputs, in %result registers, to the end of its trajectories."""
        lines: list[str] = []
        for k in range(num_points):
            lines += self._field(k)
        lines += self._integrate(range(num_points))
        lines += ["$stepped:", "add.u32 %step, %step, 1;", "sub.u32 %countdown, %countdown, 1;"]
        lines += ["setp.ne.u32 %is_last, %countdown, 0;", "@%is_last bra.uni $recorded;", "mov.u32 %countdown, %record_every;"]
        stacks = [self.field.instruction_set.stacks[index].literal_prefix for _, index in self.field.registers]
        is_float = [stacks[column] == "f32" for column in self.states]
        for k in range(num_points):
            for i in [i for i, is_f32 in enumerate(is_float) if is_f32]:
                lines += [f"and.b32 %bits, %state{i}_{k}, 0x7f800000;"]
                lines += [f"setp.ne.and.u32 %is_alive{k}, %bits, 0x7f800000, %is_alive{k};"]
        lines += ["mov.u64 %plane, %record;", "add.u64 %record, %record, %row_bytes;"]
        for i, ended in enumerate("0x7fffffff" if is_f32 else "0" for is_f32 in is_float):
            for k in range(num_points):
                lines += [f"selp.b32 %bits, %state{i}_{k}, {ended}, %is_alive{k};"]
                lines += [f"@%is_there{k} st.global.b32 [%plane+{4 * k}], %bits;"]
            lines += ["add.u64 %plane, %plane, %plane_bytes;"]
        lines += ["mov.pred %goes_on, %is_alive0;", *(f"or.pred %goes_on, %goes_on, %is_alive{k};" for k in range(1, num_points))]
        lines += ["vote.sync.any.pred %goes_on, %goes_on, 0xffffffff;", "$recorded:"]
        return [*lines, "setp.lt.u32 %is_last, %step, %num_steps;", "@%is_last bra.uni $steps;"]

    def _field(self, point: int) -> list[str]:
        """Derivative of a trajectory's states."""
        columns = [name for name, _ in self.field.inputs[: len(self.columns)]]
        outputs = [name for name, _ in self.language.outputs]
        changes = [name for name, _ in self.field.outputs]
        lines, copies = ["{"], []
        for variable in site_variables(self.field):
            lines += [f".reg .{variable.register_type} %{variable.register};"]
            if variable.kind == "o":
                copies += [f"mov.b32 %change{changes.index(variable.name)}_{point}, %{variable.register};"]
            else:
                name = variable.name
                source = self.value(columns.index(name), point) if name in columns else f"%result{outputs.index(name)}_{point}"
                lines += [f"mov.b32 %{variable.register}, {source};"]
        return [*lines, *site_lowering(self.field).emit(self.words[None])[0].splitlines(), *copies, "}"]

    def _integrate(self, points: range) -> list[str]:
        """The states after the step; with rk4 those of the next stage until the last one."""
        pairs = [f"{i}_{k}" for i in range(len(self.states)) for k in points]
        if self.integrator == "map":
            return [f"mov.b32 %state{pair}, %change{pair};" for pair in pairs]
        if self.integrator == "euler":
            return [f"fma.rn.ftz.f32 %state{pair}, %change{pair}, %time0, %state{pair};" for pair in pairs]
        lines: list[str] = []
        stages = (
            ("mov.b32 %first{0}, %change{0};", 1),
            ("mov.b32 %middle{0}, %change{0};", 1),
            ("add.ftz.f32 %middle{0}, %middle{0}, %change{0};", 0),
        )
        for stage, (keep, time) in enumerate(stages):
            lines += [f"setp.ne.u32 %is_last, %stage, {stage};", f"@%is_last bra.uni $stage_{stage + 1};"]
            for pair in pairs:
                lines += [keep.format(pair), f"fma.rn.ftz.f32 %stage{pair}, %change{pair}, %time{time}, %state{pair};"]
            lines += ["add.u32 %stage, %stage, 1;", "bra.uni $stages;", f"$stage_{stage + 1}:"]
        for pair in pairs:
            lines += [f"add.ftz.f32 %first{pair}, %first{pair}, %change{pair};"]
            lines += [f"add.ftz.f32 %middle{pair}, %middle{pair}, %middle{pair};"]
            lines += [f"add.ftz.f32 %first{pair}, %first{pair}, %middle{pair};"]
            lines += [f"fma.rn.ftz.f32 %state{pair}, %first{pair}, %time2, %state{pair};"]
        return lines


def loop_template(loop: Loop, target: str, num_sites: int) -> KernelTemplate:
    """The kernel with sites for `num_sites` programs, chosen by the block's y.

    Args:
        target: a GPU architecture such as `sm_90`.
    """
    variables = site_variables(loop.language)
    type_of = {variable.name: variable.register_type for variable in variables}
    inputs, outputs = ([name for name, _ in pairs] for pairs in (loop.language.inputs, loop.language.outputs))
    params = [*loop.params(), ".param .u64 records", ".param .u32 num_trajectories", *COUNTS]
    lines = [f".version {PTX_VERSION}", f".target {target}", ".address_size 64"]
    lines += [f".visible .entry {ENTRY}(", ",\n".join(params), ")", "{", *loop.registers(1)]
    lines += [".reg .pred %is_point;", ".reg .u32 %program, %point, %left, %num_points, %size;", ".reg .u64 %results;"]
    lines += [f".reg .{type_of[name]} %in_{i};" for i, name in enumerate(inputs)]
    lines += [f".reg .{type_of[name]} %out_{i};" for i, name in enumerate(outputs)]
    lines += ["ld.param.u32 %num_points, [num_trajectories];", "ld.param.u64 %results, [records];"]
    lines += ["cvta.to.global.u64 %results, %results;", "mov.u32 %program, %ctaid.y;", "mov.u32 %left, %ctaid.x;"]
    lines += ["mov.u32 %size, %ntid.x;", "mov.u32 %point, %tid.x;", "mad.lo.u32 %point, %left, %size, %point;"]
    lines += ["sub.u32 %left, %num_points, %point;", "setp.lt.u32 %is_point, %point, %num_points;"]
    lines += ["selp.u32 %left, %left, 0, %is_point;"]
    lines += [f"$sites: .branchtargets {', '.join(f'$site_{site}' for site in range(num_sites))};", *loop.begin(1)]
    lines += [f"mov.b32 %in_{i}, {loop.value(i, 0)};" for i in range(len(inputs))]
    lines += ["brx.idx.uni %program, $sites;"]
    for site in range(num_sites):
        lines += [f"$site_{site}:", *site_lines(variables, inputs, outputs, site), "bra.uni $join;"]
    lines += ["$join:", *(f"mov.b32 %result{i}_0, %out_{i};" for i in range(len(outputs)))]
    return task_template(("\n".join([*lines, *loop.end(1), "ret;", "}"]) + "\n").encode(), num_sites)
