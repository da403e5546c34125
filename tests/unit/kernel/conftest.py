"""What tests of kernels share: copies of the task with a kernel of its own."""

import os
import shutil
from pathlib import Path

import pytest

OWN_KERNEL = Path(__file__).parents[2] / "data" / "own_kernel"


@pytest.fixture(scope="session")
def nvrtc():
    """The test needs NVRTC; without it it is skipped, in CI never."""
    from evo.kernel import nvrtc

    try:
        nvrtc.version()
    except nvrtc.NvrtcMissing as error:
        assert not os.environ.get("CI"), str(error)
        pytest.skip(str(error))


@pytest.fixture
def own_kernel(tmp_path, nvrtc):
    """Copies the task, with kernel.cu and other files replaced by these texts, and gives it with its language."""

    def make(kernel: str | None = None, *, options: dict | None = None, files: dict[str, str] | None = None):
        from evo.instructions import default_instruction_set
        from evo.language.program import Language
        from evo.task import load_task

        folder = tmp_path / f"task_{len(list(tmp_path.iterdir()))}"
        shutil.copytree(OWN_KERNEL, folder, ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in {**({} if kernel is None else {"kernel.cu": kernel}), **(files or {})}.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        task = load_task(folder, options or {})
        return task, Language(default_instruction_set(), tuple(task.inputs.items()), tuple(task.outputs.items())), folder

    return make
