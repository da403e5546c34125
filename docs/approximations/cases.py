"""Functions of the comparison: 16, each on an interval that its users need, with an error that is fair there.

Chosen before any search. Errors: absolute where the function levels off, so that results near 0 are as good as 0, and of log,
which people add up; in ulps where it runs through the binades, or where small results are what it is for.
"""

from __future__ import annotations

from dataclasses import dataclass

from evo.approximation.formats import FORMATS, Format

_HALF = "0.70710678118654752f"


@dataclass(frozen=True)
class Case:
    """function: of evo's names. cuda: how CUDA code writes it. why: the interval's."""

    function: str
    interval: tuple[float, float]
    error: str
    cuda: str
    why: str
    format: str = "f32"

    @property
    def form(self) -> Format:
        return FORMATS[self.format]

    @property
    def name(self) -> str:
        return self.function if self.format == "f32" else f"{self.function}_{self.format}"

    def options(self) -> dict[str, object]:
        """Of the task."""
        return {"function": self.function, "interval": list(self.interval), "format": self.format, "error": self.error}


CASES = (
    Case("exp", (-87.0, 88.0), "ulp", "expf(x)", "all normal results"),
    Case("exp2", (-126.0, 127.0), "ulp", "exp2f(x)", "all normal results"),
    Case("log", (2.0**-126, 3e38), "absolute", "logf(x)", "all normal numbers"),
    Case("log1p", (-0.9, 1000.0), "ulp", "log1pf(x)", "small x is what it is for"),
    Case("expm1", (-16.0, 16.0), "ulp", "expm1f(x)", "from ELU's end to e^16"),
    Case("sin", (-3.1415927, 3.1415927), "absolute", "sinf(x)", "one period"),
    Case("cos", (-3.1415927, 3.1415927), "absolute", "cosf(x)", "one period"),
    Case("tan", (-1.5, 1.5), "ulp", "tanf(x)", "up to 14, near the pole"),
    Case("tanh", (-9.0, 9.0), "absolute", "tanhf(x)", "where f32 saturates"),
    Case("sigmoid", (-16.0, 16.0), "absolute", "1.0f / (1.0f + expf(-x))", "where f32 saturates"),
    Case("softplus", (-8.0, 8.0), "absolute", "log1pf(expf(x))", "an activation's"),
    Case("gelu", (-8.0, 8.0), "absolute", f"0.5f * x * (1.0f + erff(x * {_HALF}))", "an activation's"),
    Case("silu", (-8.0, 8.0), "absolute", "x / (1.0f + expf(-x))", "an activation's"),
    Case("erf", (-4.0, 4.0), "absolute", "erff(x)", "where f32 saturates"),
    Case("cbrt", (0.001, 1000.0), "ulp", "cbrtf(x)", "six decades, as of light"),
    Case("atan", (-100.0, 100.0), "absolute", "atanf(x)", "needs 1/x"),
)

_PHI = "0.39894228040143268f * expf(-0.5f * x * x)"
_LARGEST = FORMATS["bf16"].largest
BF16 = (
    Case("gelu", (-_LARGEST, _LARGEST), "ulp", f"x * 0.5f * (1.0f + erff(x * {_HALF}))", "all finite inputs", "bf16"),
    Case(
        "gelu_grad",
        (-_LARGEST, _LARGEST),
        "ulp",
        f"0.5f * (1.0f + erff(x * {_HALF})) + x * ({_PHI})",
        "all finite inputs",
        "bf16",
    ),
    Case("silu", (-_LARGEST, _LARGEST), "ulp", "x / (1.0f + expf(-x))", "all finite inputs", "bf16"),
    Case("tanh", (-_LARGEST, _LARGEST), "ulp", "tanhf(x)", "all finite inputs", "bf16"),
)
# Results of libraries, in f32 and from their mathematics: PyTorch's CUDA kernels (compiled without --use_fast_math) and
# CUTLASS's epilogues, whose tanh is the fast one.
_CUBE = "0.7978845608f * (x + 0.044715f * x * x * x)"
LIBRARIES = {
    "gelu": {
        "PyTorch, exact": (f"x * 0.5f * (1.0f + erff(x * {_HALF}))", False),
        "PyTorch, tanh": (f"0.5f * x * (1.0f + tanhf({_CUBE}))", False),
        "CUTLASS, exact": (f"x * 0.5f * (1.0f + erff(x * {_HALF}))", False),
        "CUTLASS, tanh": ("0.5f * x * (1.0f + tanh_approx(x * (0.7978845608f + 0.0356774081f * x * x)))", False),
    },
    "gelu_grad": {
        "PyTorch, exact": (f"0.5f * (1.0f + erff(x * {_HALF})) + x * ({_PHI})", False),
        "PyTorch, tanh": ("gelu_tanh_grad(x, tanhf(x * (0.7978845608f + 0.0356774081f * x * x)))", False),
        "CUTLASS, tanh": ("gelu_tanh_grad(x, tanh_approx(x * (0.7978845608f + 0.0356774081f * x * x)))", False),
    },
    "silu": {
        "PyTorch": ("x / (1.0f + expf(-x))", False),
        "CUTLASS, fast": ("x * (0.5f * tanh_approx(0.5f * x) + 0.5f)", False),
    },
    "silu_grad": {"PyTorch": ("silu_grad(x, 1.0f / (1.0f + expf(-x)))", False)},
    "tanh": {"PyTorch": ("tanhf(x)", False), "CUTLASS, fast": ("tanh_approx(x)", False)},
}
BEFORE = """
__device__ float tanh_approx(float x) { float y; asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ float gelu_tanh_grad(float x, float t) {
    float k = 0.7978845608f + 3.0f * 0.0356774081f * x * x;
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * k;
}
__device__ float silu_grad(float x, float s) { return s * (1.0f + x * (1.0f - s)); }
"""
