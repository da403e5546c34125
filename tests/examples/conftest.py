"""What tests of the examples share: where they lie, and how one is imported or run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"


def load_example(path: str):
    """The module of a Python example, by its path in docs/examples."""
    file = EXAMPLES / path
    # As when the example is run: what lies beside it can be imported.
    sys.path.insert(0, str(file.parent))
    try:
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(file.parent))


@pytest.fixture(scope="session")
def example():
    """Imports a Python example by its path in docs/examples."""
    return load_example
