"""Lowered programs in float64, node by node: the reference for derivatives and tuning. Uses nothing of csrc/."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from evo.native.stack_ptx import NO_VALUE, NodeKind

FUNCTIONS = {
    "add_ftz_f32": np.add,
    "sub_ftz_f32": np.subtract,
    "mul_ftz_f32": np.multiply,
    "fma_rn_ftz_f32": lambda a, b, c: a * b + c,
    "div_approx_ftz_f32": np.divide,
    "abs_ftz_f32": np.abs,
    "neg_ftz_f32": np.negative,
    "min_ftz_f32": np.fmin,
    "max_ftz_f32": np.fmax,
    "rcp_approx_ftz_f32": np.reciprocal,
    "sqrt_approx_ftz_f32": np.sqrt,
    "rsqrt_approx_ftz_f32": lambda a: 1.0 / np.sqrt(a),
    "sin_approx_ftz_f32": np.sin,
    "cos_approx_ftz_f32": np.cos,
    "lg2_approx_ftz_f32": np.log2,
    "ex2_approx_ftz_f32": np.exp2,
    "tanh_approx_f32": np.tanh,
    "copysign_f32": lambda a, b: np.copysign(b, a),  # the sign of the first operand, the magnitude of the second
    "setp_lt_ftz_f32": np.less,
    "selp_f32": lambda a, b, p: np.where(p, a, b),
    "setp_eq_u32": np.equal,
    "cvt_rn_f32_u32": lambda a: np.asarray(a, np.float64),
}


def run_float64(instruction_set: Any, lowered: Any, inputs: Mapping[int, Any], constants: Mapping[int, float]) -> list:
    """The value of each request.

    Args:
        lowered: a `Lowered` or `Derived`.
        inputs: by register.
        constants: by node, instead of the program's own; others are taken from its bits.
    """
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for index, node in enumerate(lowered.nodes):
            payload, first = int(node["payload"]), int(node["first_operand"])
            if node["kind"] == NodeKind.INPUT:
                value = inputs[payload]
            elif node["kind"] == NodeKind.CONSTANT:
                is_float = instruction_set.stacks[node["stack_idx"]].literal_prefix == "f32"
                bits = np.uint32(payload)
                value = constants.get(index, np.float64(bits.view(np.float32)) if is_float else bits)
            else:
                operands = (values[int(i)] for i in lowered.operands[first : first + int(node["num_operands"])])
                value = FUNCTIONS[instruction_set.instructions[payload].name](*operands)
            values[int(node["first_value"])] = value
    return [0.0 if request == NO_VALUE else values[int(request)] for request in lowered.request_values]
