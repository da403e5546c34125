"""A semiring: what it is made of, and its call on arrays of any library that speaks DLPack.

Owns how text, Stack PTX and elites become folds, and which fold a call runs. torch_operator.py has gradients.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError, did_you_mean
from evo.language.graph import Graph
from evo.semiring import folds
from evo.semiring.contraction import run, sizes_of
from evo.semiring.folds import Fold, pairs
from evo.semiring.programs import formula, names_in, read

Program = str | NDArray[np.uint64]
ACCUMULATE = {"sum": 0.0, "min": np.inf, "max": -np.inf, "log-sum-exp": -np.inf}
_FORMULAS = {"sum": "acc + x", "min": "min(acc, x)", "max": "max(acc, x)"}
_SWAPPED = {"acc + x": "x + acc", "min(acc, x)": "min(x, acc)", "max(acc, x)": "max(x, acc)"}
_ROWS_AT_ONCE_BYTES = 32 << 20  # of results, in a search for the nearest


class Nearest(NamedTuple):
    """The k best of each row, `(..., M, k)`, best first, and which rows of b they belong to, int64."""

    values: Any
    indices: Any


class Semiring:
    """`out[..., m, n] = epilogue(accumulate over k of multiply(a[..., m, k], b[..., n, k]))`.

    Args:
        multiply: a program of `a` and `b` and hyperparameters: a formula such as `"abs(a - b)**p"`; Stack PTX as text, which
            writes its inputs `%a`; or its words, with the inputs a, b and then `hyper`.
        accumulate: `"sum"`, `"min"`, `"max"`, `"log-sum-exp"`, or a formula of `acc` and `x`, the next product, which has no
            gradient unless it is one of these.
        identity: where `acc` begins, and what an empty K gives. None: that of `accumulate`.
        epilogue: a program of `x`, what was accumulated, and hyperparameters; None leaves it as it is.
        hyper: the order of hyperparameters in words of a program. Those of text are found in it.

    Raises:
        UserError: a program is wrong, or a formula for `accumulate` has no identity.

    Arithmetic is that of PTX in float32, as everywhere in evo: subnormals are zero, exp2 and the like are within 2 ulp. min and
    max prefer a number to a NaN; sums and log-sum-exp give NaN if a term is NaN. float64 is computed in float64.
    """

    def __init__(
        self,
        multiply: Program,
        accumulate: str = "sum",
        identity: float | None = None,
        epilogue: Program | None = None,
        *,
        hyper: tuple[str, ...] = (),
    ):
        found = [name for program in (multiply, epilogue) if isinstance(program, str) for name in names_in(program)]
        self.hyper = tuple(dict.fromkeys([*hyper, *(name for name in found if name not in ("a", "b", "x"))]))
        if wrong := [name for name in self.hyper if name in ("a", "b", "x") or name.startswith("_")]:
            raise UserError(f"a semiring's hyperparameter cannot be called '{wrong[0]}'")
        self.multiply = read(multiply, ("a", "b", *self.hyper), "multiply")
        self.epilogue = None if epilogue is None else read(epilogue, ("x", *self.hyper), "epilogue")
        if self.epilogue == formula("x", "x"):
            self.epilogue = None
        self.kind, self._accumulate = _kind_of(accumulate)
        if identity is None and not self.kind:
            raise UserError(f"accumulate '{accumulate}': give its identity, the number that leaves x as it is")
        self.identity = ACCUMULATE[self.kind] if identity is None else float(identity)
        self.fold, self.whole = self._folds()
        self.end = None if self.epilogue is None else pairs(("x",), self.hyper, self.epilogue)
        is_product = self.multiply in (formula("a*b", "a", "b"), formula("b*a", "a", "b"))
        is_sum = self.multiply in (formula("a + b", "a", "b"), formula("b + a", "a", "b"))
        # By what the program is, whatever it was written as. A BLAS has the best kernels for a matrix product; the log-sum-exp of
        # a + b is one of exponentials, where those do not underflow.
        self.is_matrix_product = self.kind == "sum" and self.identity == 0.0 and is_product
        self.is_log_product = self.kind == "log-sum-exp" and self.identity == -np.inf and is_sum
        self.key, self.whole_key = folds.key_of(self), folds.key_of(folds.Direct(self.whole, self._on_arrays))
        self.end_key = "" if self.end is None else folds.key_of(self.end)

    def __call__(self, a: Any, b: Any, **hyper: Any) -> Any:
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
        self._check_hyper(hyper)
        torch = sys.modules.get("torch")
        if torch is not None and any(isinstance(each, torch.Tensor) for each in (a, b, *hyper.values())):
            from evo.semiring.torch_operator import call

            return call(self, a, b, [hyper[name] for name in self.hyper])
        return self._on_arrays(_array("a", a), _array("b", b), *(_array(name, hyper[name]) for name in self.hyper))

    def nearest(self, a: Any, b: Any, k: int, *, largest: bool = False, **hyper: Any) -> Nearest:
        """The k smallest results of each row, or the largest, best first, ties to the lowest index; the matrix is never whole.

        Args:
            a, b, hyper: as in a call, without gradients.
            k: at most N.
        """
        self._check_hyper(hyper)
        left, right = _array("a", a), _array("b", b)
        rest = [_array(name, hyper[name]) for name in self.hyper]
        if not 0 < k <= right.shape[-2]:
            raise UserError(f"k is {k}; expected 1 to {right.shape[-2]}, the rows of b")
        batch, sizes = sizes_of(self.fold.arrays, [each.shape for each in (left, right, *rest)])
        height = max(_ROWS_AT_ONCE_BYTES // (4 * max(int(np.prod(batch)) * sizes["N"], 1)), 1)
        values, indices = [], []
        for first in range(0, max(sizes["M"], 1), height):
            found = self._on_arrays(left[..., first : first + height, :], right, *rest)
            places = _best(-found if largest else found, k)
            values.append(np.take_along_axis(found, places, -1))
            indices.append(places)
        nearest = Nearest(np.concatenate(values, -2), np.concatenate(indices, -2))
        if hasattr(a, "new_tensor"):
            import torch

            return Nearest(*(torch.from_numpy(each) for each in nearest))
        return nearest

    def _folds(self) -> tuple[Fold, Fold]:
        """What is accumulated, where minimum and maximum also give the place; and the same without places, with the epilogue."""
        if self.kind == "sum":
            fold = whole = folds.sums(self.multiply, self.hyper, self.identity)
        elif self.kind == "log-sum-exp":
            fold = whole = folds.log_sum_exp(self.multiply, self.hyper, self.identity)
        else:
            fold = whole = folds.general(self.multiply, self._accumulate, self.hyper, self.identity)
            if self.kind:
                fold = folds.extremum(self.multiply, self.hyper, self.identity, is_min=self.kind == "min")
        return fold, whole if self.epilogue is None else folds.followed(whole, self.epilogue, self.hyper)

    def _on_arrays(self, a: NDArray[Any], b: NDArray[Any], *hyper: NDArray[Any]) -> NDArray[Any]:
        """A call on arrays of NumPy."""
        product = None
        if self.is_matrix_product:
            product = np.matmul(_plain(a), np.swapaxes(_plain(b), -1, -2))
        elif self.is_log_product and a.shape[-1] > 0:
            product = log_product(_plain(a), _plain(b))
        if product is None:
            return run(self.whole, [a, b, *hyper])[0]
        return product if self.end is None else run(self.end.fold, [product, *hyper])[0]

    def _check_hyper(self, given: dict[str, Any]) -> None:
        for name in given:
            if name not in self.hyper:
                raise UserError(f"unknown hyperparameter '{name}', {did_you_mean(name, [*self.hyper])}")
        missing = [name for name in self.hyper if name not in given]
        if missing:
            raise UserError(f"hyperparameter '{missing[0]}' is missing: write {missing[0]}=number")


def log_product(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any] | None:
    """log(sum of exp(a + b)) by a matrix product; None where rows reach their largest values at places so far apart that the sum
    of what did not underflow is not exact, or where they are not finite.
    """
    largest_a, largest_b = a.max(-1, keepdims=True), b.max(-1, keepdims=True)
    if not (np.isfinite(largest_a).all() and np.isfinite(largest_b).all()):
        return None
    sums: NDArray[Any] = np.matmul(np.exp(a - largest_a), np.swapaxes(np.exp(b - largest_b), -1, -2))
    if not sums.size or not sums.min() > folds.SMALLEST_SUM:
        return None
    np.log(sums, out=sums)
    sums += largest_a
    sums += np.swapaxes(largest_b, -1, -2)
    return sums


def _kind_of(accumulate: str) -> tuple[str, Graph]:
    """The kind, or "" where it is another formula, and the graph of acc and x."""
    if accumulate in ACCUMULATE:
        return accumulate, formula(_FORMULAS.get(accumulate, "x"), "acc", "x")
    if "acc" not in accumulate:
        raise UserError(
            f"unknown accumulate '{accumulate}', {did_you_mean(accumulate, [*ACCUMULATE])}; or a formula of acc and x"
        )
    graph = read(accumulate, ("acc", "x"), "accumulate")
    for kind, text in _FORMULAS.items():
        if graph in (formula(text, "acc", "x"), formula(_SWAPPED[text], "acc", "x")):
            return kind, graph
    return "", graph


def _array(name: str, value: Any) -> NDArray[Any]:
    """An array of NumPy over the same memory, where the library allows it. Numbers become float32."""
    if hasattr(value, "detach"):  # a tensor of PyTorch, which may be of bfloat16
        from evo.semiring.torch_operator import as_array

        return as_array(name, value)
    if isinstance(value, (int, float)):
        return np.asarray(value, np.float32)
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
    """The places of the k smallest of each row in order, ties to the lowest index; NaN comes last."""
    if k < values.shape[-1]:
        # What equals the k-th smallest may be more than fits: the first of them belong to the k.
        bound = np.partition(values, k - 1, -1)[..., k - 1 : k]
        is_below, is_bound = values < bound, values == bound
        num_left = k - is_below.sum(-1, keepdims=True)
        is_kept = is_below | (is_bound & (np.cumsum(is_bound, -1, dtype=np.int32) <= num_left))
        if (is_kept.sum(-1) == k).all():
            places = np.nonzero(is_kept)[-1].reshape(*values.shape[:-1], k)
            order = np.argsort(np.take_along_axis(values, places, -1), -1, kind="stable")
            return np.take_along_axis(places, order, -1)
    return np.argsort(values, -1, kind="stable")[..., :k]
