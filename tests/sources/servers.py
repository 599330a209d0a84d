"""Loopback servers: files with ranges and versions, and as much of the hub's protocol as a reader asks for."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "c0ffee" + "0" * 34


@dataclass
class Served:
    """What a server offers and how it behaves, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    gated: bool = False
    version: str = "v1"
    #: answers of these codes come first
    failures: list[int] = field(default_factory=list)
    #: bytes after which the connection is closed, an answer each
    cuts: list[int] = field(default_factory=list)
    #: (method, path, bytes sent)
    asked: list[tuple[str, str, int]] = field(default_factory=list)
    url: str = ""
    #: answers have a Content-Length; without it a body ends with the connection
    announced: bool = True
    #: bytes by which the first partial answer lies elsewhere than asked
    shift: int = 0
    #: the ETag of the first partial answer, if it is wrong
    answer_tag: str = ""
    #: an answer with a part of a file never ends
    stalls: bool = False
    #: bytes that are added to a part of a file
    added: int = 0
    released: threading.Event = field(default_factory=threading.Event)

    def tag(self, name: str) -> str:
        return f'"{self.version}-{name.replace("/", "-")}"'

    def sent(self, ending: str) -> int:
        return sum(size for method, path, size in self.asked if method == "GET" and path.endswith(ending))


@contextmanager
def serving(served: Served) -> Iterator[Served]:
    """Serve files at `/NAME`, or a hub's repository where the names begin with `ORG/MODEL/`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, body: bool) -> None:
            path = self.path.partition("?")[0].lstrip("/")
            if served.failures:
                return self.send(served.failures.pop(0), b"", {}, body)
            if served.gated:
                return self.send(403, b"", {"X-Error-Code": "GatedRepo"}, body)
            if path.startswith("api/models/"):
                return self.listing(path.split("/"), body)
            name = path.replace("/resolve/main/", "/").replace(f"/resolve/{COMMIT}/", "/")
            if name not in served.files:
                repository = any(known.startswith(name.rpartition("/")[0] + "/") for known in served.files)
                code = "EntryNotFound" if repository else "RepoNotFound"
                return self.send(404, b"", {"X-Error-Code": code, "X-Repo-Commit": COMMIT}, body)
            data = served.files[name]
            tag = served.tag(name)
            headers = {"ETag": tag, "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
            asked = self.headers.get("Range")
            if not asked or not served.ranges or self.headers.get("If-Range", tag) != tag:
                return self.send(200, data, headers, body)
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last or len(data)) + 1, len(data))
            start, served.shift = start + served.shift, 0
            headers["ETag"], served.answer_tag = served.answer_tag or tag, ""
            if start >= len(data):
                return self.send(416, b"", {"Content-Range": f"bytes */{len(data)}"}, body)
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
            return self.send(206, data[start:end] + b"x" * served.added, headers, body)

        def listing(self, parts: list[str], body: bool) -> None:
            """Answer api/models/ORG/MODEL/tree/REVISION."""
            prefix = "/".join(parts[2:4]) + "/"
            names = [name.removeprefix(prefix) for name in served.files if name.startswith(prefix)]
            if not names:
                return self.send(404, b"", {"X-Error-Code": "RepoNotFound"}, body)
            tree = [
                {"type": "file", "path": name, "size": len(served.files[prefix + name]), "oid": "0"} for name in names
            ]
            return self.send(200, json.dumps(tree).encode(), {"Content-Type": "application/json"}, body)

        def send(self, code: int, data: bytes, headers: dict[str, str], body: bool) -> None:
            sent = data if body else b""
            if sent and served.cuts:
                sent, self.close_connection = sent[: served.cuts.pop(0)], True
            served.asked.append((self.command, self.path, len(sent)))  # before the reader can go on
            self.send_response(code)
            length = {"Content-Length": str(len(data))} if served.announced else {"Connection": "close"}
            for name, value in {**headers, **length}.items():
                self.send_header(name, value)
            with suppress(ConnectionError):  # a reader may hang up
                self.end_headers()
                if served.stalls and code == 206:
                    served.released.wait(10)
                self.wfile.write(sent)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield served
    finally:
        served.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
