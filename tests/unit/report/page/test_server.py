"""evo.report.page.server: who may ask, what is answered, and that the page follows the run's checkpoints."""

from __future__ import annotations

import gzip
import http.client
import time
from threading import Thread
from urllib.parse import urlsplit

import pytest

import evo.report.page.server
from evo.config import load_config
from evo.errors import UserError
from evo.report.page.server import PageServer
from evo.run.run import Run

WAIT_S = 300.0  # far beyond what any of these waits takes: it ends a test that hangs


@pytest.fixture
def folder(small_config):
    """The folder of a short finished run."""
    run = Run.start(load_config(small_config({"stop": {"generations": 2}})), "small")
    run.execute(lambda *_: None, lambda _: False)
    run.close()
    return run.run_dir.path


@pytest.fixture
def watch(folder):
    """Starts watching a folder; gives the lines that it warned with too."""
    started = []

    def start(path=folder, host="127.0.0.1") -> tuple[PageServer, list[str]]:
        warnings: list[str] = []
        started.append(PageServer(path, (), host, 0, warnings.append))
        return started[-1], warnings

    yield start
    for each in started:
        each.stop()
        each.close()


def ask(
    watch: PageServer, target: str | None = None, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    address = urlsplit(watch.url)
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=60)
    connection.request(method, target or f"/?{address.query}", headers={"Host": address.netloc, **headers})
    answer = connection.getresponse()
    return answer, answer.read()


def test_the_page_is_served_once_per_version(watch):
    served, _ = watch()
    answer, page = ask(served)
    assert answer.status == 200 and page == served.served.html and page.startswith(b"<!doctype html>")
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    again, nothing = ask(served, **{"If-None-Match": answer.headers["ETag"]})
    assert (again.status, nothing) == (304, b"")
    packed, content = ask(served, **{"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip" and gzip.decompress(content) == page
    head, nothing = ask(served, method="HEAD")
    assert (head.status, int(head.headers["Content-Length"]), nothing) == (200, len(page), b"")


@pytest.mark.parametrize("target", ["/page.html", "/..", "/%2e%2e/config.yaml", "http://other.example/x", "/;/"])
def test_no_other_path_is_served(watch, target):
    answer, text = ask(watch()[0], target)
    assert (answer.status, text) == (404, b"Not Found\n")


@pytest.mark.parametrize("host", ["other.example", "localhost.other.example", "127.0.0.1", "127.0.0.1:1", ""])
def test_a_name_that_is_not_this_servers_is_refused(watch, host):
    served, _ = watch()
    answer, text = ask(served, Host=host)
    assert (answer.status, text) == (421, b"Misdirected Request\n")
    port = urlsplit(served.url).port
    for own in (f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert ask(served, Host=own)[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(watch, method):
    answer, _ = ask(watch()[0], method=method)
    assert answer.status == 501


def test_beyond_this_machine_a_token_is_needed(watch):
    served, _ = watch(host="0.0.0.0")
    other, _ = watch(host="0.0.0.0")
    assert len(served.token) >= 20 and served.token != other.token
    for target in ("/", "/?token=", f"/?token={served.token}x", f"/?token={other.token}", "/?token=%ff"):
        answer, text = ask(served, target)
        assert answer.status == 403 and b"<" not in text
    assert ask(served)[0].status == 200 and served.url.endswith(f"/?token={served.token}")
    assert ask(served, f"/x?token={served.token}")[0].status == 404


def test_the_page_follows_the_checkpoints_and_outlives_a_damaged_one(watch, folder, monkeypatch):
    monkeypatch.setattr(evo.report.page.server, "LOOK_S", 0.01)
    served, warnings = watch()
    first = served.served
    thread = Thread(target=served.serve)
    thread.start()
    run, _ = Run.resume(folder, ("stop.generations=3",))
    run.execute(lambda *_: None, lambda _: False)
    run.close()
    wait_until(lambda: served.served.version != first.version and b'"generations":3' in served.served.html)
    for path in (folder / "checkpoints").iterdir():
        path.write_bytes(b"no checkpoint")
    wait_until(lambda: warnings)
    kept = served.served
    assert b'"generations":3' in kept.html
    assert ask(served)[1] == kept.html
    served.stop()
    thread.join()
    assert len(warnings) == 1 and warnings[0].endswith("; the page stays as it was") and "cut short at 13 bytes" in warnings[0]


def wait_until(condition) -> None:
    end_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.002)


def test_an_address_in_use_is_refused(watch, folder):
    port = urlsplit(watch()[0].url).port
    with pytest.raises(UserError, match=f"--host 127.0.0.1 --port {port}: cannot listen: "):
        PageServer(folder, (), "127.0.0.1", port, lambda _: None)
