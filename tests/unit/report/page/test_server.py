"""evo.report.page.server: who may ask, what is answered, and that the page follows the run's checkpoints."""

import base64
import gzip
import http.client
import json
import re
from threading import Thread
from urllib.parse import urlsplit

import pytest
from processes import LIMIT_S, wait_until

import evo.report.page.server
from evo.report.page.server import PageServer
from evo.run.run import LiveRun
from evo.storage.files import write_atomically


@pytest.fixture(scope="module")
def finished(finish):
    """The folder of a run whose page is made in a moment: it has few elites."""
    return finish([2, 1], 1)


@pytest.fixture(scope="module")
def server(finished):
    """A server of a finished run's page."""
    with PageServer(finished, (), 0, pytest.fail) as started:
        yield started


def ask(server, target: str | None = None, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=LIMIT_S)
    connection.request(method, target or "/", headers={"Host": address.netloc, **headers})
    answer = connection.getresponse()
    return answer, answer.read()


def num_generations(html: bytes) -> int:
    """The run, by the data of its page."""
    data = re.search(rb'id="data">([^<]*)<', html)
    assert data
    return json.loads(gzip.decompress(base64.b64decode(data[1])))["counts"]["generations"]


def test_the_page_is_served_once_per_version(server):
    answer, page = ask(server)
    assert answer.status == 200 and page == server.served.html and page.startswith(b"<!doctype html>")
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    again, nothing = ask(server, **{"If-None-Match": answer.headers["ETag"]})
    assert (again.status, nothing) == (304, b"")
    packed, content = ask(server, **{"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip" and gzip.decompress(content) == page
    head, nothing = ask(server, method="HEAD")
    assert (head.status, int(head.headers["Content-Length"]), nothing) == (200, len(page), b"")


@pytest.mark.parametrize("target", ["/page.html", "/..", "/%2e%2e/config.yaml", "http://other.example/x", "/;/"])
def test_no_other_path_is_served(server, target):
    answer, text = ask(server, target)
    assert (answer.status, text) == (404, b"Not Found\n")


@pytest.mark.parametrize("host", ["other.example", "localhost.other.example", "127.0.0.1", "127.0.0.1:1", ""])
def test_a_name_that_is_not_this_servers_is_refused(server, host):
    answer, text = ask(server, Host=host)
    assert (answer.status, text) == (421, b"Misdirected Request\n")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST"])
def test_a_name_of_this_machine_is_answered(server, host):
    assert ask(server, Host=f"{host}:{urlsplit(server.url).port}")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(server, method):
    assert ask(server, method=method)[0].status == 501


def test_the_page_follows_the_checkpoints_and_outlives_a_damaged_one(new_run, monkeypatch, tmp_path):
    monkeypatch.setattr(evo.report.page.server, "LOOK_S", 0.01)
    run = new_run([], {"stop": {"generations": 2}})
    run.execute()
    run.close()
    folder = run.run_dir.path
    warnings: list[str] = []
    with PageServer(folder, (), 0, warnings.append) as server:
        first = server.served
        thread = Thread(target=server.serve)
        thread.start()
        resumed, _ = LiveRun.resume(folder, ("stop.generations=3",))
        resumed.execute()
        resumed.close()
        wait_until(lambda: server.served.version != first.version and num_generations(server.served.html) == 3)
        for path in sorted((folder / "checkpoints").iterdir()):  # the newest last: the server may look in between
            write_atomically(path, b"no checkpoint")
        wait_until(lambda: warnings)
        kept = server.served
        assert num_generations(kept.html) == 3
        assert ask(server)[1] == kept.html
        server.stop()
        thread.join()
    assert len(warnings) == 1 and warnings[0].endswith("; the page stays as it was") and "cut short at 13 bytes" in warnings[0]
