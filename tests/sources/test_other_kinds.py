"""Files that are no vectors are told apart by content, in one sentence that names them."""

import gzip
import io
import pickle
import struct
import zipfile

import numpy as np
import pytest
import torch

from embinit.errors import EmbinitError
from embinit.sources.checkpoint import NoWeights
from embinit.sources.load import load
from tests.refusal import refused

PROSE = b"It was the best of times, it was the worst of times,\nit was the age of wisdom ...\n"


def _torch_file() -> bytes:
    out = io.BytesIO()
    torch.save({"weight": torch.zeros(2, 2)}, out)
    return out.getvalue()


def _encrypted_zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("v.txt", "a 1 2\n")
    data = bytearray(out.getvalue())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(signature) + flags] |= 1
    return bytes(data)


def _npy() -> bytes:
    out = io.BytesIO()
    np.save(out, np.zeros((2, 2)))
    return out.getvalue()


OTHERS = {
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "is a picture"),
    "web page": (b"\n<!DOCTYPE html><html><body>404</body></html>\n", "is a web page"),
    "another web page": (b"<HTML>\n", "is a web page"),
    "utf-16": ("a 1 2 3\nb 4 5 6\n".encode("utf-16"), "UTF-16"),
    "pickle": (pickle.dumps({"a": [1.0, 2.0]}), "is a pickle"),
    "git lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n", "Git LFS pointer"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
    "parquet": (b"PAR1" + bytes(100), "Parquet"),
    "pdf": (b"%PDF-1.7\n" + bytes(100), "a PDF"),
    "random": (np.random.default_rng(0).bytes(5000), "binary file of an unknown format"),
    "zeros": (bytes(5000), "binary file of an unknown format"),
    "prose": (PROSE, "line 1: 'It was the best of times"),
    "prose in gzip": (gzip.compress(PROSE), "line 1: 'It was the best of times"),
    "torch": (_torch_file(), "is a torch file"),
    "encrypted zip": (_encrypted_zip(), "cannot be unpacked"),
    "zip without members": (b"PK\x05\x06" + bytes(18), "has 0 members"),
    "half a zip": (b"PK\x03\x04" + bytes(30), "damaged or cut short"),
    "npy in gzip": (gzip.compress(_npy()), "unpack it first"),
    "fastText of version 11": (struct.pack("<2i", 793712314, 11) + bytes(100), "version 11"),
}


@pytest.mark.parametrize(("data", "message"), OTHERS.values(), ids=OTHERS)
def test_a_file_of_another_kind_is_named_for_what_it_is(data, message, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(data)
    with refused(path, message):
        load(path)


def test_a_missing_file_names_a_close_one(tmp_path):
    (tmp_path / "glove.6B.50d.txt").write_text("a 1 2\n")
    with refused("glove.6b.50d.txt; did you mean 'glove.6B.50d.txt'?"):
        load(tmp_path / "glove.6b.50d.txt")


@pytest.mark.parametrize(
    "name", ["x" * 5000 + ".txt", "~nobody-of-this-name/v.txt", "no/such/folder/v.txt", "a\0b.txt"]
)
def test_a_name_that_no_file_can_have_is_an_error(name):
    with pytest.raises(EmbinitError):
        load(name)


def test_a_folder_without_weights_is_an_error(tmp_path):
    with refused(tmp_path, "*.safetensors", error=NoWeights):
        load(tmp_path)
