"""What formulas are searched with unless the user says otherwise: the sections `program` and `search` of a config.

configs/symbolic_regression.yaml says the same; a test holds them together.
"""

from __future__ import annotations

from typing import Any

# Name of a function: its instruction, and how often it is drawn.
FUNCTIONS = {
    "add": ("add_ftz_f32", 3.0),
    "sub": ("sub_ftz_f32", 2.0),
    "mul": ("mul_ftz_f32", 4.0),
    "div": ("div_approx_ftz_f32", 2.0),
    "sin": ("sin_approx_ftz_f32", 0.7),
    "cos": ("cos_approx_ftz_f32", 0.7),
    "exp2": ("ex2_approx_ftz_f32", 0.7),
    "log2": ("lg2_approx_ftz_f32", 0.7),
    "sqrt": ("sqrt_approx_ftz_f32", 0.5),
    "tanh": ("tanh_approx_f32", 0.5),
    "abs": ("abs_ftz_f32", 0.5),
    "neg": ("neg_ftz_f32", 0.5),
    "min": ("min_ftz_f32", 0.5),
    "max": ("max_ftz_f32", 0.5),
}
DEFAULT_FUNCTIONS = ("add", "sub", "mul", "div", "sin", "cos", "exp2", "log2", "sqrt")

VOCABULARY: dict[str, Any] = {
    "instructions": dict(FUNCTIONS[name] for name in DEFAULT_FUNCTIONS),
    "meta": {"dup": 1, "swap": 1, "yank_dup": 0.5, "rotate": 0.5, "constant": 0.5},
    "groups": {"instructions": 0.5, "inputs": 0.3, "constants": 0.15, "meta": 0.05},
    "constants": {"f32_sigma": 2.0},
}
PROGRAM: dict[str, Any] = {"max_length": 64, "vocabulary": VOCABULARY}
SEARCH: dict[str, Any] = {"archive": {"type": "GridArchive", "dims": [48, 16]}, "batch_size": 1024}
