"""Work for a process of `evo.evaluate.cuda.device_child`: the script that the environment names."""

import os
import runpy


def run(argument, report):
    return runpy.run_path(os.environ["DEVICE_WORK"], {"report": report}).get("problem")
