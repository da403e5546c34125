"""The one exception for a user's mistake.

Owns the promise that such a mistake ends in one clear line and exit code 2; the command line keeps it.
"""


class UserError(Exception):
    """Something that the user gave is wrong; the message is one line that names it and says what would be right."""
