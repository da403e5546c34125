"""Cells of equal size along each measure: pyribs' GridArchive."""

from __future__ import annotations

from ribs.archives import GridArchive

from evo.search.archives.base import ProgramArchive


class ProgramGridArchive(ProgramArchive, GridArchive):
    """A grid of programs; `dims` are the cells along each measure."""
