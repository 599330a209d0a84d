"""fastText models: what gensim makes of them, embinit makes too, also for words that they lack."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from gensim.models import FastText
from gensim.models.fasttext import load_facebook_vectors, save_facebook_model

from embinit.sources.fasttext import ngram_hashes
from embinit.sources.load import load
from tests.refusal import refused

SENTENCES = [["the", "cat", "sat", "naïve"], ["der", "Hund", "läuft", "東京"], ["the", "dog", "läuft", "café"]] * 5
UNSEEN = ["cats", "läuferin", "東京都", "doghouse", "ñandú"]
HEADER = 8 + struct.calcsize("<12id")  # magic and version, then the training arguments


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    model = FastText(SENTENCES, vector_size=6, min_count=1, bucket=50, epochs=1, seed=1, workers=1)
    saved = tmp_path_factory.mktemp("fasttext") / "model.bin"
    save_facebook_model(model, str(saved))
    return saved


def changed(path: Path, tmp_path: Path, at: int, raw: bytes) -> Path:
    data = bytearray(path.read_bytes())
    data[at : at + len(raw)] = raw
    (tmp_path / "changed.bin").write_bytes(data)
    return tmp_path / "changed.bin"


def matrix_at(path: Path) -> int:
    """Return where the input matrix's size stands: after the dictionary and the byte for quantization."""
    data = path.read_bytes()
    size = struct.unpack_from("<i", data, HEADER)[0]
    at = HEADER + struct.calcsize("<3i2q")
    for _ in range(size):
        at = data.index(b"\0", at) + 10
    return at + 1


def test_the_stored_words_are_gensims(path):
    gensim, found = load_facebook_vectors(str(path)), load(path)
    assert list(found.tokens) == gensim.index_to_key
    np.testing.assert_allclose(found.vectors, gensim.vectors, atol=1e-6)
    assert found.composed == frozenset()
    assert found.origin.format == "fastText binary"


def test_words_that_it_lacks_are_composed_as_gensim_does(path):
    gensim = load_facebook_vectors(str(path))
    embeddings = load(path, wanted={*UNSEEN, "cat"})
    assert embeddings.composed == frozenset(UNSEEN)
    assert embeddings.origin.counts["composed from n-grams"] == len(UNSEEN)
    for token, vector in zip(embeddings.tokens, embeddings.vectors, strict=True):
        np.testing.assert_allclose(vector, gensim[token], atol=1e-6)


def test_compose_makes_vectors_later(path):
    compose = load(path).compose
    assert compose is not None
    vectors, made = compose(UNSEEN)
    assert made.all()
    np.testing.assert_allclose(vectors, [load_facebook_vectors(str(path))[word] for word in UNSEEN], atol=1e-6)


def test_without_compose_only_stored_words_come(path):
    embeddings = load(path, wanted={*UNSEEN, "cat"}, compose=False)
    assert list(embeddings.tokens) == ["cat"]


def test_a_word_that_no_file_can_hold_does_no_harm(path):
    assert "cat" in load(path, wanted={"cat", "\ud800"}).tokens


def test_most_stops_early(path):
    assert list(load(path, most=3).tokens) == list(load(path).tokens)[:3]


def test_hashes_are_those_of_fasttext():
    """`Dictionary::hash` casts each byte to int8_t, so that those above 127 are sign-extended."""
    assert ngram_hashes(b"a", 1, 1) == []  # single end marks are left out
    assert ngram_hashes(b"<a>", 3, 6) == [_fnv("<a>")]
    assert ngram_hashes("<é>".encode(), 3, 3) == [_fnv("<é>")]
    assert ngram_hashes(b"<ab>", 2, 3) == [_fnv(x) for x in ("<a", "<ab", "ab", "ab>", "b>")]


def _fnv(text: str) -> int:
    value = np.uint32(2166136261)
    with np.errstate(over="ignore"):
        for byte in np.frombuffer(text.encode(), dtype=np.int8):
            value = (value ^ np.uint32(np.int64(byte) & 0xFFFFFFFF)) * np.uint32(16777619)
    return int(value)


# ---------------------------------------------------------------- files that are not as they should be


@pytest.mark.parametrize("share", [0.005, 0.05, 0.2, 0.5, 0.7])
def test_a_model_that_is_cut_is_an_error(share, path, tmp_path):
    data, at = path.read_bytes(), matrix_at(path)
    rows, dim = struct.unpack_from("<2q", data, at)
    whole = data[: at + 16 + 4 * rows * dim]
    (tmp_path / "cut.bin").write_bytes(whole[: int(share * len(whole))])
    with refused("cut.bin"):
        load(tmp_path / "cut.bin")


def test_a_quantized_model_is_an_error(path, tmp_path):
    with refused("quantized"):
        load(changed(path, tmp_path, matrix_at(path) - 1, b"\1"))


def test_a_compressed_model_is_an_error(path, tmp_path):
    (tmp_path / "model.bin.gz").write_bytes(gzip.compress(path.read_bytes()))
    with refused("compressed", "unpack it first"):
        load(tmp_path / "model.bin.gz")


@pytest.mark.parametrize(
    ("at", "raw"),
    [
        (8, struct.pack("<i", -3)),
        (8, struct.pack("<i", 1 << 30)),
        (8 + 4 * 8, struct.pack("<i", 1 << 30)),
        (HEADER, struct.pack("<2i", 1 << 30, 1 << 30)),
        (HEADER, struct.pack("<2i", 3, 9)),
        (HEADER + 4, struct.pack("<i", -1)),
        (HEADER + 12 + 8, struct.pack("<q", 1 << 50)),
    ],
    ids=["dim < 0", "dim", "buckets", "words", "more words than entries", "words < 0", "pruned"],
)
def test_absurd_sizes_are_errors(at, raw, path, tmp_path):
    with refused("changed.bin"):
        load(changed(path, tmp_path, at, raw))


def test_a_nan_row_is_counted_out(path, tmp_path):
    broken = changed(path, tmp_path, matrix_at(path) + 16, struct.pack("<f", float("nan")))
    first, *others = load(path).tokens
    embeddings = load(broken)
    assert list(embeddings.tokens) == others
    assert embeddings.origin.counts["rejected: NaN or infinite"] == 1
    assert embeddings.origin.examples == (f"the row of {first!r} is NaN or infinite",)


@pytest.mark.filterwarnings("error")
def test_rows_of_opposite_infinities_are_an_error_without_a_warning(path, tmp_path):
    at = matrix_at(path)
    count, dim = struct.unpack_from("<2q", path.read_bytes(), at)
    infinite = np.full((count, dim), np.inf, dtype="<f4")
    infinite[::2] = -np.inf
    with refused("no usable row"):
        load(changed(path, tmp_path, at + 16, infinite.tobytes()))
