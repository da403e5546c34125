"""The self-test of a GPU, from end to end over the stand-in: a GPU that fails it is not used, one line says why, and the outcome
is remembered."""

import pytest

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")


class Machine:
    """Runs verbs of `evo` on the stand-in, whose self-test really runs, and which pays off unless `costs` say otherwise."""

    def __init__(self, fork_evo, folder):
        self._fork_evo, self.folder, self._log = fork_evo, folder, folder / "self_tests.txt"

    def __call__(self, *args, **fault: str):
        """Options of the stand-in, and of the self-test's alone: `self_test`, `wrong`, `seconds`."""
        prefix = "EVO_EMULATED_GPU_SELF_TEST"
        costs = fault.pop("costs", "1e-3,1e-4")
        environment = {
            "EVO_EMULATED_GPU": "",
            "EVO_EMULATED_GPU_COSTS": costs,
            prefix: fault.pop("self_test", ""),
            f"{prefix}_LOG": str(self._log),
        }
        environment |= {f"{prefix}_{name.upper()}": value for name, value in fault.items()}
        return self._fork_evo(*args, env={**environment, "XDG_CACHE_HOME": str(self.folder / "cache")})

    @property
    def num_tests(self) -> int:
        """Processes of self-tests so far."""
        return len(self._log.read_text().splitlines()) if self._log.exists() else 0


@pytest.fixture
def machine(fork_evo, tmp_path):
    return Machine(fork_evo, tmp_path)


def test_a_gpu_that_fails_the_self_test_is_not_used_and_not_tested_again(machine, line_config):
    on_cpu = machine("run", line_config("auto"), wrong="sub.ftz.f32")
    assert on_cpu.returncode == 0, on_cpu.stderr
    assert "programs run on: CPU\n" in on_cpu.stdout
    (line,) = on_cpu.stderr.splitlines()
    told = line.removeprefix("warning: programs do not run on the GPU: ")
    assert told.startswith("Emulated GPU failed the self-test: sub_ftz_f32 differs at 1 of 8,100 points, such as a ")
    assert told.endswith("; test it again with: evo doctor --test")
    # Without the fault: the outcome is remembered.
    refused = machine("run", line_config("cuda"))
    assert refused.returncode == 2
    assert refused.stderr == f"evo: evaluation.backend: cuda cannot be used here: {told}; use 'cpu' or 'auto'\n"
    again = machine("run", line_config("auto"))
    assert (again.returncode, again.stderr) == (0, on_cpu.stderr)
    assert machine.num_tests == 1


def test_memory_that_another_process_took_is_no_failed_test(machine, line_config):
    first = machine("run", line_config("cuda"), self_test="fault=alloc:1:2")
    assert first.returncode == 2
    assert "Emulated GPU could not be tested: " in first.stderr
    assert "failed the self-test: " in machine("run", line_config("cuda"), wrong="sub.ftz.f32").stderr  # it is tested again
    assert machine.num_tests == 2
