"""Instructions on which a GPU has the bits of a CPU."""

EXACT = (
    "add_ftz_f32",
    "sub_ftz_f32",
    "mul_ftz_f32",
    "fma_rn_ftz_f32",
    "min_ftz_f32",
    "max_ftz_f32",
    "abs_ftz_f32",
    "neg_ftz_f32",
)
