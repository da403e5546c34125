"""The functions of a template made tidy, one by one.

Owns the points at which a function is tidied, those where its program calls it, and how it goes back into the program. What a
function computes stays as it is, but for rounding and for the template's scale, which it takes up if that is no longer.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evo.evaluate.formulas import Formulas
from evo.evaluate.tidy import Tidied, Tidier
from evo.language.dag import Dag, Node, dag_of
from evo.language.program import Language, word
from evo.language.template import FREE_ENTRIES, Template
from evo.native.stack_ptx import NodeKind
from evo.native.stack_ptx_words import META_OPERATIONS, WordType
from evo.task import Task
from evo.tasks.answers import point_arrays

Columns = list[NDArray[np.float64]]


class _Alone(Task):
    """A function at the points where a program calls it."""

    reduction = "regression"

    def __init__(self, arguments: tuple[str, ...], columns: Columns):
        self.inputs, self.outputs = dict.fromkeys(arguments, "f32"), {"y": "f32"}
        self._columns = dict(zip(arguments, columns, strict=True))

    def points(self) -> dict[str, NDArray[np.float64]]:
        return self._columns

    def targets(self) -> dict[str, NDArray[np.float64]]:
        return {"y": next(iter(self._columns.values()))}  # is not looked at: the function itself is the target


class TemplateTidier:
    """Tidies programs of a task that has a template, as `Tidier` does others.

    Raises:
        UserError: the task's points are malformed.
    """

    def __init__(self, language: Language, task: Task, allowed: Collection[str]):
        self._language, self._task, self._allowed = language, task, allowed
        self._template: Template = task.template
        inputs, num_points = point_arrays(task, task.points(), "points()")
        self._columns = [np.broadcast_to(value, num_points).astype(np.float64) for value in inputs]
        names = [instruction.semantics.function for instruction in language.instruction_set.instructions]
        self._mul = names.index("mul") if "mul" in names else None
        self.num_operations = 0  # instructions that were computed, each at all points

    @np.errstate(all="ignore")  # functions may be anything
    def tidy(self, words: NDArray[np.uint64]) -> Tidied | None:
        """Simplify a program of `(max_length,)` words; the result may be the program itself. None: unknown."""
        values = self._values(self._template, words)
        if values is None:
            return None
        [(_, [scale])] = self._task.scaling({"": values[None]}).values()
        scales = [float(scale) if function.scale else 1.0 for function in self._template.functions]
        programs = [self._program(words, factors) for factors in (scales, [1.0] * len(scales))]
        candidates = np.array([program for program in programs if program is not None])
        if not len(candidates):
            return None
        shortest = int(np.argmin(self._language.lowering.analyze(candidates)[1]))
        return Tidied(candidates[shortest], bits=0.0, is_exact=False, is_coarse=False)

    def _program(self, words: NDArray[np.uint64], scales: list[float]) -> NDArray[np.uint64] | None:
        """The program of tidy functions times numbers; None: it would be longer, or a function cannot be computed here."""
        stack = self._language.instruction_set.stack_index("f32")
        clear, end = word(WordType.META, stack, META_OPERATIONS.index("clear")), word(WordType.RETURN)
        written: list[int] = []
        for index, scale in enumerate(scales):
            function = self._function(words, index, scale)
            if function is None:
                return None
            written += [*([clear] if index else []), *(function[: function.index(end)] if end in function else function)]
        if len(written) >= len(words):
            return None
        return np.array([*written, end, *[0] * (len(words) - len(written) - 1)], np.uint64)

    def _function(self, words: NDArray[np.uint64], index: int, scale: float) -> list[int] | None:
        """The words of a tidy function times a number."""
        arguments = self._template.functions[index].arguments or ("x",)  # a language has an input, which a number leaves alone
        columns = self._arguments(words, index)
        graph = self._graph(replace(self._template.alone(index), inputs=arguments), words)
        if columns is None or graph.results[0] is None:
            return None
        limits = self._language.limits.model_copy(update={"store_size": FREE_ENTRIES})
        plain = replace(self._language_of(arguments, ()), limits=limits)
        if scale != 1.0:
            if self._mul is None:
                return None
            graph = _times(graph, scale, self._mul)
        begun = graph.words(plain, len(words))
        if begun is None:
            return None
        tidier = Tidier(plain, _Alone(arguments, columns), self._allowed, keeps_all=True)
        tidy = tidier.tidy(begun)
        self.num_operations += tidier.num_operations
        tidy_words: list[int] = (tidy.words if tidy else begun).tolist()
        return tidy_words

    def _arguments(self, words: NDArray[np.uint64], index: int) -> Columns | None:
        """The arguments of a function in all its calls, one after the other."""
        columns: list[Columns] = []
        for number, (called, formulas) in enumerate(self._template.calls):
            if called == index:
                earlier = replace(self._template, calls=self._template.calls[:number], names=self._template.names[:number])
                values = [self._values(replace(earlier, formula=formula), words) for formula in formulas or ("0",)]
                if any(value is None for value in values):
                    return None
                columns.append([value for value in values if value is not None])
        return [np.concatenate(parts) for parts in zip(*columns, strict=True)] if columns else None

    def _values(self, template: Template, words: NDArray[np.uint64]) -> NDArray[np.float64] | None:
        """Values of a template with a program at the task's points, `(num_points,)`; None: not everywhere a number."""
        graph = self._graph(template, words)
        formulas = Formulas(self._language, self._columns, has_choices=True)
        if not formulas.is_known(graph):
            return None
        values = formulas.formula(graph).outputs()
        self.num_operations += formulas.num_operations
        return values if np.isfinite(values).all() else None

    def _graph(self, template: Template, words: NDArray[np.uint64]) -> Dag:
        language = self._language_of(template.inputs, template.words(self._language.instruction_set, self._language.limits))
        return dag_of(language, words)

    def _language_of(self, inputs: tuple[str, ...], template: tuple[int, ...]) -> Language:
        return replace(self._language, inputs=tuple((name, "f32") for name in inputs), template=template)


def _times(graph: Dag, number: float, mul: int) -> Dag:
    """The graph of a product with a number."""
    [result] = graph.results
    assert result is not None
    stack, count = graph.nodes[result].stack, len(graph.nodes)
    constant = Node(NodeKind.CONSTANT, int(np.float32(number).view(np.uint32)), stack)
    return Dag((*graph.nodes, constant, Node(NodeKind.PTX, mul, stack, (result, count))), (count + 1,))
