"""evo.report.page.server: who may ask, what is answered, and that the page follows the run's checkpoints."""

import base64
import gzip
import http.client
import io
import json
import re
from threading import Thread
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from processes import LIMIT_S, wait_until

import evo.report.page.server
from evo.errors import UserError
from evo.report.elites import hash_text
from evo.report.page.server import PageServer
from evo.report.plot.pictures import STILL_T
from evo.run.run import LiveRun, Run
from evo.storage.files import write_atomically


@pytest.fixture(scope="module")
def finished(finish):
    """The folder of a run whose page is made in a moment: it has few elites."""
    return finish([2, 1], 1)


@pytest.fixture(scope="module")
def server(finished):
    """A server of a finished run's page."""
    with PageServer(finished, (), "127.0.0.1", 0, pytest.fail) as started:
        yield started


def ask(server, target: str | None = None, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=LIMIT_S)
    connection.request(method, target or f"/?{address.query}", headers={"Host": address.netloc, **headers})
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


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "[::1]"])
def test_a_name_of_this_machine_is_answered(server, host):
    assert ask(server, Host=f"{host}:{urlsplit(server.url).port}")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(server, method):
    assert ask(server, method=method)[0].status == 501


def test_beyond_this_machine_a_token_is_needed(server, finished):
    with PageServer(finished, (), "0.0.0.0", 0, pytest.fail) as beyond:
        assert len(beyond.token) >= 20
        for target in ("/", "/?token=", f"/?token={beyond.token}x", f"/?token={beyond.token[::-1]}", "/?token=%ff"):
            answer, text = ask(beyond, target)
            assert answer.status == 403 and b"<" not in text
        assert ask(beyond)[0].status == 200 and beyond.url.endswith(f"/?token={beyond.token}")
        assert ask(beyond, f"/x?token={beyond.token}")[0].status == 404


def test_the_page_follows_the_checkpoints_and_outlives_a_damaged_one(new_run, monkeypatch, tmp_path):
    monkeypatch.setattr(evo.report.page.server, "LOOK_S", 0.01)
    run = new_run([], {"stop": {"generations": 2}})
    run.execute()
    run.close()
    folder = run.run_dir.path
    warnings: list[str] = []
    with PageServer(folder, (), "127.0.0.1", 0, warnings.append) as server:
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


def test_an_address_in_use_is_refused(server, finished):
    port = urlsplit(server.url).port
    with pytest.raises(UserError, match=f"--host 127.0.0.1 --port {port}: cannot listen: "):
        PageServer(finished, (), "127.0.0.1", port, lambda _: None)


def test_a_picture_is_drawn_at_the_size_that_is_asked_for(server, finished):
    run, _ = Run.view(finished)
    row = int(np.argmin(run.search.elites().objective))
    asked = f"/picture?hash={hash_text(run.search.elites().hash[row])}"
    answer, content = ask(server, f"{asked}&size=200")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/webp")
    with Image.open(io.BytesIO(content)) as picture:
        drawn = np.asarray(picture.convert("RGB"), float)
    expected = run.search.problem.draw(run.search.elites().solution[row : row + 1], 200, STILL_T)[0]
    assert drawn.shape == expected.shape and np.abs(drawn - expected).mean() < 16.0  # WebP loses a little
    for wrong in (asked, f"{asked}&size=0", f"{asked}&size=99999", f"{asked}&size=-1", "/picture?hash=0&size=64", "/picture"):
        assert ask(server, wrong)[0].status == 404
