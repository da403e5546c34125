"""A semiring: what it is made of, and its call on arrays of any library that speaks DLPack.

Owns how text, Stack PTX and elites become folds, and which fold a call runs. torch_operator.py has gradients.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError, did_you_mean
from evo.language.dag import Dag
from evo.language.real_programs import formula, names_in, read
from evo.native.stack_ptx import check_name
from evo.semiring import blocks, folds, norms
from evo.semiring.contraction import run
from evo.semiring.folds import Fold, pairs, sizes_of


class Elite(Protocol):
    """A program that a search found, as `Result.program()` gives it."""

    @property
    def text(self) -> str:
        """Its Stack PTX."""


Program = str | NDArray[np.uint64] | Elite
ACCUMULATE = {"sum": 0.0, "min": np.inf, "max": -np.inf, "log-sum-exp": -np.inf, **dict.fromkeys(norms.ORDERS, 0.0)}
_NAMES = [name for name in ACCUMULATE if name not in norms.ORDERS]  # without those of the zoo's distances
_FORMULAS = {"sum": "acc + x", "min": "min(acc, x)", "max": "max(acc, x)"}
_SWAPPED = {"acc + x": "x + acc", "min(acc, x)": "min(x, acc)", "max(acc, x)": "max(x, acc)"}
_CPU = 1  # as DLPack numbers devices
_ROWS_AT_ONCE_BYTES = 32 << 20  # of results, in a search for the nearest


class Nearest(NamedTuple):
    """The k best of each row, `(..., M, k)`, best first, and which rows of b they belong to, int64."""

    values: Any
    indices: Any


class Semiring:
    """`out[..., m, n] = epilogue(accumulate over k of multiply(a[..., m, k], b[..., n, k]))`.

    Args:
        multiply: a program of `a` and `b` and hyperparameters: a formula such as `"abs(a - b)**p"`; Stack PTX as text, which
            writes its inputs `%a`; an elite of a task with one output, as `Result.program()` gives it; or words, with the inputs
            a, b and then `hyper`.
        accumulate: `"sum"`, `"min"`, `"max"`, `"log-sum-exp"`, `"2-norm"`, `"p-norm"` of the hyperparameter p, or a formula of
            `acc` and `x`, the next product, which has no gradient unless it is one of these.
        identity: where `acc` begins, and what an empty K gives. None: that of `accumulate`.
        epilogue: a program of `x`, what was accumulated, and hyperparameters; None leaves it as it is.
        hyper: the order of hyperparameters in words of a program. Those of text are found in it.

    Raises:
        UserError: a program is wrong, or a formula for `accumulate` has no identity.

    Arithmetic is that of PTX in float32, as everywhere in evo: subnormals are zero, exp2 and the like are within 2 ulp. min and
    max prefer a number to a NaN; sums, norms and log-sum-exp give NaN if a term is NaN. float64 is computed in float64.
    """

    def __init__(
        self,
        multiply: Program,
        accumulate: str = "sum",
        identity: float | None = None,
        epilogue: Program | None = None,
        *,
        hyper: Sequence[str] = (),
    ):
        hyper = [hyper] if isinstance(hyper, str) else hyper
        programs: list[Any] = [getattr(program, "text", program) for program in (multiply, epilogue)]
        used_names = [name for program in programs if isinstance(program, str) for name in names_in(program)]
        used_names += ["p"] if accumulate == "p-norm" else []
        self.hyper = tuple(dict.fromkeys([*hyper, *(name for name in used_names if name not in ("a", "b", "x"))]))
        if wrong := [name for name in self.hyper if not _is_name(name)]:
            raise UserError(f"a semiring's hyperparameter cannot be called '{wrong[0]}'")
        self.multiply = read(programs[0], ("a", "b", *self.hyper), "multiply")
        self.epilogue = None if epilogue is None else read(programs[1], ("x", *self.hyper), "epilogue")
        if self.epilogue == formula("x", "x"):
            self.epilogue = None
        self.kind, self._accumulate = _kind_of(accumulate)
        if identity is None and not self.kind:
            raise UserError(f"accumulate '{accumulate}': give its identity, the number that leaves x as it is")
        if not isinstance(identity, Real | None):
            raise UserError(f"identity is {identity!r}; expected a number")
        self.identity = ACCUMULATE[self.kind] if identity is None else float(identity)
        self.order = norms.ORDERS.get(self.kind, "")
        if self.order and self.identity != 0.0:
            raise UserError(f"identity is {identity!r}; a {self.kind} begins at 0")
        self.scaled = norms.scaled_norm(self.multiply, self.hyper, self.order) if self.order else None
        self.fold, self.whole = self._folds()
        self.end = None if self.epilogue is None else pairs(("x",), self.hyper, self.epilogue)
        is_product = self.multiply in (formula("a*b", "a", "b"), formula("b*a", "a", "b"))
        is_sum = self.multiply in (formula("a + b", "a", "b"), formula("b + a", "a", "b"))
        self.is_difference = self.multiply == formula("a - b", "a", "b")
        # By the program's graph, not its text. A BLAS has the best kernels for a matrix product; the log-sum-exp of
        # a + b is one of exponentials, where those do not underflow.
        self.is_matrix_product = self.kind == "sum" and self.identity == 0.0 and is_product
        self.is_log_product = self.kind == "log-sum-exp" and self.identity == -np.inf and is_sum
        self._names = ("a", "b", *self.hyper)
        self.key, self.whole_key = folds.key_of(self), folds.key_of(folds.Direct(self.whole, self._on_arrays))
        self.end_key = "" if self.end is None else folds.key_of(self.end)

    def __call__(self, a: Any, b: Any, /, **hyper: Any) -> Any:
        """`(..., M, N)` of `a`, `(..., M, K)`, and `b`, `(..., N, K)`; batches broadcast.

        Args:
            a, b: of torch, NumPy or a library that speaks DLPack, of float32, float16, bfloat16 or float64, with any strides.
            hyper: each a number, or an array with the shape of the batch.

        Returns:
            A tensor if one of them is a tensor, with gradients; otherwise an array of NumPy. float64 if one of them is, else
            float32.

        Raises:
            ValueError: shapes do not fit each other.
            UserError: a hyperparameter is missing or unknown, or an array has another type.
        """
        if library := _device_library((a, b, *hyper.values())):
            return library.from_dlpack(self(_tensor(a), _tensor(b), **{name: _tensor(value) for name, value in hyper.items()}))
        arguments = self._arguments(a, b, hyper)
        if _has_tensor(arguments):
            from evo.semiring.torch_operator import as_tensors, call

            return call(self, as_tensors(self._names, arguments, as_array))
        return self._on_arrays(*self._arrays(arguments))

    def nearest(self, a: Any, b: Any, k: int, /, *, largest: bool = False, **hyper: Any) -> Nearest:
        """The k smallest results of each row, or the largest, best first, ties to the lowest index; the matrix is never whole.

        Args:
            a, b, hyper: as in a call, without gradients.
            k: at most N.
        """
        if library := _device_library((a, b, *hyper.values())):
            on_device = {name: _tensor(value) for name, value in hyper.items()}
            return Nearest(*map(library.from_dlpack, self.nearest(_tensor(a), _tensor(b), k, largest=largest, **on_device)))
        arguments = self._arguments(a, b, hyper)
        is_by_torch = any(getattr(value, "is_cuda", False) for value in arguments)
        if _has_tensor(arguments):
            from evo.semiring.torch_transforms import is_transformed

            is_by_torch |= is_transformed()
        left, right, *rest = arguments if is_by_torch else self._arrays(arguments)
        batch, sizes = sizes_of(self.fold.arrays, [np.shape(array) for array in (left, right, *rest)])
        if not hasattr(k, "__index__") or not 0 < operator.index(k) <= sizes["N"]:
            raise UserError(f"k is {k!r}; expected 1 to {sizes['N']}, the rows of b")
        height = max(_ROWS_AT_ONCE_BYTES // (4 * max(int(np.prod(batch)) * sizes["N"], 1)), 1)
        if is_by_torch:
            from evo.semiring.torch_operator import as_tensors, nearest

            tensors = as_tensors(self._names, arguments, as_array)
            return Nearest(*nearest(self, tensors, int(k), height, is_largest=largest))
        values, indices = [], []
        for first in range(0, max(sizes["M"], 1), height):
            results = self._on_arrays(left[..., first : first + height, :], right, *rest)
            columns = _best(-results if largest else results, k)
            values.append(np.take_along_axis(results, columns, -1))
            indices.append(columns)
        best = Nearest(np.concatenate(values, -2), np.concatenate(indices, -2))
        if _has_tensor(arguments):
            import torch

            return Nearest(*(torch.from_numpy(array) for array in best))
        return best

    def _folds(self) -> tuple[Fold, Fold]:
        """Folds, where minimum and maximum also give the index; and the same without indices, with the epilogue."""
        if self.kind == "sum":
            fold = whole = folds.sums(self.multiply, self.hyper, self.identity)
        elif self.order:
            fold = whole = norms.norm(self.multiply, self.hyper, self.order)
        elif self.kind == "log-sum-exp":
            fold = whole = folds.log_sum_exp(self.multiply, self.hyper, self.identity)
        else:
            fold = whole = folds.general(self.multiply, self._accumulate, self.hyper, self.identity)
            if self.kind:
                fold = folds.extremum(self.multiply, self.hyper, self.identity, is_min=self.kind == "min")
        return fold, whole if self.epilogue is None else folds.followed(whole, self.epilogue, self.hyper)

    def _on_arrays(self, a: NDArray[Any], b: NDArray[Any], *hyper: NDArray[Any]) -> NDArray[Any]:
        """A call on arrays of NumPy."""
        sizes_of(self.whole.arrays, [array.shape for array in (a, b, *hyper)])
        product = None
        if self.is_matrix_product:
            product = blocks.product(_plain(a), _plain(b), np.matmul)
        elif self.scaled is not None:
            product = norms.run_norm(self.fold, self.scaled, self.is_difference, [a, b, *hyper], run)
        elif self.is_log_product and a.shape[-1] > 0:
            product = log_product(_plain(a), _plain(b))
        if product is None:
            return run(self.whole, [a, b, *hyper])[0]
        return product if self.end is None else run(self.end.fold, [product, *hyper])[0]

    def _arguments(self, a: Any, b: Any, hyper: dict[str, Any]) -> list[Any]:
        """All arguments, in the order of `fold.arrays`."""
        for name in hyper:
            if name not in self.hyper:
                raise UserError(f"unknown hyperparameter '{name}', {did_you_mean(name, [*self.hyper])}")
        if missing := [name for name in self.hyper if name not in hyper]:
            raise UserError(f"hyperparameter '{missing[0]}' is missing: write {missing[0]}=number")
        return [a, b, *(hyper[name] for name in self.hyper)]

    def _arrays(self, arguments: Sequence[Any]) -> list[NDArray[Any]]:
        """Arguments as arrays of NumPy; numbers have the type of the result."""
        arrays = [
            value if isinstance(value, Real) else as_array(name, value)
            for name, value in zip(self._names, arguments, strict=True)
        ]
        is_double = any(isinstance(array, np.ndarray) and array.dtype == np.float64 for array in arrays)
        number = np.float64 if is_double else np.float32
        return [array if isinstance(array, np.ndarray) else np.asarray(array, number) for array in arrays]


def _is_name(name: str) -> bool:
    """Return whether a hyperparameter may have it: it becomes a register too."""
    try:
        check_name(name)
    except ValueError:
        return False
    return name not in ("a", "b", "x", "largest") and not name.startswith("_")


def _has_tensor(arguments: Sequence[Any]) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and any(isinstance(value, torch.Tensor) for value in arguments)


def _device_library(arguments: Sequence[Any]) -> Any:
    """The library of an array that lies on a device, such as CuPy; None for PyTorch, or where all are on the CPU."""
    if _has_tensor(arguments):
        return None
    on_device = (value for value in arguments if hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] != _CPU)
    array = next(on_device, None)
    return None if array is None else array.__array_namespace__()


def _tensor(value: Any) -> Any:
    """A tensor over the memory of a library's array; numbers stay."""
    import torch

    return torch.from_dlpack(value) if hasattr(value, "__dlpack__") else value


def log_product(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any] | None:
    """log(sum of exp(a + b)) by a matrix product; None where rows reach their largest values at columns so far apart that the sum
    of what did not underflow is not exact, or where they are not finite.
    """
    largest_a, largest_b = a.max(-1, keepdims=True), b.max(-1, keepdims=True)
    if not (np.isfinite(largest_a).all() and np.isfinite(largest_b).all()):
        return None
    sums: NDArray[Any] = blocks.product(np.exp(a - largest_a), np.exp(b - largest_b), np.matmul)
    if not sums.size or not sums.min() > folds.SMALLEST_SUM:
        return None
    np.log(sums, out=sums)
    sums += largest_a
    sums += np.swapaxes(largest_b, -1, -2)
    return sums


def _kind_of(accumulate: str) -> tuple[str, Dag]:
    """The kind, or "" where it is another formula, and the graph of acc and x."""
    if isinstance(accumulate, str) and accumulate in ACCUMULATE:
        return accumulate, formula(_FORMULAS.get(accumulate, "x"), "acc", "x")
    if not isinstance(accumulate, str) or "acc" not in accumulate:
        raise UserError(f"unknown accumulate '{accumulate}', {did_you_mean(str(accumulate), _NAMES)}; or a formula of acc and x")
    graph = read(accumulate, ("acc", "x"), "accumulate")
    for kind, text in _FORMULAS.items():
        if graph in (formula(text, "acc", "x"), formula(_SWAPPED[text], "acc", "x")):
            return kind, graph
    return "", graph


def as_array(name: str, value: Any) -> NDArray[Any]:
    """An array of NumPy over the same memory, where the library allows it."""
    if hasattr(value, "detach"):  # a tensor of PyTorch, which may be of bfloat16
        from evo.semiring.torch_operator import array_of

        return array_of(name, value)
    array = np.from_dlpack(value) if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray) else np.asarray(value)
    if array.dtype not in (np.float32, np.float16, np.float64):
        raise UserError(f"{name} is of {array.dtype}; expected float32, float16, float64, or bfloat16 of PyTorch")
    return array


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Float16 and bfloat16 as float32."""
    if array.dtype == np.int16:
        return (array.astype(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _best(values: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Columns of the k smallest of each row in order, ties to the lowest index; NaN comes last."""
    if k < values.shape[-1]:
        # Values equal to the k-th smallest may be more than fit: the first of them belong to the k.
        bound = np.partition(values, k - 1, -1)[..., k - 1 : k]
        is_below, is_bound = values < bound, values == bound
        num_left = k - is_below.sum(-1, keepdims=True)
        is_kept = is_below | (is_bound & (np.cumsum(is_bound, -1, dtype=np.int32) <= num_left))
        if (is_kept.sum(-1) == k).all():
            columns = np.nonzero(is_kept)[-1].reshape(*values.shape[:-1], k)
            order = np.argsort(np.take_along_axis(values, columns, -1), -1, kind="stable")
            return np.take_along_axis(columns, order, -1)
    return np.argsort(values, -1, kind="stable")[..., :k]
