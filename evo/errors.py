"""What can fail: the exceptions that end a command, and the kinds of failures of a program, which end nothing.

Owns the promise that each exception ends in one clear line, a user's mistake with exit code 2 and a GPU's failure with 3; the
command line keeps it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class FailureKind(StrEnum):
    """Why a program has no scores although its words are valid."""

    REJECTED = "rejected"  # by the compiler
    TIMED_OUT = "timed out"  # its compilation exceeded the time limit: the one kind that another try may change
    DIED = "died"  # the process that compiled it, twice
    DEVICE_FAILED = "device failed"  # while it ran the program's pack


class UserError(Exception):
    """Something that the user gave is wrong; the message is one line that names it and says what would be right."""


class DeviceFailure(Exception):
    """The GPU failed, and this process cannot use it any more.

    failures: the programs of the pack that was at fault, as `evo.evaluate.Failure`.
    """

    def __init__(self, message: str, failures: list[Any]):
        super().__init__(message)
        self.failures = failures
