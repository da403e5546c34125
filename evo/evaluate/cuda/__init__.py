"""The CUDA backend: `evaluator` wires compiler, `lane` and `plans` together; `device` is the only module that opens a GPU."""
