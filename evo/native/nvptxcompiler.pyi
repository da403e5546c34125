from collections.abc import Sequence

class CompileError(Exception):
    reason: str
    log: str
    def __init__(self, reason: str, log: str) -> None: ...

def version() -> tuple[int, int]: ...
def compile(  # noqa: A001 - as in `re`, it is called by its module's name
    ptx: str | bytes, options: Sequence[str] = ("--gpu-name=sm_90",)
) -> bytes: ...
