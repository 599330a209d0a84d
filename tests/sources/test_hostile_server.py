"""Servers that answer anything but what was asked for: downloads and hub reads end in one sentence, and keep nothing bad."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from embinit.errors import EmbinitError
from embinit.sources.catalogue import Entry
from embinit.sources.fetch import fetch

from .test_fetch import DATA
from .test_hub import ask, repository

OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(DATA)


def _chunked(*chunks: bytes) -> bytes:
    return OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(chunks)


#: Whole answers, headers included, to any request.
ANSWERS = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "noise": bytes(range(256)) * 40,
    "half a header": b"HTTP/1.1 20",
    "a status of letters": b"HTTP/1.1 abc OK\r\n\r\n" + DATA,
    "a status of 99 digits": b"HTTP/1.1 " + b"9" * 99 + b" OK\r\n\r\n",
    "headers without end": OK + b"".join(b"X-%d: y\r\n" % i for i in range(1000)) + LENGTH + b"\r\n" + DATA,
    "a header of a megabyte": OK + b"X: " + b"y" * (1 << 20) + b"\r\n" + LENGTH + b"\r\n" + DATA,
    "a negative length": OK + b"Content-Length: -5\r\n\r\n" + DATA[:100],
    "a length of letters": OK + b"Content-Length: many\r\n\r\n" + DATA[:100],
    "an endless length": OK + b"Content-Length: %d\r\n\r\n" % 10**30 + DATA[:100],
    "two lengths": OK + b"Content-Length: 5\r\nContent-Length: 100\r\n\r\n" + DATA[:100],
    "a part that nobody asked for": b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 5-104/9\r\n"
    + LENGTH
    + b"\r\n"
    + DATA,
    "a part of nothing": b"HTTP/1.1 206 Partial\r\nContent-Length: 0\r\n\r\n",
    "a range that is none": b"HTTP/1.1 416 No\r\nContent-Range: bytes */0\r\n\r\n",
    "chunks of another size": _chunked(b"ffffff\r\n", DATA[:100]),
    "chunks of no size": _chunked(b"zz\r\n", DATA[:100]),
    "chunks of a negative size": _chunked(b"-5\r\n", DATA[:100]),
    "an unknown packing": OK + b"Content-Encoding: br\r\n" + LENGTH + b"\r\n" + b"\x8b" * len(DATA),
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "a circle": b"HTTP/1.1 302 Found\r\nLocation: /v.txt\r\nContent-Length: 0\r\n\r\n",
    "a file of this machine": b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
    "no address": b"HTTP/1.1 302 Found\r\nLocation: \x00http://[::\r\nContent-Length: 0\r\n\r\n",
    "a version of two lines": OK + b'ETag: "a\r\n b"\r\n' + LENGTH + b"\r\n" + DATA[:100],
    "a version that is no text": OK + b"ETag: \xff\xfe\x00\r\n" + LENGTH + b"\r\n" + DATA[:100],
}


@contextmanager
def answering(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """Serve these bytes to each request, and yield the address."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.05)
    done = threading.Event()

    def serve() -> None:
        while not done.is_set():
            with suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.settimeout(1)
                    connection.sendall(answer(connection.recv(1 << 16)))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        done.set()
        thread.join()
        server.close()


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_download_is_the_file_or_one_sentence(answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "folder"
    with answering(lambda _: answer) as url:
        try:
            got = fetch(Entry("glove:test", f"{url}/v.txt"), folder, pause=0)
            assert got.path.read_bytes() == DATA
        except EmbinitError as error:
            assert str(error)
            assert "\n" not in str(error)
            assert not (folder / "v.txt").exists()
            assert not (folder / "v.txt.json").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    with answering(lambda _: OK + LENGTH + b"\r\n" + DATA) as url:  # what was left behind does no harm
        assert fetch(Entry("glove:test", f"{url}/v.txt"), folder, pause=0).path.read_bytes() == DATA


@pytest.mark.long
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_read_of_the_hub_is_one_sentence(answer: bytes, tmp_path: Path) -> None:
    assert repository()  # the answers are never those of a repository
    with answering(lambda _: answer) as url:
        assert ask(url, tmp_path)["error"]
