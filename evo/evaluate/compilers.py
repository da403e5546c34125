"""Executors of a run's compile requests, by its options. Knows nothing of requests."""

from pathlib import Path

from evo.compile.farm import why_no_farm
from evo.compile.pool import CompilePool
from evo.compile.request import CompileExecutor
from evo.errors import UserError
from evo.evaluate.options import EvaluationOptions


def open_compilers(options: EvaluationOptions) -> CompileExecutor:
    """Opens the run's farm, or processes of this machine. Raises UserError: the farm cannot be used."""
    farm = options.farm
    if farm is None:
        return CompilePool(options.num_compilers, options.compile_seconds)
    if reason := why_no_farm():
        raise UserError(reason, "evaluation.farm")
    from evo.compile.farm.server import CompileFarm

    keys, server_file = (Path(path) if path else None for path in (farm.keys, farm.server_file))
    return CompileFarm(farm.listen, keys, options.num_compilers, options.compile_seconds, server_file=server_file)
