"""A grid loads little of pyribs, and pyribs is whole for whoever asks for more."""

import subprocess
import sys

import pytest
from processes import LIMIT_S

SLOW = {"numba", "pandas", "scipy", "sklearn"}
MAKE_GRID = """
import sys, threading
from evo.search.archives import make_archive
archive = make_archive("GridArchive", 8, [(0.0, 1.0)], 1, {"dims": [4]})
loaded = {name.partition(".")[0] for name in sys.modules}
assert "ribs" in loaded and not loaded & %s, loaded
"""
USES = {
    "names of the package, asked for on several threads": """
def ask():
    import ribs
    kinds.append(ribs.archives.CVTArchive)
kinds = []
threads = [threading.Thread(target=ask) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
from ribs.archives import ArchiveDataFrame, CVTArchive, GridArchive
import ribs.schedulers, numpy_groupies
assert kinds == [CVTArchive] * 4
assert isinstance(archive, GridArchive) and issubclass(ArchiveDataFrame, __import__("pandas").DataFrame)
assert ribs.archives.CVTArchive is CVTArchive and ribs.emitters and ribs.__version__ == "0.12.0"
assert numpy_groupies.aggregate([0, 0, 1], [1, 2, 3]).tolist() == [3, 3]
assert not hasattr(ribs, "nothing") and not hasattr(ribs.archives, "nothing")
""",
    "a grid of pyribs": """
from ribs.archives._grid_archive import GridArchive
grid = GridArchive(solution_dim=1, dims=[4], ranges=[(0, 1)])
grid.add([[1.0], [2.0], [3.0]], [5.0, 6.0, 7.0], [[0.1], [0.2], [0.9]])
assert sorted(grid.data("objective").tolist()) == [6.0, 7.0]
assert grid.data(return_type="pandas")["index"].tolist() == [0, 3]
""",
    "threads that import what the other completes": """
def tell(event, args):
    if event == "import" and threading.current_thread() is other:
        begun.set()
    elif event == "import" and args[0] == "ribs.emitters._bayesian_opt_emitter" and not other.ident:
        other.start()  # while this thread holds the import lock of ribs.emitters
        assert begun.wait(60)

begun, other = threading.Event(), threading.Thread(target=lambda: __import__("ribs").schedulers)
sys.addaudithook(tell)
import ribs.emitters
other.join()
assert issubclass(ribs.emitters.GaussianEmitter, ribs.emitters.EmitterBase)
""",
}


@pytest.mark.parametrize("use", USES)
def test_pyribs_is_whole_after_a_grid_that_loaded_nothing_slow(use):
    subprocess.run([sys.executable, "-c", MAKE_GRID % SLOW + USES[use]], check=True, timeout=LIMIT_S)
