"""A run's page over HTTP, renewed with each checkpoint.

Owns the server and when the page is made anew. It serves that page alone, from memory, and reads no file that a request names.
Knows nothing of what the page shows.
"""

import gzip
import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

from evo.errors import UserError, one_line, os_errors_as
from evo.report.page import page_of
from evo.report.page.content import MAX_ELITES
from evo.report.page.pictures import Pictures
from evo.run.run import Run

HOST = "127.0.0.1"
LOOK_S = 1.0  # between looks for a new checkpoint
READ_S = 30.0  # that a connection may be silent
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "frame-ancestors 'none'",  # a page cannot set this one itself; it sets the others
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True)
class Served:
    """A version of the page. html: also as gzip, for clients that take it."""

    version: str
    html: bytes
    gzipped: bytes


class PageServer(AbstractContextManager["PageServer"]):
    """Serves the page of a run to browsers of this machine until it is told to stop.

    Args:
        path: the run's folder.
        overrides: of its config.
        port: where to listen; 0: any that is free.
        warn: called with a line if the run cannot be read any more; the last page stays.

    Raises:
        UserError: no run, a finished run without elites, a damaged one, or the port cannot be used.
    """

    def __init__(self, path: Path, overrides: tuple[str, ...], port: int, warn: Callable[[str], None]):
        self._path, self._overrides, self._warn = path.absolute(), overrides, warn
        self._pictures: Pictures | None = None
        self._stopped = Event()
        self._seen: tuple[str, ...] = ()
        self._warned = ""
        with os_errors_as(f"--port {port}: cannot listen"):
            self._server = _Server((HOST, port), self)
        try:
            self.served = self._made(first=True)
        except BaseException:
            self._server.server_close()
            raise
        port = self._server.server_address[1]
        self.hosts = {f"{name}:{port}" for name in ("localhost", HOST)}
        self.url = f"http://{HOST}:{port}/"
        self._thread = Thread(target=self._server.serve_forever, name="watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Makes `serve` return. May be called by a signal's handler."""
        self._stopped.set()

    def serve(self) -> None:
        """Renews the page until `stop`."""
        while not self._stopped.wait(LOOK_S):
            if _checkpoints(self._path) == self._seen:
                continue
            try:
                self.served = self._made()
                self._warned = ""
            except UserError as error:
                line = one_line(error)
                if line != self._warned:
                    self._warn(f"{line}; the page stays as it was")
                self._warned = line

    def close(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _made(self, *, first: bool = False) -> Served:
        """The page as the last checkpoint has it."""
        seen = _checkpoints(self._path)
        run, notes = Run.view(self._path, self._overrides)
        with closing(run):
            if first:
                for line in notes:
                    self._warn(line)
                if not len(run.search.elites()) and not run.run_dir.is_running():
                    raise UserError("the archive is empty, and the run is not in progress", run.run_dir.path)
            if self._pictures is None and run.search.problem.task.has_pictures():
                self._pictures = Pictures(min(run.search.layout.num_cells, MAX_ELITES))
            version = hashlib.sha256("\n".join(seen).encode()).hexdigest()[:16]
            html = page_of(run, self._pictures, live=version)
        self._seen = seen
        return Served(version, html, gzip.compress(html, compresslevel=1))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a browser keeps its connection open

    def __init__(self, address: tuple[str, int], watch: PageServer):
        self.watch = watch
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser may leave at any time, which does no harm."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "evo"
    sys_version = ""
    timeout = READ_S

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, *args: Any) -> None:
        """Prints nothing: a line for each request, one every two seconds, would be noise."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send an error as plain text, without the request."""
        del explain
        self.close_connection = True  # the rest of an unread request is not a new request
        status = HTTPStatus(code)
        headers = {**_HEADERS, "Content-Type": "text/plain", "Connection": "close"}
        self._send(status, f"{message or status.phrase}\n".encode(), headers)

    def _answer(self) -> None:
        watch, url = self.server.watch, urlsplit(self.path)
        # Another site's name that leads here (DNS rebinding) is not this server's.
        if self.headers.get("Host", "").lower() not in watch.hosts:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        if url.path != "/" or url.netloc:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        served = watch.served
        headers = {**_HEADERS, "ETag": f'"{served.version}"', "Vary": "Accept-Encoding"}
        if self.headers.get("If-None-Match") == headers["ETag"]:
            self._send(HTTPStatus.NOT_MODIFIED, b"", headers)
        elif "gzip" in self.headers.get("Accept-Encoding", ""):
            self._send(HTTPStatus.OK, served.gzipped, {**headers, "Content-Encoding": "gzip"})
        else:
            self._send(HTTPStatus.OK, served.html, headers)

    def _send(self, status: HTTPStatus, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status is not HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _checkpoints(path: Path) -> tuple[str, ...]:
    """Names and times of a run's checkpoints: they change when the run has got on."""
    stamps = []
    for file in sorted((path / "checkpoints").glob("*.ckpt")):
        try:
            stamps.append(f"{file.name} {file.stat().st_mtime_ns}")
        except FileNotFoundError:  # the run has just replaced it
            continue
    return tuple(stamps)
