"""The exceptions that end a command.

Owns the promise that each ends in one clear line, a user's mistake with exit code 2 and a GPU's failure with 3; the command line
keeps it.
"""


class UserError(Exception):
    """Something that the user gave is wrong; the message is one line that names it and says what would be right."""


class DeviceFailure(Exception):
    """The GPU failed, and this process cannot use it any more.

    failures: the programs of the pack that was at fault, as `evo.evaluate.Failure`.
    """

    def __init__(self, message: str, failures: list):
        super().__init__(message)
        self.failures = failures
