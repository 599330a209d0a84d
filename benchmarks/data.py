"""Input files: real ones if environment variables name their folders, otherwise generated ones of the same shape."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path("build/bench")


@dataclass(frozen=True)
class Sizes:
    """Sizes of the input files and of the tasks."""

    words: int = 400_000
    wide_words: int = 200_000
    wanted: int = 5_893
    buckets: int = 2_000_000
    model_dim: int = 300
    model_words: int = 50_000
    model_asked: int = 2_000
    rows: int = 10_000
    candidates: int = 30_000
    others: int = 60_000_000
    quick: bool = False


FULL = Sizes()
QUICK = Sizes(
    words=4_000,
    wide_words=2_000,
    wanted=59,
    buckets=5_000,
    model_dim=20,
    model_words=500,
    model_asked=100,
    rows=500,
    candidates=1_000,
    others=1_000_000,
    quick=True,
)


def real_file(variable: str, *parts: str) -> Path | None:
    """Return a file below the folder that an environment variable names; None if there is no such file."""
    folder = os.environ.get(variable)
    path = Path(folder, *parts) if folder else None
    return path if path is not None and path.exists() else None


def glove(sizes: Sizes) -> tuple[Path, str]:
    """Return glove.6B.50d.txt or a generated file of its shape, and a description."""
    file = None if sizes.quick else real_file("EMBINIT_VECTORS", "glove-6b-50d", "glove.6B.50d.txt")
    if file is not None:
        return file, "glove.6B.50d"
    return text_file(sizes.words, 50), f"generated, {sizes.words:,} x 50"


def text_file(count: int, dim: int) -> Path:
    """Return a generated GloVe text. Every fourth word answers the analogy of the three before it, with noise."""
    path = FOLDER / f"made.{count}.{dim}d.txt"
    if path.exists():
        return path
    rng = np.random.default_rng(0)
    part = path.with_suffix(".part")
    line = " ".join(["%.5g"] * dim)
    with part.open("w", encoding="utf-8") as out:
        for start in range(0, count, 4000):
            rows = rng.normal(0, 0.4, (min(4000, count - start), dim))
            rows[3::4] = rows[1::4] - rows[0::4] + rows[2::4] + rng.normal(0, 0.5, rows[3::4].shape)
            out.writelines(f"w{start + i} {line % tuple(row)}\n" for i, row in enumerate(rows.tolist()))
    part.rename(path)
    return path


def read_words(path: Path) -> list[str]:
    """Return the words of a GloVe text file."""
    with path.open("rb") as file:
        return [line.partition(b" ")[0].decode() for line in file]


def evenly_spaced(words: list[str], count: int) -> list[str]:
    """Return `count` words at equal distances."""
    return [words[i] for i in np.linspace(0, len(words) - 1, count).astype(int).tolist()]


def save_json(name: str, content: object) -> str:
    """Write JSON for a task, and return its path."""
    path = FOLDER / name
    path.write_text(json.dumps(content))
    return str(path)


def fasttext_model(sizes: Sizes) -> Path:
    """Return a generated fastText model with random rows and, by default, as many n-grams as the published models."""
    path = FOLDER / f"made.{sizes.buckets}.{sizes.model_dim}d.bin"
    if path.exists():
        return path
    rng = np.random.default_rng(0)
    part = path.with_suffix(".part")
    with part.open("wb") as out:
        # dim, window, epochs, min count, negatives, word n-grams, loss, model, buckets, shortest, longest, update rate, t
        arguments = (sizes.model_dim, 5, 5, 5, 5, 1, 2, 2, sizes.buckets, 3, 6, 100, 1e-4)
        out.write(struct.pack("<2i12id", 793_712_314, 12, *arguments))
        out.write(struct.pack("<3i2q", sizes.model_words, sizes.model_words, 0, 10_000_000, -1))
        for i in range(sizes.model_words):
            out.write(model_word(i).encode() + b"\0" + struct.pack("<qb", sizes.model_words - i, 0))
        for rows in (sizes.model_words + sizes.buckets, sizes.model_words):  # input, then output
            out.write(struct.pack("<?2q", False, rows, sizes.model_dim))
            for start in range(0, rows, 50_000):
                block = rng.random((min(50_000, rows - start), sizes.model_dim), dtype=np.float32) - np.float32(0.5)
                out.write(block.tobytes())
    part.rename(path)
    return path


def model_word(i: int) -> str:
    """Return the ten-letter word of a number; different numbers have different words."""
    letters = "etaoinshrdlucmfwypvbgk"
    digits = [i % 22, i // 22 % 22, i // 484 % 22, i // 10_648 % 22]
    return "be" + "".join(letters[(digit * 7 + place) % 22] + "a" for place, digit in enumerate(digits))


def checkpoint(sizes: Sizes) -> tuple[Path, str]:
    """Return a real checkpoint's folder, or a random BERT-base (tiny with `--quick`), and a description."""
    folder = None if sizes.quick else real_file("EMBINIT_VECTORS", "minilm")
    if folder is not None:
        return folder, "all-MiniLM-L6-v2"
    path = FOLDER / ("bert-tiny" if sizes.quick else "bert-base")
    if not (path / "vocab.txt").exists():
        import torch
        from transformers import BertConfig, BertModel
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        torch.manual_seed(0)
        tiny = {"vocab_size": 2000, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
        BertModel(BertConfig(**(tiny if sizes.quick else {}))).save_pretrained(path)
        count = json.loads((path / "config.json").read_text())["vocab_size"]
        (path / "vocab.txt").write_text("[UNK]\n" + "".join(f"w{i}\n" for i in range(1, count)))
    return path, "generated, tiny" if sizes.quick else "generated, size of BERT-base"


def padded_checkpoint(others: int) -> Path:
    """Return a generated checkpoint: an embedding of 20,000 x 384 after `others` bytes of other weights (a hole)."""
    path = FOLDER / f"padded-{others}"
    if (path / "vocab.txt").exists():
        return path
    path.mkdir(exist_ok=True)
    rows, dim = 20_000, 384
    size = 4 * rows * dim
    header = json.dumps(
        {
            "encoder.weight": {"dtype": "F32", "shape": [others // 4], "data_offsets": [0, others]},
            "embeddings.word_embeddings.weight": {
                "dtype": "F32",
                "shape": [rows, dim],
                "data_offsets": [others, others + size],
            },
        }
    ).encode()
    with (path / "model.safetensors").open("wb") as out:
        out.write(struct.pack("<Q", len(header)) + header)
        out.seek(others, os.SEEK_CUR)
        out.write(np.random.default_rng(0).random((rows, dim), dtype=np.float32).tobytes())
    (path / "config.json").write_text(json.dumps({"model_type": "bert", "vocab_size": rows}))
    (path / "vocab.txt").write_text("".join(f"w{i}\n" for i in range(rows)))
    return path


def questions(sizes: Sizes, vectors: Path) -> tuple[Path, str]:
    """Return an analogy file in lower case, as GloVe needs it, and a description. Both tools read it unchanged."""
    file = None if sizes.quick else real_file("EMBINIT_DATA", "analogy", "questions-words.txt")
    path = FOLDER / "questions.txt"
    if file is not None and vectors.name == "glove.6B.50d.txt":
        path.write_text(file.read_text(encoding="utf-8").lower(), encoding="utf-8")
        return path, "questions-words.txt"
    words = read_words(vectors)[: sizes.candidates]
    lines = [" ".join(words[i : i + 4]) for i in range(0, len(words) - 3, 4)]
    path.write_text(": made\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path, f"generated, {len(lines):,} questions"
