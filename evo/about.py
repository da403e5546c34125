"""What evo is called, and its version."""

from importlib.metadata import version

DISTRIBUTION = "evo-ptx"  # what package managers call evo
VERSION = version(DISTRIBUTION)
