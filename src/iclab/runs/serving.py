"""`iclab serve`: a run's folder on a local address, live while the run is going.

Files are the truth here too: the server reads the files of the run and tells open pages when they change. It listens on
the loopback interface by default, only reads, and serves nothing outside the folder.
"""

from __future__ import annotations

import contextlib
import errno
import http.server
import ipaddress
import json
import mimetypes
import socket
import sys
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

from iclab.errors import InputError, in_words, require
from iclab.report.progress import render_progress
from iclab.runs.manifest import read_manifest
from iclab.runs.status import read_status

# Nothing is fetched from elsewhere, whatever a folder holds. Pages allow only their own scripts.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
POLICY += "form-action 'none'; frame-ancestors 'none'; script-src "
PATIENCE = 20.0  # seconds for a client to send its request or to take its answer
SERVED = ("index.html", "claims.json", "manifest.json", "figures", "results", "models")
EVERY = 0.5  # seconds between two looks at the folder
ALIVE = 15.0  # seconds of silence before a connection is tested


class Server(http.server.ThreadingHTTPServer):
    """A server for one folder."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, directory: Path, host: str = "127.0.0.1", port: int = 8765) -> None:
        self.directory = directory.resolve()
        identity = read_manifest(directory)["identity"]
        require(
            "grid" not in identity,
            f"{directory} is a sweep, which has no page; `iclab serve` shows runs of `iclab reproduce`.",
        )
        require({"profile", "seeds"} <= set(identity), f"{directory} is not a run that `iclab serve` can show.")
        require(host.strip(), "--host is empty; the default is 127.0.0.1, which only this machine can reach.")
        require(0 <= port < 65536, f"--port is {port}; it must lie between 0 (any free port) and 65535.")
        self.stopped = threading.Event()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler)
        except (OSError, TypeError, UnicodeError) as error:  # the last two if the host is not a name at all
            taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            reason = "it is in use" if taken else getattr(error, "strerror", None) or str(error)
            raise InputError(
                f"cannot listen on {host} port {port}: {reason}; choose another --port or --host."
            ) from error

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(str(self.server_address[0])).is_loopback

    @property
    def url(self) -> str:
        """The address of the page."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that left or is too slow; report any other error in one line and serve the next request."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            sys.stderr.write(f"iclab: cannot answer a request: {in_words(error or Exception())}\n")

    def shutdown(self) -> None:
        """Stop, and close the streams of open pages."""
        self.stopped.set()
        super().shutdown()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    server: Server
    timeout = PATIENCE
    server_version = "iclab"
    sys_version = ""

    def do_GET(self) -> None:
        """A page, a file, or the stream of changes."""
        address = _split(self.path)
        path = address.path if address is not None else ""  # names no file
        if not self._known_host():
            self._send(403, b"this server does not answer to that host name", "text/plain")
        elif path == "/":
            self._send(200, self._page().encode(), "text/html; charset=utf-8")
        elif path == "/status.json":
            self._send(200, _dump(read_status(self.server.directory)), "application/json")
        elif path == "/events":
            self._stream()
        else:
            self._file(path)

    do_HEAD = do_GET

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""

    def _known_host(self) -> bool:
        """Whether the request names a local host. A foreign page whose name resolves to it must not read us."""
        asked = _split(f"//{self.headers.get('Host', '')}")
        return not self.server.loopback or (asked is not None and asked.hostname in ("localhost", "127.0.0.1", "::1"))

    def _page(self) -> str:
        status = read_status(self.server.directory)
        index = self.server.directory / "index.html"
        if index.is_file() and (status is None or not status["going"]):
            return index.read_text(encoding="utf-8").replace("<body>", '<body data-live="yes">', 1)
        return render_progress(read_manifest(self.server.directory)["identity"], status)

    def _file(self, path: str) -> None:
        found = resolve(self.server.directory, path)
        if found is None:
            self._send(404, b"there is no such file", "text/plain")
            return
        kind = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
        self._send(200, found.read_bytes(), kind)

    def _send(self, code: int, content: bytes, kind: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self._common_headers(scripts=kind.startswith("text/html"))
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(OSError):  # the client has left
                self.wfile.write(content)

    def _common_headers(self, scripts: bool = False) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        allowed = "'unsafe-inline'" if scripts else "'none'"
        self.send_header("Content-Security-Policy", f"{POLICY}{allowed}")

    def _stream(self) -> None:
        """Server-sent events: "status" when the run has progressed, "page" when the page has changed."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self._common_headers()
        self.end_headers()
        if self.command == "HEAD":
            return
        status, page, said = None, _signature(self.server.directory), time.monotonic()
        try:
            while not self.server.stopped.is_set():
                now = _dump(read_status(self.server.directory))
                if now != status:
                    self._say("status", now)
                    status, said = now, time.monotonic()
                if _signature(self.server.directory) != page:
                    page, said = _signature(self.server.directory), time.monotonic()
                    self._say("page", b"{}")
                if time.monotonic() - said > ALIVE:
                    self.wfile.write(b": still here\n\n")
                    said = time.monotonic()
                self.server.stopped.wait(EVERY)
        except OSError:  # the page was closed
            pass

    def _say(self, event: str, data: bytes) -> None:
        self.wfile.write(b"event: " + event.encode() + b"\ndata: " + data + b"\n\n")
        self.wfile.flush()


def _split(address: str) -> urllib.parse.SplitResult | None:
    """The parts of an address; None if it is not an address."""
    try:
        return urllib.parse.urlsplit(address)
    except ValueError:
        return None


def resolve(directory: Path, path: str) -> Path | None:
    """The file of the run at this path; None if it does not exist or does not belong to the run."""
    parts = [part for part in urllib.parse.unquote(path).split("/") if part]
    if (
        not parts
        or parts[0] not in SERVED
        or any(part.startswith(".") or "\\" in part or "\0" in part for part in parts)
    ):
        return None
    found = directory.joinpath(*parts).resolve()
    return found if found.is_file() and found.is_relative_to(directory.resolve()) else None


def _signature(directory: Path) -> tuple[Any, ...]:
    """A value that changes with the page: with a new index.html, or when a run begins or ends."""
    status = read_status(directory)
    try:
        written = (directory / "index.html").stat().st_mtime_ns
    except OSError:
        written = 0
    return written, status is not None and status["going"]


def _dump(status: dict[str, Any] | None) -> bytes:
    return json.dumps(status, allow_nan=False).encode()
