"""The embedding of a transformer checkpoint: its tensor, found by name or shape, and the wanted rows of it."""

from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any

import numpy as np

from embinit.errors import EmbinitError, closest, require
from embinit.sources.repositories import Repository, is_inside
from embinit.sources.row_collector import Request
from embinit.sources.safetensors import TensorFile
from embinit.text.markers import inner_pieces, scheme_of
from embinit.text.token_files import TokenTable, read_json_object, token_table
from embinit.text.tokenizers import subword
from embinit.types import Embeddings, Flags, Matrix, Origin, finite_rows

_INDEX = "model.safetensors.index.json"
_TORCH = "pytorch_model.bin"


@cache
def _families() -> tuple[dict[str, list[str]], list[str]]:
    """Return the endings of the embedding's name in each family of models, and the endings to try in any family."""
    data = tomllib.loads(resources.files("embinit.sources").joinpath("families.toml").read_text("utf-8"))
    return data["families"], data["any"]["endings"]


@dataclass
class Weights:
    """The tensors of a checkpoint in one or more safetensors files."""

    repository: Repository
    #: name of a tensor -> name of its file
    file_of: dict[str, str]
    opened: dict[str, TensorFile]

    def file(self, name: str) -> TensorFile:
        """Return the file that holds a tensor."""
        file = self.file_of[name]
        if file not in self.opened:
            data = self.repository.large(file)
            if data is None:
                raise EmbinitError(f"{self.repository.name} lacks the file {file}, which its index names")
            self.opened[file] = TensorFile(data)
        tensors = self.opened[file]
        if name not in tensors.names():
            raise EmbinitError(f"{self.repository.name}/{file} lacks the tensor {name}, which the index names")
        return tensors

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self.file(name).shape(name)

    def rows(self, name: str, wanted: Sequence[int] | None = None) -> Matrix:
        """Return the wanted rows of a tensor, or all rows."""
        return self.file(name).rows(name, wanted)


class TorchWeights:
    """The tensors of a `pytorch_model.bin`. torch reads it with `weights_only`, so no code in the file runs."""

    def __init__(self, repository: Repository) -> None:
        torch = require("torch", "train", f"reading {repository.name}/{_TORCH}")
        path = repository.small(_TORCH)
        try:
            # Files older than torch 1.6 are not zip archives and cannot be memory-mapped.
            mapped = zipfile.is_zipfile(str(path))
            loaded: Any = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            raise EmbinitError(f"{path} cannot be read as plain weights ({reason})") from None
        if not isinstance(loaded, dict):
            raise EmbinitError(f"{path} holds a {type(loaded).__name__}; expected a dictionary of tensors")
        self._tensors: dict[str, Any] = {str(name): value for name, value in loaded.items() if hasattr(value, "shape")}
        self.file_of = dict.fromkeys(self._tensors, _TORCH)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return tuple(self._tensors[name].shape)

    def rows(self, name: str, wanted: Sequence[int] | None = None) -> Matrix:
        """Return the wanted rows of a tensor, or all rows."""
        tensor = self._tensors[name]
        picked = tensor if wanted is None else tensor[list(wanted)]
        return np.asarray(picked.float().numpy(), dtype=np.float32)


class NoWeights(EmbinitError):
    """A checkpoint has no weights, or weights in a format that is not read."""


def weights_of(repository: Repository) -> Weights | TorchWeights:
    """Return the tensors of a checkpoint: one safetensors file, several with an index, or a `pytorch_model.bin`."""
    index = repository.small(_INDEX)
    if index is not None:
        file_of = read_json_object(index).get("weight_map")
        if not isinstance(file_of, dict) or not all(isinstance(file, str) for file in file_of.values()):
            raise EmbinitError(f"{index} has no weight_map from tensors to files")
        outside = next((file for file in file_of.values() if not is_inside(file)), None)
        if outside is not None:
            raise EmbinitError(f"{index} names the file {outside!r}, which is not inside the folder of the checkpoint")
        return Weights(repository, file_of, {})
    files = repository.files()
    singles = [name for name in files if name.endswith(".safetensors") and not name.startswith("adapter_")]
    chosen = "model.safetensors" if "model.safetensors" in singles else singles[0] if len(singles) == 1 else None
    if chosen is not None:
        data = repository.large(chosen)
        if data is None:
            raise EmbinitError(f"{repository.name}/{chosen} is not in the hub's cache, and HF_HUB_OFFLINE is set")
        opened = TensorFile(data)
        return Weights(repository, dict.fromkeys(opened.names(), chosen), {chosen: opened})
    if _TORCH in files:
        if not hasattr(repository, "path"):
            raise EmbinitError(
                f"{repository.name} has no safetensors file, and {_TORCH} cannot be read in parts; "
                f"run `hf download {repository.name.partition('@')[0]} --local-dir DIR` and give DIR"
            )
        return TorchWeights(repository)
    raise NoWeights(f"{repository.name} has no weights; looked for *.safetensors, {_INDEX} and {_TORCH}")


def read_checkpoint(repository: Repository, tensor: str | None, request: Request) -> Embeddings:
    """Return the tokens of a checkpoint's tokenizer with their rows: all tokens or the wanted tokens."""
    path = repository.small("config.json")
    config = read_json_object(path) if path is not None else {}
    weights = weights_of(repository)
    table = token_table(repository.small, repository.name)
    name = tensor_name(weights, config, tensor, repository.name, len(table.tokens))
    lookup = _Lookup(weights, name)
    ids: dict[str, int] = {}
    for token_id, token in enumerate(table.tokens[: lookup.rows]):
        if token is not None and (request.wanted is None or token in request.wanted):
            ids.setdefault(token, token_id)
    if request.most is not None:
        ids = dict(islice(ids.items(), request.most))
    counts = {"rows": len(ids)}
    without_token = sum(token is None for token in table.tokens[: lookup.rows])
    for label, count in (
        ("rows beyond the tokenizer, cut", lookup.rows - len(table.tokens)),
        ("rows without a token, cut", without_token),
        ("tokens without a row", len(table.tokens) - lookup.rows),
    ):
        if count > 0:
            counts[label] = count
    vectors = lookup.vectors(list(ids.values()))
    tokens, vectors, examples = _finite_only(list(ids), vectors, counts)
    if ids and not tokens and request.wanted is None:
        raise EmbinitError(f"{repository.name} has no usable row: every row of {name} is NaN or infinite")
    origin = Origin(repository.name, f"checkpoint ({name})", counts, examples)
    compose, compose_inside = _composer(table, lookup, counts), _composer(table, lookup, counts, inside=True)
    return Embeddings(tokens, vectors, origin, frozenset(), table.specials, compose, compose_inside)


def _finite_only(
    tokens: list[str], vectors: Matrix, counts: dict[str, int]
) -> tuple[list[str], Matrix, tuple[str, ...]]:
    """Return the tokens with finite vectors, these vectors, and messages about the first other tokens."""
    finite = finite_rows(vectors)
    if finite.all():
        return tokens, vectors, ()
    kept = [token for token, is_finite in zip(tokens, finite.tolist(), strict=True) if is_finite]
    rejected = [token for token, is_finite in zip(tokens, finite.tolist(), strict=True) if not is_finite]
    counts["rejected"] = counts["rejected: NaN or infinite"] = len(rejected)
    return kept, vectors[finite], tuple(f"the row of {token!r} is NaN or infinite" for token in rejected[:5])


class _Lookup:
    """Rows by token id, also if the tokens of a model2vec model share rows or have weights."""

    def __init__(self, weights: Weights | TorchWeights, name: str) -> None:
        self._weights = weights
        self._name = name
        self._mapping = self._weight = None
        if name == "embeddings" and "mapping" in weights.file_of:
            self._mapping = weights.rows("mapping")[:, 0].astype(np.int64)
        if name == "embeddings" and "weights" in weights.file_of:
            self._weight = weights.rows("weights")[:, 0]
        self.rows = len(self._mapping) if self._mapping is not None else weights.shape(name)[0]
        if self._weight is not None and len(self._weight) != self.rows:
            raise EmbinitError(f"the model has {len(self._weight):,} weights for {self.rows:,} rows; download it again")

    def vectors(self, ids: Sequence[int]) -> Matrix:
        rows = ids if self._mapping is None else self._mapping[list(ids)].tolist()
        vectors = self._weights.rows(self._name, rows)
        return vectors if self._weight is None else vectors * self._weight[list(ids)][:, None]


def _composer(table: TokenTable, lookup: _Lookup, counts: dict[str, int], *, inside: bool = False) -> Any:
    """Return a function that composes a word as the mean of its pieces; None if the tokenizer is unknown.

    A piece beyond the rows of the embedding is skipped, and `counts` gets the number of words with such a piece. With
    `inside`, the texts stand inside of words. A tokenizer has no split for them, so the longest pieces are taken from the
    left.
    """
    path = table.tokenizer
    if path is None:
        return None

    def compose(tokens: Sequence[str]) -> tuple[Matrix, Flags]:
        scheme = scheme_of(token for token in table.tokens if token is not None)
        prefix = " " if scheme == "byte-level" else ""  # the first piece of a word carries the space before it
        ids = {token: i for i, token in enumerate(table.tokens) if token is not None and token not in table.specials}
        split = subword(path)
        split_words = [inner_pieces(token, ids, scheme) if inside else split(prefix + token) for token in tokens]
        known = [all(piece in ids for piece in parts) for parts in split_words]
        pieces = [[piece for piece in parts if ids.get(piece, 0) < lookup.rows] for parts in split_words]
        composed = np.array(
            [bool(parts) and is_known for parts, is_known in zip(pieces, known, strict=True)], dtype=bool
        )
        shortened = sum(len(parts) < len(split_words[word]) for word, parts in enumerate(pieces) if known[word])
        if shortened:
            counts["words with a piece that has no row, which was skipped"] = shortened
        words = np.flatnonzero(composed).tolist()
        needed = sorted({ids[piece] for word in words for piece in pieces[word]})
        rows = lookup.vectors(needed)
        row_of = {piece_id: row for row, piece_id in enumerate(needed)}
        vectors = np.zeros((len(tokens), rows.shape[1]), dtype=np.float32)
        for word in words:
            vectors[word] = rows[[row_of[ids[piece]] for piece in pieces[word]]].mean(axis=0)
        return vectors, composed & finite_rows(vectors)

    return compose


# ---------------------------------------------------------------- which tensor


def tensor_name(
    weights: Weights | TorchWeights, config: dict[str, Any], requested: str | None, source: str, tokens: int
) -> str:
    """Return the name of the input embedding: as requested, by family, by ending, or by the size of the vocabulary."""
    names = list(weights.file_of)
    if requested is not None:
        if requested not in names:
            raise EmbinitError(f"{source} has no tensor {requested!r}{closest(requested, names)}")
        if len(weights.shape(requested)) != 2:
            raise EmbinitError(f"{source}: {requested} has shape {weights.shape(requested)}; expected a matrix")
        return requested
    families, endings = _families()
    inner = config.get("text_config")
    rows = config.get("vocab_size") or (inner.get("vocab_size") if isinstance(inner, dict) else None)
    model_type = str(config.get("model_type", ""))
    if "embeddings" in names and "mapping" in names and len(weights.shape("embeddings")) == 2:
        return "embeddings"  # model2vec's shared rows, fewer than tokens
    for ending in [*families.get(model_type, []), *endings]:
        named = [name for name in names if name == ending or name.endswith("." + ending)]
        fitting = [name for name in named if _fits(weights.shape(name), rows, tokens)]
        if fitting:
            return min(fitting, key=lambda name: ("decoder" in name, len(name), name))
    fitting = [name for name in names if _fits(weights.shape(name), rows, tokens)]
    inputs = [name for name in fitting if not name.endswith(("lm_head.weight", "decoder.weight", "output.weight"))]
    candidates = inputs or fitting
    if len(candidates) == 1:
        return candidates[0]
    count = f"several tensors ({', '.join(candidates[:5])})" if candidates else "no tensor"
    raise EmbinitError(f"{source}: {count} could be the embedding; give its name as {source}::TENSOR")


def _fits(shape: tuple[int, ...], rows: int | None, tokens: int) -> bool:
    """Return whether a matrix has the number of rows in the config, or a few more rows than the tokenizer has tokens."""
    if len(shape) != 2:
        return False
    return shape[0] == rows or tokens <= shape[0] <= tokens + max(1024, tokens // 50)
