"""The CUDA backend: `evaluator` connects the compiler to `lane` and `plans`. Only `device` opens a GPU."""
