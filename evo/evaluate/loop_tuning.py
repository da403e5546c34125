"""Constants of programs that run in a loop, fitted to what is recorded of the states.

Owns the method: states' derivatives by each constant are carried beside the states, by the same integrator, which gives exactly
the derivatives of what it computes; and the normal equations. Knows nothing of which programs are worth it.
A result depends on program and task alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from evo.evaluate.least_squares import minimised
from evo.evaluate.loops import LoopRunner
from evo.evaluate.sampling import spread
from evo.language.dag import Builder, Dag, Node, dag_of
from evo.language.derivative import derived
from evo.language.program import Language, Limits, word
from evo.native.ptx_vm import VirtualMachine
from evo.native.rollout import rollouts
from evo.native.stack_ptx import NODE_DTYPE, NodeKind
from evo.native.stack_ptx_words import WordType
from evo.native.tune import MAX_PARAMETERS, OUTCOME_DTYPE, sums_of_products
from evo.task import Task
from evo.tasks.answers import ask

LEAST_GAIN, LEAST_PIVOT = 1e-6, 1e-9  # as in csrc/tune.h
_LIMITS = Limits(stack_size=4096, max_nodes=65536, store_size=4096, execution_limit=1 << 16)


@dataclass(frozen=True)
class _Model:
    """The error at some constants, `error - 2 step'gradient + step'matrix step`. weight: of the records that count."""

    at: Callable[[NDArray[np.float32]], _Model]
    constants: NDArray[np.float32]
    used: list[int]
    weight: float
    error: float
    gradient: NDArray[np.float64]
    matrix: NDArray[np.float64]

    def is_better(self, than: _Model) -> bool:
        """Implement `evo.evaluate.least_squares`."""
        return self.weight >= than.weight > 0.0 and self.error / self.weight < than.error / than.weight

    def is_last(self, before: _Model) -> bool:
        """Implement `evo.evaluate.least_squares`."""
        return before.error - self.error < LEAST_GAIN * before.error

    def damped(self, damping: float) -> tuple[_Model, float] | None:
        """Implement `evo.evaluate.least_squares`."""
        step, moved = self._step(damping), self.constants.copy()
        with np.errstate(over="ignore"):
            moved[self.used] += step  # in float64
        if not np.isfinite(moved).all() or (moved == self.constants).all():
            return None
        return self.at(moved), float(step @ (2.0 * self.gradient - self.matrix @ step))

    def _step(self, damping: float) -> NDArray[np.float64]:
        """Compute a step to the least error, with Marquardt's scaling. A constant that depends on others keeps its value."""
        diagonal = np.diag(self.matrix)
        scale = np.array([1.0 / np.sqrt(entry) if entry > 0.0 else 0.0 for entry in diagonal])
        rows = (scale[:, None] * self.matrix * scale + damping * np.eye(len(scale))).tolist()
        right = (scale * self.gradient).tolist()
        count = len(right)
        is_free = [scale[i] > 0.0 for i in range(count)]
        for i in range(count):  # without a library, whose bits would depend on the machine
            is_free[i] = is_free[i] and rows[i][i] > LEAST_PIVOT
            for j in range(i + 1, count) if is_free[i] else ():
                factor = rows[j][i] / rows[i][i]
                right[j] -= factor * right[i]
                for k in range(i, count):
                    rows[j][k] -= factor * rows[i][k]
        solution = [0.0] * count
        for i in reversed(range(count)):
            if is_free[i]:
                solution[i] = (right[i] - sum(rows[i][k] * solution[k] for k in range(i + 1, count))) / rows[i][i]
        return np.asarray(np.multiply(scale, solution))


class LoopTuner:
    """Tunes programs of a task with a rollout and targets. Threads may share it.

    Args:
        iterations: of Levenberg-Marquardt.
        max_points: most records to use, of whole trajectories; at least one.

    Attributes:
        num_points: records in use.

    Raises:
        UserError: the task's points, targets or weights are malformed, or raise.
    """

    def __init__(self, language: Language, task: Task, *, iterations: int, max_points: int):
        self._language, self._iterations, self._loop = language, iterations, LoopRunner(language, task)
        num_records = self._loop.num_records
        columns, width = self._loop.columns(ask(task, "points"), "points()")
        chosen = spread(width, max(1, max_points // num_records))
        self.num_points, self._width = num_records * len(chosen), len(chosen)
        self._columns = [column[..., chosen] if column.ndim and column.shape[-1] > 1 else column for column in columns]
        self._targets = self._loop.targets(width).reshape(-1, num_records, width)[..., chosen].astype(np.float64)
        weights = self._loop.weights(num_records * width)
        weights = np.ones(num_records * width, np.float32) if weights is None else weights
        self._weights = weights.reshape(num_records, width)[:, chosen].astype(np.float64)
        self._derived_as = Language(language.instruction_set, (), (("y", "f32"),), _LIMITS)
        self._machine = VirtualMachine(self._derived_as.lowering)  # of an empty program: fields have it all
        unsupported = VirtualMachine(language.lowering).unsupported
        self._unknown = {
            i for i, instruction in enumerate(language.instruction_set.instructions) if instruction.name in unsupported
        }
        self._field = dag_of(self._loop.field, self._loop.words, folding=False)

    def tune(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.void]]:
        """As `evo.native.tune.Tuner.tune`. Programs with instructions that have no CPU meaning stay as they are."""
        tuned, outcomes = np.array(words), np.zeros(len(words), OUTCOME_DTYPE)
        outcomes["error_before"] = outcomes["error_after"] = np.nan
        for row in range(len(words)):
            self._tune(tuned[row], outcomes[row : row + 1])
        return tuned, outcomes

    def _tune(self, words: NDArray[np.uint64], outcome: NDArray[np.void]) -> None:
        """Rewrites a program's constants in place."""
        program = dag_of(self._language, words, folding=False)
        if not self._unknown.isdisjoint(node.payload for node in program.nodes if node.kind == NodeKind.PTX):
            return
        derived = _Derived(self._loop, program, self._field, self._derived_as)
        if not derived.used:
            return
        bits = np.array([program.nodes[index].payload for index in derived.constants], np.uint32)
        first = self._model(derived, bits.view(np.float32).copy())
        last = minimised(first, self._iterations if first.weight > 0.0 else 0)
        new = last.constants.view(np.uint32)
        outcome["num_parameters"], outcome["num_evaluations"] = len(derived.used), derived.num_evaluations
        outcome["error_before"], outcome["error_after"] = first.error, last.error
        outcome["is_changed"] = (new != bits).any()
        stack, before = self._language.instruction_set.stack_index("f32"), words.copy()
        before[np.logical_or.accumulate((words & np.uint64(0xFFFF)) == WordType.RETURN)] = 0
        for old, replacement in zip(bits.tolist(), new.tolist(), strict=True):
            words[before == word(WordType.CONSTANT, stack, old)] = word(WordType.CONSTANT, stack, replacement)

    def _model(self, derived: _Derived, constants: NDArray[np.float32]) -> _Model:
        derived.num_evaluations += 1
        columns = [*self._columns, *map(np.array, constants), *[np.zeros((), np.float32)] * derived.num_carried]
        empty = np.full((1, 1), int(WordType.RETURN), np.uint64)
        records = rollouts(self._machine, empty, derived.loop, columns, self._width)[0].astype(np.float64)
        states, slopes = np.split(records, [len(self._targets)])
        with np.errstate(invalid="ignore"):
            errors = self._targets - states
        counts = np.isfinite(errors)
        weights = np.where(counts, self._weights, 0.0)
        slopes = slopes.reshape(len(states), -1, *errors.shape[1:]).swapaxes(0, 1)
        rows = np.concatenate([np.where(np.isfinite(slopes), slopes, 0.0), np.where(counts, errors, 0.0)[None]])
        rows = (rows * np.sqrt(weights)).reshape(len(rows), -1)
        sums = sums_of_products(rows, rows)
        at = partial(self._model, derived)
        return _Model(at, constants, derived.used, float(weights.sum()), float(sums[-1, -1]), sums[-1, :-1], sums[:-1, :-1])


class _Derived:
    """A loop that carries the states' derivatives by a program's constants beside the states.

    Attributes:
        constants: the program's finite f32 constants, as nodes, which are inputs of the loop. used: those that states depend on.
        loop: its columns are those of the task, the constants, and where the derivatives begin; num_carried of these.
        num_evaluations: runs of the loop.
    """

    def __init__(self, runner: LoopRunner, program: Dag, field: Dag, spoken: Language):
        instruction_set = spoken.instruction_set
        self._stack, self._builder = instruction_set.stack_index("f32"), Builder(instruction_set)
        num_columns, states = len(runner.types), runner.state_columns
        self.constants = [
            index
            for index, node in enumerate(program.nodes)
            if node.kind == NodeKind.CONSTANT and node.stack == self._stack and _is_finite(node.payload)
        ]
        parameters = {index: self._leaf(NodeKind.INPUT, num_columns + k) for k, index in enumerate(self.constants)}
        outputs = self._add(program, parameters)
        field_inputs = {
            i: outputs[node.payload - num_columns] for i, node in enumerate(field.nodes) if _is_output(node, num_columns)
        }
        changes = self._add(field, {index: self._value(node) for index, node in field_inputs.items()})
        first = num_columns + len(self.constants)
        slopes = [self._slopes(self._value(change), first, spoken) for change in changes]
        depends = [any(slope[num_columns + k] is not None for slope in slopes) for k in range(len(self.constants))]
        self.used = [k for k, is_used in enumerate(depends) if is_used][:MAX_PARAMETERS]
        self.num_carried, self.num_evaluations = len(states) * len(self.used), 0
        results = [self._value(change) for change in changes]
        for slope in slopes:
            for i, k in enumerate(self.used):
                total = slope[num_columns + k]
                for j, state in enumerate(states):
                    if (gain := slope[state]) is not None:
                        total = self._plus_product(total, gain, self._leaf(NodeKind.INPUT, first + j * len(self.used) + i))
                results.append(self._value(total))
        columns = (*states, *range(first, first + self.num_carried))
        self.loop = runner.loop._replace(field=_lowered(self._builder.graph(*results)), state_columns=columns)

    def _leaf(self, kind: NodeKind, payload: int) -> int:
        return self._builder.node(Node(kind, payload, self._stack))

    def _value(self, index: int | None) -> int:
        """Value, or zero if it is missing."""
        return self._leaf(NodeKind.CONSTANT, 0) if index is None else index

    def _add(self, graph: Dag, replaced: Mapping[int, int]) -> list[int | None]:
        """Adds a graph's nodes to this one's and gives its results. replaced: nodes in place of others."""
        new_indices: list[int] = []
        for index, node in enumerate(graph.nodes):
            renumbered = replace(node, operands=tuple(new_indices[operand] for operand in node.operands))
            new_indices.append(replaced[index] if index in replaced else self._builder.node(renumbered))
        return [None if result is None else new_indices[result] for result in graph.results]

    def _slopes(self, value: int, num_inputs: int, spoken: Language) -> list[int | None]:
        """The derivative of a value by each input."""
        graph = self._builder.graph(value)
        if not any(graph.nodes[index].kind == NodeKind.INPUT for index in (value, *graph.needed_by(value))):
            return [None] * num_inputs
        return self._add(derived(graph, num_inputs, spoken), {})

    def _plus_product(self, total: int | None, a: int, b: int) -> int:
        return self._builder.call("mul_ftz_f32", a, b) if total is None else self._builder.call("fma_rn_ftz_f32", a, b, total)


def _is_finite(bits: int) -> bool:
    return bits & 0x7F800000 != 0x7F800000


def _is_output(node: Node, num_columns: int) -> bool:
    return node.kind == NodeKind.INPUT and node.payload >= num_columns


def _lowered(graph: Dag) -> SimpleNamespace:
    """A graph as `rollouts` takes a field: only the nodes that results need."""
    graph = graph.trimmed()
    kept = graph.nodes
    table = np.zeros(len(kept), NODE_DTYPE)
    table["kind"], table["payload"] = [node.kind for node in kept], [node.payload for node in kept]
    table["stack_idx"], table["num_values"] = [node.stack for node in kept], 1
    table["num_operands"] = [len(node.operands) for node in kept]
    table["first_operand"] = np.cumsum(table["num_operands"]) - table["num_operands"]
    table["first_value"] = np.arange(len(kept))
    return SimpleNamespace(
        nodes=table,
        operands=np.array([operand for node in kept for operand in node.operands], np.uint32),
        value_nodes=np.arange(len(kept), dtype=np.uint32),
        value_stacks=np.array([node.stack for node in kept], np.uint16),
        request_values=np.array(graph.results, np.uint32),
    )
