"""Python text without Python's `eval`: parsed, built into closures node by node, and refused beyond a short list of nodes.

Owns that list. Names mean what the caller says; of values, the attributes `_ATTRIBUTES` can be reached and no others. Exports are
checked with it, so a text that got into one cannot run.
"""

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

Variables = dict[str, Any]
Closure = Callable[[Variables], Any]
_NO_NAMES: Mapping[str, Any] = {}
_ATTRIBUTES = frozenset({"astype", "view"})
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.USub: operator.neg, ast.Invert: operator.invert,
}  # fmt: skip


MODULES = ("math", "numpy", "sympy", "sympy.core.parameters", "typing")  # that exports import
CONTEXTS = ("np.errstate(all='ignore')", "distribute(False)")  # which callers set: messages, and products as written
_OF_TYPES = (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.Constant, ast.expr_context)  # nodes of annotations


class NotAllowed(ValueError):
    """A text has a node that is not on the list; the message shows it."""


def closure(code: ast.expr | str, names: Mapping[str, Any] = _NO_NAMES) -> Closure:
    """Builds a function of variables that computes an expression.

    Args:
        names: other names that it may use, such as `np.abs`; a variable of the same name takes precedence.

    Raises:
        NotAllowed: it has something that is not on the list.
    """
    built = partial(closure, names=names)
    match ast.parse(code, mode="eval").body if isinstance(code, str) else code:
        case ast.Constant(value):
            return lambda _: value
        case (ast.Name() | ast.Attribute()) as node if (name := ast.unparse(node)) in names:
            fixed = names[name]
            return lambda variables: variables.get(name, fixed)
        case ast.Name(name):
            return operator.itemgetter(name)
        case ast.Attribute(value, name) if name in _ATTRIBUTES:
            whole = built(value)
            return lambda variables: getattr(whole(variables), name)
        case ast.UnaryOp(sign, value) if type(sign) in _OPERATORS:
            apply, first = _OPERATORS[type(sign)], built(value)
            return lambda variables: apply(first(variables))
        case ast.BinOp(left, sign, right) | ast.Compare(left, [sign], [right]) if type(sign) in _OPERATORS:
            apply, first, second = _OPERATORS[type(sign)], built(left), built(right)
            return lambda variables: apply(first(variables), second(variables))
        case ast.Call(function, values, keywords) if all(keyword.arg for keyword in keywords):
            called, arguments = built(function), [built(value) for value in values]
            named = {str(keyword.arg): built(keyword.value) for keyword in keywords}
            if not named:
                return lambda variables: called(variables)(*[argument(variables) for argument in arguments])
            return lambda variables: called(variables)(
                *[argument(variables) for argument in arguments],
                **{name: argument(variables) for name, argument in named.items()},
            )
        case ast.Tuple(values) | ast.List(values):
            items = [built(value) for value in values]
            return lambda variables: tuple([item(variables) for item in items])
        case ast.Dict(keys, values) if all(keys):
            pairs = [(built(key), built(value)) for key, value in zip(keys, values, strict=True) if key]
            return lambda variables: {key(variables): item(variables) for key, item in pairs}
        case ast.Subscript(value, ast.Slice(ast.Constant(start), None, None)):
            whole = built(value)
            return lambda variables: whole(variables)[start:]
        case ast.Subscript(value, index):
            whole, subscript = built(value), built(index)
            return lambda variables: whole(variables)[subscript(variables)]
        case node:
            raise NotAllowed(f"not an expression that evo reads: {ast.unparse(node)[:80]}")


def statements(code: str | Iterable[ast.stmt], names: Mapping[str, Any] = _NO_NAMES) -> Closure:
    """Statements that change variables in place: assignments and functions. Imports do nothing: `names` has what they give.

    Returns a closure that gives a tuple of the value that a `return` had, or None. Raises NotAllowed.
    """
    steps = [_statement(statement, names) for statement in (ast.parse(code).body if isinstance(code, str) else code)]

    def run(variables: Variables) -> Any:
        return next((result for step in steps if (result := step(variables)) is not None), None)

    return run


def _statement(node: ast.stmt, names: Mapping[str, Any]) -> Closure:
    match node:
        case ast.Import(modules) if all(alias.name in MODULES for alias in modules):
            return lambda _: None
        case ast.ImportFrom(module, _, 0) if module in MODULES:
            return lambda _: None
        case ast.Expr(ast.Constant()):
            return lambda _: None
        case ast.Assign([ast.Name(name)], value):
            computed = closure(value, names)
            return lambda variables: variables.update({name: computed(variables)})
        case ast.Return(ast.expr() as value):
            result = closure(value, names)
            return lambda variables: (result(variables),)
        case ast.With([ast.withitem(context, None)], body) if ast.unparse(context) in CONTEXTS:
            return statements(body, names)
        case ast.For(ast.Name(name), items, body, []):
            every, inner = closure(items, names), statements(body, names)

            def repeated(variables: Variables) -> Any:
                for item in every(variables):
                    variables[name] = item
                    if (result := inner(variables)) is not None:
                        return result
                return None

            return repeated
        case ast.FunctionDef(name, ast.arguments([], parameters, rest, [], [], None, []) as signature, body, [], returned) if all(
            isinstance(part, _OF_TYPES)
            for kind in (returned, *(parameter.annotation for parameter in (*signature.args, signature.vararg) if parameter))
            for part in (ast.walk(kind) if kind else ())
        ):
            inner, taken = statements(body, names), [parameter.arg for parameter in parameters]
            rest_name = rest.arg if rest else None
            return lambda variables: variables.update({name: partial(_called, inner, variables, taken, rest_name)})
    raise NotAllowed(f"not a statement that evo reads: {ast.unparse(node)[:80]}")


def _called(body: Closure, outer: Variables, taken: Sequence[str], rest: str | None, *values: Any) -> Any:
    arguments = dict(zip(taken, values, strict=rest is None)) | ({rest: values[len(taken) :]} if rest else {})
    return (body(outer | arguments) or (None,))[0]
