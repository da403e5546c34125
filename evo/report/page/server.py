"""A run's page over HTTP, renewed with each checkpoint.

Owns the server, who may ask it, and when the page is made anew. It serves that page alone, from memory, and reads no file that a
request names. Knows nothing of what the page shows.
"""

import gzip
import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from evo.errors import UserError, one_line, os_errors_as
from evo.report.elites import hash_text as hash_of
from evo.report.page import page_of
from evo.report.page.content import MAX_ELITES
from evo.report.page.pictures import Pictures, picture
from evo.run.run import Run

LOOK_S = 1.0  # between looks for a new checkpoint
MIN_SIZE, MAX_SIZE = 16, 2048  # of a picture that is asked for, in pixels
READ_S = 30.0  # that a connection may be silent
_TOKEN_BYTES = 16
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
    """Serves the page of a run until it is told to stop.

    Args:
        path: the run's folder.
        overrides: of its config.
        host, port: where to listen; port 0: any that is free. A host beyond this machine needs a token, which is part of `url`.
        warn: called with a line if the run cannot be read any more; the last page stays.

    Raises:
        UserError: no run, a finished run without elites, a damaged one, or the address cannot be used.
    """

    def __init__(self, path: Path, overrides: tuple[str, ...], host: str, port: int, warn: Callable[[str], None]):
        self._path, self._overrides, self._warn = path.absolute(), overrides, warn
        self._pictures: Pictures | None = None
        self._run: Run | None = None  # that the page shows
        self._lock = Lock()  # of the run: one picture at a time
        self._stopped = Event()
        self._seen: tuple[str, ...] = ()
        self._warned = ""
        addresses = _resolved(host, port)
        is_local = all(ipaddress.ip_address(address[0]).is_loopback for _, address in addresses)
        self.token = None if is_local else secrets.token_urlsafe(_TOKEN_BYTES)
        family, address = addresses[0]
        with os_errors_as(f"--host {host} --port {port}: cannot listen"):
            self._server = _Server(address, family, self)
        try:
            self.served = self._made(first=True)
        except BaseException:
            self._server.server_close()
            raise
        self._port = self._server.server_address[1]
        if ipaddress.ip_address(address[0]).is_unspecified:
            host = socket.gethostname()  # listening at every address has no name of its own
        shown = f"[{host}]" if ":" in host else host
        self.hosts = {f"{name}:{self._port}" for name in ("localhost", "127.0.0.1", "[::1]", shown)} if is_local else None
        self.url = f"http://{shown}:{self._port}/" + (f"?token={self.token}" if self.token else "")
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
        with self._lock:  # a picture may be drawn from it
            run, self._run = self._run, None
        if run:
            run.close()

    def picture(self, hash_text: str, size: int) -> bytes | None:
        """The picture of an elite of this hash as WebP, drawn now; None: the page has none, or its task cannot draw it."""
        with self._lock, suppress(UserError):
            if self._run and self._pictures and MIN_SIZE <= size <= MAX_SIZE:
                elites = self._run.search.elites()
                for row in np.flatnonzero([hash_of(digest) == hash_text for digest in elites.hash])[:1]:
                    return picture(self._run.search.problem, elites.solution[row], size)
        return None

    def __exit__(self, *_: object) -> None:
        self.close()

    def _made(self, *, first: bool = False) -> Served:
        """The page as the last checkpoint has it."""
        seen = _checkpoints(self._path)
        run, notes = Run.view(self._path, self._overrides)
        try:
            if first:
                for line in notes:
                    self._warn(line)
                if not len(run.search.elites()) and not run.run_dir.is_running():
                    raise UserError("the archive is empty, and the run is not in progress", run.run_dir.path)
            if self._pictures is None and run.search.problem.task.has_pictures():
                self._pictures = Pictures(min(run.search.layout.num_cells, MAX_ELITES))
            version = hashlib.sha256("\n".join(seen).encode()).hexdigest()[:16]
            html = page_of(run, self._pictures, live=version)
        except BaseException:
            run.close()
            raise
        with self._lock:
            before, self._run = self._run, run
        if before:
            before.close()
        self._seen = seen
        return Served(version, html, gzip.compress(html, compresslevel=1))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a browser keeps its connection open

    def __init__(self, address: Any, family: socket.AddressFamily, watch: PageServer):
        self.address_family = family
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
        if watch.hosts is not None and self.headers.get("Host", "").lower() not in watch.hosts:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        token = parse_qs(url.query).get("token", [""])[-1]
        if watch.token is not None and not hmac.compare_digest(token.encode(), watch.token.encode()):
            self.send_error(HTTPStatus.FORBIDDEN, "The address needs the token that evo watch printed.")
            return
        if url.path == "/picture" and not url.netloc:
            asked = {name: values[-1] for name, values in parse_qs(url.query).items()}
            size = int(asked["size"]) if re.fullmatch("[0-9]{1,4}", asked.get("size", "")) else 0
            if (drawn := watch.picture(asked.get("hash", ""), size)) is None:
                self.send_error(HTTPStatus.NOT_FOUND)
            else:
                self._send(HTTPStatus.OK, drawn, {**_HEADERS, "Content-Type": "image/webp"})
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


def _resolved(host: str, port: int) -> list[tuple[socket.AddressFamily, Any]]:
    """The addresses of a host name; the first is listened at."""
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UserError(f"--host {host}: no such address: {error}") from error
    return [(family, address) for family, _, _, _, address in addresses]


def _checkpoints(path: Path) -> tuple[str, ...]:
    """Names and times of a run's checkpoints: they change when the run has got on."""
    stamps = []
    for file in sorted((path / "checkpoints").glob("*.ckpt")):
        try:
            stamps.append(f"{file.name} {file.stat().st_mtime_ns}")
        except FileNotFoundError:  # the run has just replaced it
            continue
    return tuple(stamps)
