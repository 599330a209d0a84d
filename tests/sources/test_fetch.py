"""Downloads over loopback: whole or absent, resumed, and checked."""

import gzip
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from embinit.sources.catalogue import Entry
from embinit.sources.fetch import fetch
from embinit.sources.load import load
from tests.refusal import refused

from .servers import Served, serving

DATA = b"".join(b"w%04d %.4f %.4f\n" % (row, row / 5_000, 0.25) for row in range(5_000))
SHA = hashlib.sha256(DATA).hexdigest()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def served():
    with serving(Served({"v.txt": DATA})) as running:
        yield running


def entry(served: Served, file: str = "v.txt", **fields: object) -> Entry:
    return Entry("glove:test", f"{served.url}/{file}", **fields)


def get(served: Served, folder, **fields: object):
    return fetch(entry(served, **fields), folder, pause=0)


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_whole_download(served, tmp_path):
    steps = []
    got = fetch(entry(served), tmp_path / "new" / "folder", lambda *step: steps.append(step))
    assert got.path.read_bytes() == DATA
    assert (got.sha256, got.checked, got.new) == (SHA, "first", True)
    assert names(got.path.parent) == {"v.txt", "v.txt.json"}
    assert ("downloading", 100_000, 100_000) in steps
    assert ("checking", 100_000, 100_000) in steps


def test_what_is_there_is_not_fetched_again(served, tmp_path):
    get(served, tmp_path)
    again = get(served, tmp_path)
    assert (again.new, again.checked, again.sha256) == (False, "recorded", SHA)
    assert len(served.asked) == 1


def test_a_file_that_was_changed_is_an_error(served, tmp_path):
    get(served, tmp_path).path.write_bytes(b"shorter")
    with refused(tmp_path / "v.txt", "fetch"):
        get(served, tmp_path)


def test_a_broken_connection_is_resumed(served, tmp_path):
    served.cuts = [30_000, 20_000]
    assert get(served, tmp_path).path.read_bytes() == DATA
    assert [size for _, _, size in served.asked] == [30_000, 20_000, 50_000]


def test_an_interrupted_download_goes_on_in_the_next_run(served, tmp_path):
    (tmp_path / "v.txt.part").write_bytes(DATA[:60_000])
    (tmp_path / "v.txt.part.version").write_text(served.tag("v.txt"))
    assert get(served, tmp_path).path.read_bytes() == DATA
    assert served.sent("v.txt") == 40_000
    assert names(tmp_path) == {"v.txt", "v.txt.json"}


def test_a_download_interrupted_after_its_last_byte_is_not_repeated(served, tmp_path):
    (tmp_path / "v.txt.part").write_bytes(DATA)
    (tmp_path / "v.txt.part.version").write_text(served.tag("v.txt"))
    assert get(served, tmp_path).path.read_bytes() == DATA
    assert served.sent("v.txt") == 0


def test_a_part_longer_than_the_file_is_thrown_away(served, tmp_path):
    (tmp_path / "v.txt.part").write_bytes(DATA + b"more")
    (tmp_path / "v.txt.part.version").write_text(served.tag("v.txt"))
    assert get(served, tmp_path).path.read_bytes() == DATA


def test_another_version_starts_anew(served, tmp_path):
    (tmp_path / "v.txt.part").write_bytes(b"x" * 60_000)
    (tmp_path / "v.txt.part.version").write_text('"an older version"')
    assert get(served, tmp_path).path.read_bytes() == DATA
    assert served.sent("v.txt") == 100_000


def test_a_part_of_unknown_version_starts_anew(served, tmp_path):
    (tmp_path / "v.txt.part").write_bytes(b"x" * 60_000)
    assert get(served, tmp_path).path.read_bytes() == DATA


def test_a_server_without_ranges_starts_anew(served, tmp_path):
    served.ranges, served.cuts = False, [30_000]
    assert get(served, tmp_path).path.read_bytes() == DATA
    assert [size for _, _, size in served.asked] == [30_000, 100_000]


def test_errors_of_the_server(served, tmp_path):
    with refused("absent.txt", 404):
        get(served, tmp_path, file="absent.txt")
    assert len(served.asked) == 1
    served.failures = [500, 503]
    assert get(served, tmp_path).path.read_bytes() == DATA
    served.failures = [500] * 5
    with refused("other.txt", "500, 5 times; run the same command again"):
        get(served, tmp_path, file="other.txt")


def test_a_dead_server(tmp_path):
    with serving(Served()) as running:
        pass
    with refused("refused"):
        get(running, tmp_path)
    assert names(tmp_path) == set()


def test_a_folder_that_cannot_be_written(served, tmp_path):
    (tmp_path / "file").write_text("")
    with refused("cannot write", tmp_path / "file"):
        get(served, tmp_path / "file" / "folder")


# ---------------------------------------------------------------- checksums


def test_a_published_checksum_is_compared(served, tmp_path):
    assert get(served, tmp_path, sha256=SHA, published="a paper").checked == "published"
    assert get(served, tmp_path, sha256=SHA, published="a paper").checked == "published"


def test_a_wrong_checksum_keeps_no_file(served, tmp_path):
    with refused(SHA, f"a paper publishes {'0' * 64}; the download was removed"):
        get(served, tmp_path, sha256="0" * 64, published="a paper")
    assert names(tmp_path) == set()


def test_without_a_published_checksum_the_first_one_counts(served, tmp_path):
    get(served, tmp_path).path.unlink()
    assert get(served, tmp_path).checked == "recorded"
    get(served, tmp_path).path.unlink()
    served.files["v.txt"] = b"something else"
    with refused(hashlib.sha256(b"something else").hexdigest(), f"the first download had {SHA}"):
        get(served, tmp_path)
    assert names(tmp_path) == {"v.txt.json"}


def test_the_error_of_another_version_tells_how_to_accept_it(served, tmp_path):
    get(served, tmp_path).path.unlink()
    served.files["v.txt"] = DATA[:50_000]
    with refused(f"remove {tmp_path / 'v.txt.json'}"):
        get(served, tmp_path)
    (tmp_path / "v.txt.json").unlink()
    assert get(served, tmp_path).checked == "first"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html><body>Moved</body></html>", "web page"),
        (b"", "empty"),
        (b"\x00\x01\x02" * 1000, "binary file of an unknown format"),
        (gzip.compress(DATA)[:-2000], "cut short"),
    ],
    ids=["a page", "nothing", "noise", "a cut archive"],
)
def test_only_a_file_of_vectors_is_recorded(body, reason, served, tmp_path):
    served.files["v.txt"] = body
    with refused("glove:test: the download is no complete file of vectors and was removed", reason):
        get(served, tmp_path)
    assert names(tmp_path) == set()
    served.files["v.txt"] = DATA
    assert get(served, tmp_path).checked == "first"


def test_the_announced_size_must_be_the_expected_one(served, tmp_path):
    with refused("announces 100,000 bytes, but the file has 99,999"):
        get(served, tmp_path, size=99_999)
    assert not (tmp_path / "v.txt").exists()


def test_an_endless_body_is_stopped(served, tmp_path, monkeypatch):
    monkeypatch.setattr("embinit.sources.fetch.LARGEST", 50_000)
    served.announced = False
    with refused("more than 50,000 bytes"):
        get(served, tmp_path)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("wrong", ["offset", "version"])
def test_a_part_of_another_file_is_not_appended(wrong, served, tmp_path):
    (tmp_path / "v.txt.part").write_bytes(DATA[:60_000])
    (tmp_path / "v.txt.part.version").write_text(served.tag("v.txt"))
    if wrong == "offset":
        served.shift = 10
    else:
        served.answer_tag = '"another"'
    assert get(served, tmp_path).path.read_bytes() == DATA


def test_two_downloads_at_once_are_one(served, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda _: get(served, tmp_path), range(4)))
    assert sorted(one.new for one in got) == [False, False, False, True]
    assert {one.path.read_bytes() for one in got} == {DATA}
    assert served.sent("v.txt") == len(DATA)
    assert names(tmp_path) == {"v.txt", "v.txt.json"}


NOTE = '{"sha256": "x", "checked": "published", "size": 3}'


@pytest.mark.parametrize(
    "note",
    ["{", "[]", "{}", '"x"', '{"size": 3}', NOTE.replace("published", "never"), NOTE.replace("3", '"3"'), "[" * 9999],
)
def test_a_damaged_note_is_an_error(note, served, tmp_path):
    (tmp_path / "v.txt.json").write_text(note)
    with refused("v.txt.json is damaged"):
        get(served, tmp_path)


# ---------------------------------------------------------------- unpacking, mirrors, loading


def test_unpacking(served, tmp_path):
    packed = gzip.compress(DATA)
    served.files["m.bin.gz"] = packed
    got = get(served, tmp_path, file="m.bin.gz", unpack=True)
    assert (got.path.name, got.path.read_bytes()) == ("m.bin", DATA)
    assert got.sha256 == hashlib.sha256(packed).hexdigest()
    assert names(tmp_path) == {"m.bin", "m.bin.json"}


@pytest.mark.parametrize("data", [b"no gzip", gzip.compress(DATA)[:5000]], ids=["another kind", "cut"])
def test_what_cannot_be_unpacked_is_not_kept(data, served, tmp_path):
    served.files["m.bin.gz"] = data
    with refused("glove:test", "was removed"):
        get(served, tmp_path, file="m.bin.gz", unpack=True)
    assert names(tmp_path) == set()


def test_a_file_that_should_be_packed_and_is_not_is_removed(served, tmp_path):
    served.files["m.bin.gz"] = DATA
    with refused("m.bin.gz.part", "unpacked"):
        get(served, tmp_path, file="m.bin.gz", unpack=True)
    assert not {"m.bin", "m.bin.gz.part"} & names(tmp_path)


def test_a_mirror_is_asked_instead(served, tmp_path, monkeypatch):
    monkeypatch.setenv("EMBINIT_MIRROR", f"{served.url}/mirror/")
    served.files["mirror/glove.zip"] = DATA
    got = fetch(Entry("glove:test", "https://example.invalid/data/glove.zip"), tmp_path, pause=0)
    assert got.path.read_bytes() == DATA
    assert json.loads((tmp_path / "glove.zip.json").read_text())["url"] == "https://example.invalid/data/glove.zip"


def test_a_mirror_that_is_no_address(tmp_path, monkeypatch):
    monkeypatch.setenv("EMBINIT_MIRROR", "mirror.example")
    with refused("mirror.example/glove.zip"):
        fetch(Entry("glove:test", "https://example.invalid/glove.zip"), tmp_path, pause=0)


def test_what_was_fetched_loads_by_name(served, tmp_path, monkeypatch):
    monkeypatch.setenv("EMBINIT_CACHE", str(tmp_path))
    with refused("run: embinit fetch fasttext:de"):
        load("fasttext:de")
    served.files["cc.de.300.vec.gz"] = gzip.compress(b"2 3\nder 1 2 3\ndie 4 5 6\n")
    fetch(entry(served, "cc.de.300.vec.gz"), tmp_path)
    assert list(load("fasttext:de").tokens) == ["der", "die"]
