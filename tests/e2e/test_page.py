"""evo page and evo watch (evo.cli.view_verbs): what they write and serve, and what they refuse."""

import base64
import gzip
import http.client
import json
import re
import shutil
import signal
from pathlib import Path
from urllib.parse import urlsplit

from .conftest import num_rows, run_folders


def test_page_writes_one_file_that_names_the_run_and_is_the_plot(fork_evo, finished_run, tmp_path):
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    plot = run / "plots" / "page.html"
    completed = fork_evo("page", run)
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, f"{plot}\n", "")
    written = plot.read_text()
    assert written.startswith("<!doctype html>")
    packed = base64.b64decode(re.search(r'id="data">(.*?)</script>', written)[1])
    data = json.loads(gzip.decompress(packed))
    titles = [graph["title"] for graph in data["graphs"]]
    assert titles == ["QD score", "coverage, %", "best objective", "duplicates among offspring, %"] and data["run"] == run.name
    plot.unlink()
    assert fork_evo("plot", run, "--plot", "page").stdout == f"{plot}\n"
    is_same = plot.read_text() == written  # compared here: the difference of two pages would fill the report
    assert is_same


def test_the_page_of_a_run_in_progress_is_left_to_watch(fork_evo, start_fork, small_config, tmp_path):
    started = start_fork("run", small_config({"stop": {"generations": 10**6}, "output": {"plots": []}}))
    started.wait_until(lambda: run_folders(tmp_path / "runs") and num_rows(run_folders(tmp_path / "runs")[0]) > 1)
    (run,) = run_folders(tmp_path / "runs")
    refused = fork_evo("page", run)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"evo: {run}: the run is in progress; look at it with: evo watch RUN\n"
    assert not (run / "plots").exists()


def test_watch_serves_the_page_and_ends_with_ctrl_c(start_evo, finished_run):
    watch = start_evo("watch", finished_run)
    watch.wait_until(lambda: watch.stdout.count("\n") == 2)
    first, url = watch.stdout.splitlines()
    assert first == f"watching {finished_run}; Ctrl-C ends"
    address = urlsplit(url)
    assert (address.hostname, address.path, address.query) == ("127.0.0.1", "/", "")

    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.request("GET", "/")
    assert finished_run.parent.name.encode() in connection.getresponse().read()
    watch.signal(signal.SIGINT)
    assert watch.wait() == 0
    assert watch.stderr == ""
