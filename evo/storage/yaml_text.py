"""YAML that users write: read whole, or refused in one line that names the place. Knows nothing of what is described."""

import math
import re
from collections.abc import Hashable
from typing import Any

import yaml

from evo.errors import UserError
from evo.options import WRITTEN_AS_FLOAT

MAX_DEPTH = 64  # of lists and mappings; their readers are recursive
MAX_CHARACTERS = 1 << 20
MAX_REPEATED = 10_000  # values that aliases stand for
MAX_DIGITS = 1000  # of a number


def parse_yaml(text: str, source: str) -> Any:
    """The value of a text; errors name its `source`.

    Raises:
        UserError: the text is not YAML, has a key twice, or nests deeper than `MAX_DEPTH`.
    """
    too_deep = UserError(f"nested too deeply: more than {MAX_DEPTH} levels", source)
    try:
        if len(text) > MAX_CHARACTERS:
            raise UserError(f"{len(text):,} characters are more than {MAX_CHARACTERS:,}", source)
        value = yaml.load(text, _UniqueKeyLoader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{source}{line}: not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise UserError(f"not YAML: {' '.join(str(error).split())}", source) from error
    except RecursionError:
        raise too_deep from None
    if _is_deeper(value, MAX_DEPTH):
        raise too_deep
    return value


def dump_yaml(value: Any) -> str:
    """A value of lists, mappings and plain values as YAML, in its order."""
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))


def _is_deeper(value: Any, limit: int) -> bool:
    """Return whether lists and mappings nest deeper than the limit. One that contains itself does."""
    level = [value]
    for _ in range(limit + 1):
        level = list({id(node): node for node in level if isinstance(node, (dict, list))}.values())
        if not level:
            return False
        level = [child for node in level for child in (node.values() if isinstance(node, dict) else node)]
    return True


def _size(node: yaml.Node, sizes: dict[int, float]) -> float:
    """The nodes of a tree that aliases make of the file's. sizes: of the nodes seen so far; infinite: it contains itself."""
    if id(node) not in sizes:
        sizes[id(node)] = math.inf
        parts = node.value if isinstance(node, yaml.CollectionNode) else []
        children = [child for part in parts for child in (part if isinstance(part, tuple) else (part,))]
        sizes[id(node)] = 1.0 + sum(_size(child, sizes) for child in children)
    return sizes[id(node)]


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a key that is given twice, reads 1e-3 as a number, and names the line of an invalid value."""

    def construct_document(self, node: yaml.Node) -> Any:
        sizes: dict[int, float] = {}
        if (size := _size(node, sizes)) == math.inf:
            raise RecursionError
        if size > len(sizes) + MAX_REPEATED:
            problem = f"aliases (*name) repeat more than {MAX_REPEATED:,} values"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return super().construct_document(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            if node.tag.endswith((":int", ":float")) and len(node.value) > MAX_DIGITS:
                raise ValueError(f"a number of {len(node.value):,} digits, at most {MAX_DIGITS:,} fit")
            value = super().construct_object(node, deep)
        except ValueError as error:  # such as a date in month 13
            raise yaml.MarkedYAMLError(problem=str(error), problem_mark=node.start_mark) from error
        if isinstance(value, str) and "\0" in value:
            raise yaml.MarkedYAMLError(problem="a text holds a NUL", problem_mark=node.start_mark)
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue  # `<<: *anchor`: given keys win over merged ones
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a plain value", problem_mark=key_node.start_mark)
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"key '{key}' is given twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


_UniqueKeyLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(rf"^{WRITTEN_AS_FLOAT.pattern}$"),
    list("-+0123456789."),
)
