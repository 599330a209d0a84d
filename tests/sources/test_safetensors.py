"""Rows of safetensors: every number format as torch decodes it, and nothing but the rows that are wanted."""

import json
import struct
import tracemalloc

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from embinit.sources.load import load
from embinit.sources.safetensors import LocalBytes, TensorFile
from tests.refusal import refused

from .folders import TOKENS, float32, matrix, safetensors

TYPES = {
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "F64": torch.float64,
    "F32": torch.float32,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
}


class Counted:
    """Bytes in memory that count what is read of them."""

    name = "counted"

    def __init__(self, data: bytes) -> None:
        self.data, self.taken = data, 0
        self.size: int | None = len(data)

    def read(self, start: int, end: int) -> bytes:
        self.taken += end - start
        return self.data[start:end]


@pytest.mark.parametrize("kind", TYPES)
def test_numbers_are_decoded_as_torch_does(kind):
    if kind.startswith("F8"):  # all 256 codes
        numbers = torch.arange(256, dtype=torch.uint8).reshape(32, 8).view(TYPES[kind])
    else:
        numbers = torch.from_numpy(np.random.default_rng(0).normal(0, 50, size=(32, 8))).to(TYPES[kind])
    raw = numbers.contiguous().view(torch.uint8).numpy().tobytes()
    file = TensorFile(Counted(safetensors({"x": (kind, (32, 8), raw)})))
    expected = numbers.float().numpy()
    np.testing.assert_array_equal(file.rows("x"), expected)
    np.testing.assert_array_equal(file.rows("x", [30, 2, 2, 31]), expected[[30, 2, 2, 31]])


def test_a_file_of_the_safetensors_library_is_read(tmp_path):
    arrays = {"b": matrix(5, 3), "a": matrix(7, 2, seed=1), "half": matrix(4, 4).astype(np.float16)}
    save_file(arrays, tmp_path / "m.safetensors", metadata={"format": "pt"})
    file = TensorFile(LocalBytes(tmp_path / "m.safetensors"))
    assert file.metadata == {"format": "pt"}
    for name, array in arrays.items():
        assert file.shape(name) == array.shape
        np.testing.assert_array_equal(file.rows(name), array.astype(np.float32))


def test_only_the_wanted_rows_are_read():
    data = Counted(safetensors(float32(before=matrix(1000, 64), x=matrix(50_000, 64, seed=1), after=matrix(1000, 64))))
    file = TensorFile(data)
    data.taken = 0
    np.testing.assert_array_equal(file.rows("x", [3, 49_999, 20_000]), matrix(50_000, 64, seed=1)[[3, 49_999, 20_000]])
    assert data.taken == 3 * 64 * 4


def test_rows_close_together_are_read_at_once():
    data = Counted(safetensors(float32(x=matrix(1000, 16))))
    file = TensorFile(data)
    data.taken = 0
    file.rows("x", [10, 12])
    assert data.taken == 3 * 16 * 4


def test_rows_of_a_huge_file_take_the_memory_of_those_rows(tmp_path):
    """Two gigabytes that are not on disk: a sparse file with a real header and one real row."""
    rows, dim, row = 1 << 20, 512, matrix(1, 512)
    header = json.dumps({"x": {"dtype": "F32", "shape": [rows, dim], "data_offsets": [0, rows * dim * 4]}}).encode()
    with (tmp_path / "m.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        begin = file.tell()
        file.seek(begin + 777_777 * dim * 4)
        file.write(row.tobytes())
        file.truncate(begin + rows * dim * 4)
    tracemalloc.start()
    found = TensorFile(LocalBytes(tmp_path / "m.safetensors")).rows("x", [5, 777_777])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(found, np.concatenate([np.zeros((1, dim)), row]))
    assert most < 1 << 20


# ---------------------------------------------------------------- headers that lie

GOOD = {"dtype": "F32", "shape": [8, 4], "data_offsets": [0, 128]}
BAD = {
    "beyond the file": {**GOOD, "shape": [8, 400], "data_offsets": [0, 12800]},
    "negative offset": {**GOOD, "data_offsets": [-128, 0]},
    "negative shape": {**GOOD, "shape": [-8, -4]},
    "other size than shape": {**GOOD, "shape": [8, 3]},
    "absurd": {**GOOD, "shape": [1 << 40, 1 << 20], "data_offsets": [0, 1 << 61]},
    "no columns": {**GOOD, "shape": [8, 0], "data_offsets": [0, 0]},
    "no shape": {"dtype": "F32", "data_offsets": [0, 128]},
    "fractions": {**GOOD, "shape": [8.0, 4.0]},
    "unknown type": {**GOOD, "dtype": "F4"},
    "type of another type": {**GOOD, "dtype": 32},
    "no map": [1, 2],
}


@pytest.mark.parametrize("entry", BAD.values(), ids=BAD)
def test_a_header_that_lies_is_an_error(entry, tmp_path):
    text = json.dumps({"x": entry}).encode()
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + matrix().tobytes())
    (tmp_path / "m.tokens.json").write_text(json.dumps(TOKENS))
    with refused("m.safetensors"):
        load(tmp_path / "m.safetensors")


@pytest.mark.parametrize("ids", [[-1], [8], [0, 100]])
def test_a_row_that_is_not_there_is_an_error(ids):
    with refused("8 rows"):
        TensorFile(Counted(safetensors(float32(x=matrix())))).rows("x", ids)
