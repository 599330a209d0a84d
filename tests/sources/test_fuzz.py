"""Whatever bytes a file holds, a reader returns vectors or raises an EmbinitError; nothing else escapes."""

import gzip
import io
import json
import os
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embinit.errors import EmbinitError
from embinit.sources.load import load
from embinit.text.token_files import read_tokens
from tests.refusal import refused

from .folders import TOKENS, checkpoint, float32, matrix, safetensors, sentencepiece_model

# Shared among the tests below; `make test-all` asks for ten times as many.
EXAMPLES = max(1, int(os.environ.get("EMBINIT_FUZZ", "1000")) // 10)
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def survives(data: bytes, name: str, **others: bytes) -> None:
    """Load a file of these bytes, whole and in part, beside other files."""
    with tempfile.TemporaryDirectory() as folder:
        for beside, content in others.items():
            (Path(folder) / beside.replace("__", ".")).write_bytes(content)
        path = Path(folder) / name
        path.write_bytes(data)
        for wanted in (None, {"cat", "the", "\ud800", "unseen"}):
            try:
                embeddings = load(path, wanted)
            except EmbinitError as error:
                assert str(error)
            else:
                assert embeddings.vectors.shape == (len(embeddings.tokens), embeddings.dim)
                assert np.isfinite(embeddings.vectors).all()
                assert len(set(embeddings.tokens)) == len(embeddings.tokens)
                again = load(path, set(embeddings.tokens))
                assert list(again.tokens) == list(embeddings.tokens)
                np.testing.assert_array_equal(again.vectors, embeddings.vectors)


@st.composite
def corrupted(draw: st.DrawFn, whole: bytes) -> bytes:
    """Return a well-formed file with bytes changed, put in or left out, or cut short."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.sampled_from(["change", "insert", "delete", "cut", "number"])):
            case "change":
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case "insert":
                data[at:at] = draw(st.binary(max_size=8) | st.sampled_from([b" ", b"\n", b"{", b"[", b"9" * 30]))
            case "delete":
                del data[at : at + draw(st.integers(1, 12))]
            case "cut":
                del data[at:]
            case "number":
                data[at : at + 8] = struct.pack("<q", draw(st.sampled_from([-1, 0, 1 << 31, 1 << 40, -(1 << 63)])))
    return bytes(data)


# ---------------------------------------------------------------- well-formed files of each kind

M = matrix()
TEXT = "8 4\n" + "".join(f"{t} " + " ".join(f"{v:.5f}" for v in row) + "\n" for t, row in zip(TOKENS, M, strict=True))
BINARY = b"8 4\n" + b"".join(t.encode() + b" " + row.tobytes() + b"\n" for t, row in zip(TOKENS, M, strict=True))


def _fasttext(words: list[str], buckets: int = 20, dim: int = 4) -> bytes:
    """Return a model as fastText's own program writes it, up to and with the input matrix."""
    out = struct.pack("<2i12id", 793712314, 12, dim, 5, 5, 1, 5, 1, 1, 1, buckets, 3, 6, 100, 1e-4)
    out += struct.pack("<3i2q", len(words), len(words), 0, 100, -1)
    out += b"".join(word.encode() + b"\0" + struct.pack("<qb", 5, 0) for word in words)
    values = matrix(len(words) + buckets, dim)
    return out + b"\0" + struct.pack("<2q", *values.shape) + values.tobytes()


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _npz(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def _zip(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("vectors.txt", data)
    return out.getvalue()


TOKENIZER = {
    "version": "1.0",
    "added_tokens": [{"id": 8, "content": "[MASK]", "special": True}],
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {token: i for i, token in enumerate(TOKENS)}},
}
WHOLE = {
    "v.txt": TEXT.encode(),
    "v.bin": BINARY,
    "v.gz": gzip.compress(TEXT.encode()),
    "v.zip": _zip(TEXT.encode()),
    "model.bin": _fasttext(TOKENS),
    "m.npy": _npy(M),
    "m.npz": _npz(vectors=M, tokens=np.array(TOKENS)),
    "m.safetensors": safetensors(float32(weight=M)),
}
LIST = "\n".join(TOKENS).encode()


@pytest.mark.parametrize("name", WHOLE)
def test_the_uncorrupted_files_load(name, tmp_path):
    (tmp_path / name).write_bytes(WHOLE[name])
    (tmp_path / "m.tokens.json").write_text(json.dumps(TOKENS))
    assert len(load(tmp_path / name)) == 8


# ---------------------------------------------------------------- corrupted


@fuzz
@given(st.binary(max_size=300))
def test_raw_bytes(data):
    survives(data, "v.txt")


LINE = st.lists(st.sampled_from(["a", "0.5", "-1", "nan", "", "é", "1e999", "3", "12 2"]), max_size=6).map(" ".join)


@fuzz
@given(st.lists(LINE, max_size=8), st.sampled_from(["\n", "\r\n", " \n"]))
def test_lines_of_odd_fields(lines, end):
    survives(end.join(lines).encode(), "v.txt")


@fuzz
@given(corrupted(WHOLE["v.txt"]) | corrupted(WHOLE["v.gz"]) | corrupted(WHOLE["v.zip"]))
def test_text(data):
    survives(data, "v.txt")


@fuzz
@given(corrupted(WHOLE["v.bin"]))
def test_word2vec_binary(data):
    survives(data, "v.bin")


@fuzz
@given(corrupted(WHOLE["model.bin"][:220]).map(lambda head: head + WHOLE["model.bin"][220:]))
def test_fasttext(data):
    survives(data, "model.bin")


@fuzz
@given(corrupted(WHOLE["m.safetensors"][:90]).map(lambda head: head + WHOLE["m.safetensors"][90:]))
def test_safetensors(data):
    survives(data, "m.safetensors", m__vocab__txt=LIST)


@fuzz
@given(corrupted(WHOLE["m.npy"]) | corrupted(WHOLE["m.npz"]))
def test_numpy(data):
    survives(data, "m.npy", m__vocab__txt=LIST)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just(1e300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
FIELDS = {"dtype": "F32", "shape": [8, 4], "data_offsets": [0, 128]}


@fuzz
@given(st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets", "tensor"]), values), values)
def test_a_safetensors_header_of_wrong_types(changed, metadata):
    header = (
        {"__metadata__": metadata, "w": {**FIELDS, **changed}} if "tensor" not in changed else {"w": changed["tensor"]}
    )
    text = json.dumps(header).encode()
    survives(struct.pack("<Q", len(text)) + text + M.tobytes(), "m.safetensors", m__vocab__txt=LIST)


def reads(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(data)
        try:
            table = read_tokens(Path(folder) / name)
        except EmbinitError as error:
            assert str(error)
        else:
            assert all(token is None or isinstance(token, str) for token in table.tokens)


tokenizers = st.dictionaries(st.sampled_from(["model", "added_tokens", "tokens"]), values).map(
    lambda x: {**TOKENIZER, **x}
)
models = st.dictionaries(st.sampled_from(["vocab", "type"]), values).map(lambda x: {"model": x})


@fuzz
@given(
    (tokenizers | models | values).map(lambda content: json.dumps(content).encode())
    | corrupted(json.dumps(TOKENIZER).encode())
    | corrupted(LIST)
    | corrupted(sentencepiece_model([("<unk>", 2), ("▁the", 1), ("<0x0A>", 6), ("s", 1)]))
    | st.binary(max_size=60).map(lambda data: b"\n" + data),
    st.sampled_from(["tokenizer.json", "vocab.txt", "spiece.model"]),
)
def test_token_files(data, name):
    reads(data, name)


@fuzz
@given(
    st.sampled_from(
        ["config.json", "added_tokens.json", "model.safetensors.index.json", "tokenizer.json", "vocab.txt"]
    ),
    st.dictionaries(st.sampled_from(["vocab_size", "model_type", "text_config", "weight_map", "x"]), values) | values,
)
def test_a_checkpoint_with_an_odd_file(name, content):
    with tempfile.TemporaryDirectory() as folder:
        checkpoint(Path(folder), {"bert.embeddings.word_embeddings.weight": M}, {"model_type": "bert"})
        (Path(folder) / name).write_text(json.dumps(content))
        try:
            assert np.isfinite(load(folder).vectors).all()
        except EmbinitError as error:
            assert str(error)


NESTED = b"[" * 100_000


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.json", "config.json", "model.safetensors"])
def test_json_nested_without_end(name, tmp_path):
    checkpoint(tmp_path, {"embeddings.word_embeddings.weight": M}, {})
    data = struct.pack("<Q", len(NESTED) + 1) + b"{" + NESTED if name.endswith("safetensors") else NESTED
    (tmp_path / name).write_bytes(data)
    if name == "vocab.json":
        (tmp_path / "vocab.txt").unlink()
    with refused(name):
        load(tmp_path)
