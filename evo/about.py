"""Name and version of evo."""

from importlib.metadata import version

DISTRIBUTION = "evo-ptx"  # what package managers call evo
VERSION = version(DISTRIBUTION)
