"""A compile request in the farm: which answers are ones to it, and what an answer means.

Knows nothing of workers and sockets.
"""

from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from evo.compile.farm import protocol
from evo.compile.farm.protocol import Answer
from evo.compile.farm.schedule import Job
from evo.compile.pool import WorkerDied
from evo.compile.request import Compiled, CompileFailure, CompileRequest
from evo.errors import FailureKind
from evo.kernel.pointwise import kernel_name
from evo.kernel.template import ENTRY, POINTWISE


class Call:
    """A compile request in the farm, and the future that waits for it."""

    def __init__(self, request: CompileRequest):
        self.request = request
        self.shared = protocol.shared_of(request)
        self.future: Future[Compiled | CompileFailure] = Future()
        self.local: Future[Compiled | CompileFailure] | None = None
        self.job: Job[Call] = Job(self)

    def problem(self, answer: Answer) -> str | None:
        """Why this answer is not one to the request; None if it is."""
        if answer.seal != protocol.seal(self.shared.digest, self.request.hashes, answer.content):
            return "it is damaged, or meant for another request"
        if answer.outcome == protocol.CANCELLED:
            return "the request was not cancelled"
        if answer.outcome != protocol.COMPILED:
            return None
        problem = protocol.cubin_problem(answer.content, self._kernels())
        return f"a cubin that is {problem}" if problem else None

    def _kernels(self) -> list[str]:
        if self.request.template != POINTWISE.content:
            return [ENTRY]
        return [kernel_name(index) for index in range(len(self.request.kernel_sizes))]


def outcome_of(answer: Answer, maker: str) -> Compiled | CompileFailure | BaseException:
    """What a pool would give, made by this maker."""
    if answer.outcome == protocol.COMPILED:
        return Compiled(answer.content, answer.compiler_s, answer.emission_s, maker)
    log = answer.content.decode(errors="replace")
    if answer.outcome == FailureKind.TIMED_OUT:
        return TimeoutError(log)
    if answer.outcome == FailureKind.DIED:
        return WorkerDied(log)
    return CompileFailure(FailureKind.REJECTED, log)


def resolve(future: Future[Any], outcome: object) -> None:
    """Ends a future, unless it has ended."""
    with suppress(InvalidStateError):  # it was cancelled
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
