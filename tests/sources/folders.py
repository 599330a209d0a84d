"""Tiny checkpoints, as Hugging Face folders hold them."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "dog"]


def matrix(rows: int = len(TOKENS), dim: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)


def safetensors(tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> bytes:
    """Return the bytes of a safetensors file: name -> (type, shape, raw numbers)."""
    header: dict[str, Any] = {}
    at = 0
    for name, (kind, shape, raw) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(raw for _, _, raw in tensors.values())


def float32(**arrays: np.ndarray) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: ("F32", array.shape, array.astype("<f4").tobytes()) for name, array in arrays.items()}


def checkpoint(folder: Path, arrays: dict[str, np.ndarray], config: dict[str, Any], tokens: list[str] = TOKENS) -> Path:
    """Write a folder of config.json, vocab.txt and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(safetensors(float32(**arrays)))
    return folder


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def sentencepiece_model(pieces: list[tuple[str, int]]) -> bytes:
    """Return a SentencePiece model of (text, type) pieces, each with a score, and a trainer spec after them."""
    out = b""
    for text, kind in pieces:
        raw = text.encode()
        inner = b"\x0a" + varint(len(raw)) + raw + b"\x15" + struct.pack("<f", -1.5)
        if kind != 1:
            inner += b"\x18" + varint(kind)
        out += b"\x0a" + varint(len(inner)) + inner
    return out + b"\x12\x02\x18\x01"
