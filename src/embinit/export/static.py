"""Folders of static sentence encoders, for model2vec and for sentence-transformers' StaticEmbedding."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from embinit.files import replacing_folder
from embinit.text.token_files import read_tokens
from embinit.text.vocabulary import from_table
from embinit.types import Matrix, Vocabulary

#: The files, the tokens that were left out, and the tokens that were added.
Parts = tuple[tuple[Path, ...], tuple[str, ...], tuple[str, ...]]

_SURROGATE = re.compile("[\ud800-\udfff]")
_UNKNOWN = ("[UNK]", "<unk>", "<UNK>", "[unk]")


def write_model2vec(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Parts:
    """Write a folder for `model2vec.StaticModel.from_pretrained`; return its files and the tokens left out and added."""
    matrix, tokenizer, left_out, added = _with_tokenizer(matrix, vocabulary)
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "hidden_dim": int(matrix.shape[1]),
        "seq_length": 1_000_000,
        "normalize": False,
        "embedding_dtype": "float32",
    }
    with replacing_folder(path) as folder:
        _save(folder / "model.safetensors", "embeddings", matrix)
        (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
        (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    return tuple(path / name for name in ("model.safetensors", "tokenizer.json", "config.json")), left_out, added


def write_sentence_transformers(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Parts:
    """Write a folder for `SentenceTransformer(path)`; return its files and the tokens left out and added."""
    matrix, tokenizer, left_out, added = _with_tokenizer(matrix, vocabulary)
    name = "0_StaticEmbedding"
    modules = [{"idx": 0, "name": "0", "path": name, "type": "sentence_transformers.models.StaticEmbedding"}]
    with replacing_folder(path) as folder:
        (folder / name).mkdir()
        _save(folder / name / "model.safetensors", "embedding.weight", matrix)
        (folder / name / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
        (folder / "modules.json").write_text(json.dumps(modules, indent=2), encoding="utf-8")
        (folder / "config_sentence_transformers.json").write_text("{}", encoding="utf-8")
    files = (path / name / "model.safetensors", path / name / "tokenizer.json", path / "modules.json")
    return (*files, path / "config_sentence_transformers.json"), left_out, added


def _save(path: Path, name: str, matrix: Matrix) -> None:
    from safetensors.numpy import save  # not save_file, whose file only its owner can read

    path.write_bytes(save({name: np.ascontiguousarray(matrix)}, metadata={"format": "pt"}))


def _with_tokenizer(matrix: Matrix, vocabulary: Vocabulary) -> tuple[Matrix, str, tuple[str, ...], tuple[str, ...]]:
    """Return the matrix, the text of its tokenizer.json, and the tokens that were left out and added.

    A vocabulary that was read from a tokenizer.json keeps that tokenizer. Any other gets a word-level tokenizer, which
    splits at white space and punctuation and needs a token for unknown words.
    """
    tokenizer = _own_tokenizer(vocabulary)
    if tokenizer is not None:
        return matrix, tokenizer, (), ()
    # A tokenizer.json is Unicode and cannot hold tokens with undecodable bytes (surrogates).
    left_out = tuple(token for token in vocabulary.tokens if _SURROGATE.search(token))
    kept = [i for i, token in enumerate(vocabulary.tokens) if not _SURROGATE.search(token)]
    tokens, matrix = [vocabulary.tokens[i] for i in kept], matrix[kept] if left_out else matrix
    unknown = next((token for token in _UNKNOWN if token in vocabulary.index), None)
    added: tuple[str, ...] = ()
    if unknown is None:
        unknown, added = _UNKNOWN[0], (_UNKNOWN[0],)
        tokens.append(unknown)
        matrix = np.vstack([matrix, np.zeros((1, matrix.shape[1]), dtype=np.float32)])
    content: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": i,
                "content": token,
                "special": True,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
            }
            for i, token in enumerate(tokens)
            if token in vocabulary.specials or token == unknown
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {t: i for i, t in enumerate(tokens)}, "unk_token": unknown},
    }
    return matrix, json.dumps(content), left_out, added


def _own_tokenizer(vocabulary: Vocabulary) -> str | None:
    try:
        origin = Path(vocabulary.origin)
        path = origin / "tokenizer.json" if origin.is_dir() else origin
        if path.suffix != ".json" or not path.is_file():
            return None
    except OSError:  # no path, for example the names of many text files
        return None
    table = read_tokens(path)
    if table.tokenizer is None or from_table(table, str(path)).tokens != vocabulary.tokens:
        return None
    return path.read_text(encoding="utf-8")
