"""The process that tries programs alone, on a stand-in with options of its own (see `emulated_gpu`)."""

from __future__ import annotations

import os

from emulated_gpu.__main__ import prepare


def main() -> None:
    """As `evo.evaluate.cuda.trial_child.main`."""
    if path := os.environ.get("EVO_EMULATED_GPU_TRIAL_LOG"):
        with open(path, "a") as file:
            file.write(f"{os.getpid()}\n")
    lasting = [option for option in os.environ.get("EVO_EMULATED_GPU", "").split(",") if not option.startswith("fault=")]
    os.environ["EVO_EMULATED_GPU"] = ",".join(filter(None, [*lasting, os.environ.get("EVO_EMULATED_GPU_TRIAL", "")]))
    prepare()
    from evo.evaluate.cuda import trial_child

    trial_child.main()
