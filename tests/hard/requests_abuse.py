"""What a client can do to `iclab serve`: nothing outside of the run is given, the terminal stays quiet, and the next
client is served.
"""

import itertools
import re
import socket
import subprocess
import sys
import time

from measured import SHORTEST
from trial import command

NAME = "HTTP abuse"
SERVE = "import sys; from iclab import cli; from iclab.runs import serving; serving.PATIENCE = serving.Handler.timeout = 2.0; sys.argv[0] = 'iclab'; cli.main()"
SECRET = b"this is outside"
UP = (
    "..",
    "%2e%2e",
    "%2E.",
    "..%2f..",
    "%252e%252e",
    "..%5c..",
    "..\\..",
    "....//",
    "%c0%ae%c0%ae",
    "..;",
    "%00..",
    "..%00",
)
STARTS = (
    "/",
    "/figures/",
    "/results/",
    "//",
    "/figures/../",
    "/./",
    "/models/",
    "figures/",
    "http://127.0.0.1/",
    "/figures/%2f",
    "\\",
)
ENDS = ("secret.txt", "run/../secret.txt", "secret.txt%00.svg", "secret.txt?x=1#y")
METHODS = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "G" * 100, "", "GET\0")
HOSTS = (
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost:80@evil.example",
    "[::1",
    "[",
    "",
    "a" * 5000,
    "127.0.0.1, evil",
    "\xff",
    "localhost evil",
)


def try_all(category, folder):
    run = folder / "run"
    assert command("reproduce", SHORTEST, "--seeds", "2", "--set", "steps=5", "--out", run).status == 0
    (folder / "secret.txt").write_bytes(SECRET)
    (run / "figures" / "link.svg").symlink_to(folder / "secret.txt")
    (run / "figures" / "out").symlink_to(folder)
    served = [sys.executable, "-c", SERVE, "serve", str(run), "--port", "0"]
    process = subprocess.Popen(served, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    port = int(re.search(r":(\d+)/", process.stdout.readline())[1])
    try:
        Trial(category, port, folder).run()
    finally:
        process.terminate()
        _, err = process.communicate(timeout=20)
    if err.strip():
        category.bad("traceback" if "Traceback" in err else "unclear", "the server's own terminal", err)


class Trial:
    """Requests to one server."""

    def __init__(self, category, port, folder):
        self.category, self.port, self.folder = category, port, folder

    def run(self):
        self.whole = self.ask(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert self.whole.startswith(b"HTTP/1.0 200"), self.whole[:200]
        for name in ("paths", "methods", "hosts", "sizes", "nonsense", "slow", "vanished", "many"):
            for what, request in getattr(self, name)():
                self.one(f"{name}: {what[:120]!r}", request)
            self.alive(name)

    def one(self, what, request):
        self.category.tried += 1
        try:
            answer = self.ask(request) if isinstance(request, bytes) else request()
        except TimeoutError:
            self.category.bad("unclear", what, "no answer, and the connection stays open")
            return
        if SECRET in answer or b"root:" in answer:
            self.category.bad("wrong", what, "a file outside of the run was given")
        elif answer and not re.match(
            rb"HTTP/1\.[01] [1-5]|this server does not answer to that host name$|<!DOCTYPE HTML>", answer
        ):  # without a head, to HTTP/0.9
            self.category.bad("unclear", what, repr(answer[:200]))
        if b"Traceback" in answer:
            self.category.bad("traceback", what, repr(answer[:500]))
        if what.startswith("hosts") and b" 200 " in answer[:20]:
            self.category.bad("wrong", what, "another host's name is answered")

    def alive(self, behind):
        """The page is still the same."""
        if self.ask(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")[-1000:] != self.whole[-1000:]:
            self.category.bad("lost", behind, "the server answers no more as it did")

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def ask(self, request):
        """All that comes; a server that closes the connection has answered too."""
        with self.connect() as connection:
            try:
                connection.sendall(request)
                return b"".join(iter(lambda: connection.recv(65536), b""))
            except (ConnectionError, BrokenPipeError):
                return b""

    def paths(self):
        for start, up, end in itertools.product(STARTS, UP, ENDS):
            path = f"{start}{up}/{end}"
            yield path, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode("latin-1")
        absolute = self.folder / "secret.txt"
        for path in (f"/{absolute}", f"//{absolute}", f"file://{absolute}", "/figures/link.svg", "/figures/out/secret.txt", "/%00", "/figures/\0",
                     "/.lock", "/trainings/", "/results/", "/figures", "/etc/passwd", "/%2fetc%2fpasswd", "/proc/self/environ", "/" + "a/" * 3000, "/figures/" + "x" * 5000,
                     "/%ff%fe", "/%", "/%zz", "?", "*", "/[", "//[", "http://[", "/claims.json/x", "/claims.json.sha256"):  # fmt: skip
            yield path, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode("latin-1")

    def methods(self):
        for method in METHODS:
            yield method, f"{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello".encode("latin-1")

    def hosts(self):
        for host in HOSTS:
            yield host, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1")
        yield "none", b"GET / HTTP/1.1\r\n\r\n"
        yield "none, 1.0", b"GET /claims.json HTTP/1.0\r\n\r\n"

    def sizes(self):
        usual = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
        yield "line", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        yield "line without end", b"a" * 1_000_000
        yield "header", usual + b"X: " + b"a" * 100_000 + b"\r\n\r\n"
        yield "headers", usual + b"X: a\r\n" * 5000 + b"\r\n"
        yield "body", usual.replace(b"GET", b"POST") + b"Content-Length: 100000000\r\n\r\n" + b"a" * 5_000_000
        yield "length", usual + b"Content-Length: 999999999999999999999\r\n\r\n"
        yield "negative length", usual + b"Content-Length: -1\r\n\r\n"
        yield "chunks", usual + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n"

    def nonsense(self):
        for request in (b"\0" * 100 + b"\r\n\r\n", b"\r\n\r\n", b"GET\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1 x\r\n\r\n", b"GET / HTTP/x\r\n\r\n",
                        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"SSH-2.0-x\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n", b"GET \xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-999999999999\r\n\r\n", b"GET / HTTP/1.1\nHost: localhost\n\n"):  # fmt: skip
            yield repr(request), request

    def slow(self):
        """A byte at a time, and nothing at all: the server lets go after its patience."""

        def drop(text, pause):
            def send():
                with self.connect() as connection:
                    try:
                        for byte in text:
                            connection.sendall(bytes([byte]))
                            time.sleep(pause)
                        return b"".join(iter(lambda: connection.recv(65536), b""))
                    except (ConnectionError, BrokenPipeError):
                        return b""

            return send

        yield "bytes one at a time", drop(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 0.02)
        yield "half a request", drop(b"GET / HT", 0.1)
        yield "nothing", drop(b"", 0.0)
        yield "half of the headers", drop(b"GET / HTTP/1.1\r\nHost: local", 0.05)

    def vanished(self):
        def go(text):
            def send():
                connection = self.connect()
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset, not closed
                connection.sendall(text)
                connection.close()
                return b""

            return send

        for number in range(20):
            path = ("/", "/events", "/index.html", "/claims.json", "/x")[number % 5]
            yield path, go(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            yield path, go(f"GET {path} HT".encode())

    def many(self):
        """Two hundred connections that say nothing or listen to events; meanwhile somebody else is served."""

        def crowd():
            connections = [self.connect() for _ in range(200)]
            for connection in connections[::2]:
                connection.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = self.ask(b"GET /claims.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for connection in connections:
                connection.close()
            return answer if b" 200 " in answer[:20] else b"refused"

        yield "200 connections", crowd
