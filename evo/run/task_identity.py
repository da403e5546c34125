"""Tasks without their code: how one that no folder holds is recognised again, and what stands for a task that is not loaded.

Owns what a checkpoint says of a task. Knows nothing of programs and scores.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from evo.errors import UserError
from evo.language.template import read_template
from evo.task import Programs, Task
from evo.tasks.answers import attributes_digest


@dataclass(frozen=True)
class MadeTask:
    """Identity of a task that a script or notebook has made.

    name: of its class. source: SHA-256 of the text of its class and of the classes that it derives from, but for those of evo;
    None: Python does not know the text, as in an interactive session. attributes: digest of the task's attributes; None: they
    cannot be pickled.
    """

    name: str
    source: str | None
    attributes: str | None

    @classmethod
    def of_task(cls, task: Task) -> MadeTask:
        """The identity of a task none of whose methods was called yet."""
        return cls(type(task).__name__, _source_digest(type(task)), attributes_digest(task))

    @property
    def digest(self) -> str:
        """One for all of it."""
        return hashlib.sha256(repr(asdict(self)).encode()).hexdigest()

    def difference(self, other: MadeTask) -> str | None:
        """The difference of a task from the one that a run began with, in words; None: there is none."""
        if self.name != other.name:
            return f"the run's task is of class {self.name}, not {other.name}"
        if self.source != other.source:
            return f"the source of class {self.name} has changed since the run began"
        if self.attributes != other.attributes:
            return f"the attributes of the task, such as data or options of {self.name}, have changed since the run began"
        return None


class DeclaredTask(Task):
    """A task's declarations alone, as a checkpoint has them: enough to read programs and scores, and it runs nothing.

    Args:
        declared: of `declarations`.
        reason: the message if its code is needed.
    """

    def __init__(self, declared: dict[str, Any], reason: str):
        self.inputs, self.outputs = dict(declared["inputs"]), dict(declared["outputs"])
        self.measures = {name: (low, high) for name, low, high in declared["measures"]}
        self.objective_range = declared["objective_range"] and tuple(declared["objective_range"])
        self.reduction, self.complexity = declared["reduction"], declared["complexity"]
        self._input_scaling = {name: (offset, scale) for name, (offset, scale) in declared["input_scaling"].items()}
        self.template = declared["template"] and read_template(declared["template"], list(self.inputs))
        self._reason = reason

    def input_scaling(self) -> dict[str, tuple[float, float]]:
        """Scaling of the task's inputs."""
        return self._input_scaling

    def points(self) -> NoReturn:
        """Raises UserError."""
        raise UserError(self._reason)

    def targets(self) -> NoReturn:
        """Raises UserError."""
        raise UserError(self._reason)

    def score(self, outputs: Any, programs: Programs) -> NoReturn:
        """Raises UserError."""
        raise UserError(self._reason)

    def read_points(self, path: Path, inputs: Sequence[str]) -> NoReturn:
        """Raises UserError."""
        raise UserError(self._reason)


def declarations(task: Task) -> dict[str, Any]:
    """Declarations of a task, as JSON values. Names are in lists: their order counts."""
    return {
        "inputs": [list(pair) for pair in task.inputs.items()],
        "outputs": [list(pair) for pair in task.outputs.items()],
        "measures": [[name, float(low), float(high)] for name, (low, high) in task.measures.items()],
        "objective_range": task.objective_range and [float(bound) for bound in task.objective_range],
        "reduction": task.reduction,
        "complexity": task.complexity,
        "input_scaling": {name: list(pair) for name, pair in task.input_scaling().items()},
        "template": task.template and task.template.text,
    }


def _source_digest(task_class: type[Task]) -> str | None:
    classes = [base for base in task_class.__mro__ if base is not object and base.__module__.partition(".")[0] != "evo"]
    texts = [_source_of(cls) for cls in classes]
    return None if None in texts else hashlib.sha256("\0".join(map(str, texts)).encode()).hexdigest()


def _source_of(task_class: type) -> str | None:
    """The text of a class; None if Python does not know it. In notebooks `inspect` finds only functions."""
    try:
        return inspect.getsource(task_class)
    except (OSError, TypeError, SyntaxError):  # the last: the file has changed since, or is a document
        codes = (getattr(value, "__code__", None) for value in vars(task_class).values())
    for code in filter(None, codes):
        try:
            lines = inspect.findsource(code)[0]  # of the whole cell
            tree = ast.parse("".join(lines))
        except (OSError, SyntaxError):
            continue
        for node in ast.walk(tree):
            is_class = isinstance(node, ast.ClassDef) and node.name == task_class.__name__
            first, last = (node.lineno, node.end_lineno or 0) if isinstance(node, ast.stmt) else (0, 0)
            if is_class and first <= code.co_firstlineno <= last:
                return "".join(lines[first - 1 : last])
    return None
