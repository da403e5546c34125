"""Shared by tests of kernels: copies of the task with its own kernel."""

import shutil
from pathlib import Path

import pytest

OWN_KERNEL = Path(__file__).parents[2] / "data" / "own_kernel"


@pytest.fixture
def own_kernel(tmp_path, nvrtc):
    """Copies the task with these texts for kernel.cu and other files; returns task, language and folder."""

    def make(kernel: str | None = None, *, options: dict | None = None, files: dict[str, str] | None = None):
        from evo.instructions import shipped_instruction_set
        from evo.language.program import Language
        from evo.tasks.folder import load_task

        folder = tmp_path / f"task_{len(list(tmp_path.iterdir()))}"
        shutil.copytree(OWN_KERNEL, folder, ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in {**({} if kernel is None else {"kernel.cu": kernel}), **(files or {})}.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        task = load_task(folder, options or {})
        return task, Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items())), folder

    return make
