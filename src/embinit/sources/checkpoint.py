"""The embedding of a transformer checkpoint: one tensor found by name or shape, and only the rows wanted."""

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
from embinit.sources.gatherer import Ask
from embinit.sources.repositories import Repository
from embinit.sources.tensors import TensorFile
from embinit.text.markers import scheme_of
from embinit.text.token_files import TokenTable, read_map, token_table
from embinit.text.tokenizers import subword
from embinit.types import Embeddings, Flags, Matrix, Origin, finite_rows

_INDEX = "model.safetensors.index.json"
_TORCH = "pytorch_model.bin"


@cache
def _families() -> tuple[dict[str, list[str]], list[str]]:
    data = tomllib.loads(resources.files("embinit.sources").joinpath("families.toml").read_text("utf-8"))
    return data["families"], data["any"]["endings"]


@dataclass
class Weights:
    """The tensors of a checkpoint, whichever files they are spread over."""

    repository: Repository
    #: tensor -> the file that holds it
    where: dict[str, str]
    opened: dict[str, TensorFile]

    def file(self, name: str) -> TensorFile:
        """Return the file that holds a tensor."""
        file = self.where[name]
        if file not in self.opened:
            data = self.repository.large(file)
            if data is None:
                raise EmbinitError(f"{self.repository.name} lacks {file}, which its index names")
            self.opened[file] = TensorFile(data)
        found = self.opened[file]
        if name not in found.names():
            raise EmbinitError(f"{self.repository.name}/{file} lacks {name}, which the index promises")
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape."""
        return self.file(name).shape(name)

    def rows(self, name: str, wanted: Sequence[int] | None = None) -> Matrix:
        """Return rows of a tensor."""
        return self.file(name).rows(name, wanted)


class TorchWeights:
    """The tensors of a `pytorch_model.bin`, read by torch with `weights_only`: no code in the file is run."""

    def __init__(self, repository: Repository) -> None:
        torch = require("torch", "train", f"reading {repository.name}/{_TORCH}")
        path = repository.small(_TORCH)
        try:
            # Files older than torch 1.6 are no zip archives and cannot be mapped.
            mapped = zipfile.is_zipfile(str(path))
            loaded: Any = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            raise EmbinitError(f"{path} cannot be read as plain weights ({reason})") from None
        if not isinstance(loaded, dict):
            raise EmbinitError(f"{path} holds no tensors by name but {type(loaded).__name__}")
        self._tensors: dict[str, Any] = {str(n): value for n, value in loaded.items() if hasattr(value, "shape")}
        self.where = dict.fromkeys(self._tensors, _TORCH)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape."""
        return tuple(self._tensors[name].shape)

    def rows(self, name: str, wanted: Sequence[int] | None = None) -> Matrix:
        """Return rows of a tensor."""
        tensor = self._tensors[name]
        picked = tensor if wanted is None else tensor[list(wanted)]
        return np.asarray(picked.float().numpy(), dtype=np.float32)


class NoWeights(EmbinitError):
    """A checkpoint has no file of weights: a configuration alone, or a kind of file that is not read."""


def weights_of(repository: Repository) -> Weights | TorchWeights:
    """Return the tensors of a checkpoint: one file, many with an index, or PyTorch's own format."""
    index = repository.small(_INDEX)
    if index is not None:
        where = read_map(index).get("weight_map")
        if not isinstance(where, dict) or not all(isinstance(file, str) for file in where.values()):
            raise EmbinitError(f"{index} has no weight_map from tensors to files")
        return Weights(repository, where, {})
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
                f"{repository.name} has no safetensors, and {_TORCH} cannot be read in parts: "
                f"run `hf download {repository.name.partition('@')[0]} --local-dir DIR` and give DIR"
            )
        return TorchWeights(repository)
    raise NoWeights(f"{repository.name} holds no weights; looked for *.safetensors, {_INDEX}, {_TORCH}")


def read_checkpoint(repository: Repository, tensor: str | None, ask: Ask) -> Embeddings:
    """Return the tokens of a checkpoint's tokenizer with their rows, or only the wanted ones."""
    path = repository.small("config.json")
    config = read_map(path) if path is not None else {}
    weights = weights_of(repository)
    table = token_table(repository.small, repository.name)
    name = tensor_name(weights, config, tensor, repository.name, len(table.tokens))
    lookup = _Lookup(weights, name)
    ids: dict[str, int] = {}
    for i, token in enumerate(table.tokens[: lookup.rows]):
        if token is not None and (ask.wanted is None or token in ask.wanted):
            ids.setdefault(token, i)
    if ask.most is not None:
        ids = dict(islice(ids.items(), ask.most))
    counts = {"rows": len(ids)}
    holes = sum(token is None for token in table.tokens[: lookup.rows])
    for what, count in (
        ("rows beyond the tokenizer, cut", lookup.rows - len(table.tokens)),
        ("rows without a token, cut", holes),
        ("tokens without a row", len(table.tokens) - lookup.rows),
    ):
        if count > 0:
            counts[what] = count
    vectors = lookup.vectors(list(ids.values()))
    tokens, vectors, examples = _finite(list(ids), vectors, counts)
    origin = Origin(repository.name, f"checkpoint ({name})", counts, examples)
    return Embeddings(tokens, vectors, origin, frozenset(), table.specials, _composer(table, lookup))


def _finite(tokens: list[str], vectors: Matrix, counts: dict[str, int]) -> tuple[list[str], Matrix, tuple[str, ...]]:
    good = finite_rows(vectors)
    if good.all():
        return tokens, vectors, ()
    bad = [token for token, ok in zip(tokens, good.tolist(), strict=True) if not ok]
    counts["rejected"] = counts["rejected: NaN or infinite"] = len(bad)
    kept = [token for token, ok in zip(tokens, good.tolist(), strict=True) if ok]
    return kept, vectors[good], tuple(f"the row of {token!r} is NaN or infinite" for token in bad[:5])


class _Lookup:
    """Rows by token id; model2vec's shared rows and per-token weights are seen through."""

    def __init__(self, weights: Weights | TorchWeights, name: str) -> None:
        self._weights = weights
        self._name = name
        self._mapping = self._weight = None
        if name == "embeddings" and "mapping" in weights.where:
            self._mapping = weights.rows("mapping")[:, 0].astype(np.int64)
        if name == "embeddings" and "weights" in weights.where:
            self._weight = weights.rows("weights")[:, 0]
        self.rows = len(self._mapping) if self._mapping is not None else weights.shape(name)[0]

    def vectors(self, ids: Sequence[int]) -> Matrix:
        rows = ids if self._mapping is None else self._mapping[list(ids)].tolist()
        vectors = self._weights.rows(self._name, rows)
        return vectors if self._weight is None else vectors * self._weight[list(ids)][:, None]


def _composer(table: TokenTable, lookup: _Lookup) -> Any:
    """Return a function that makes a word's vector as the mean of its pieces' vectors, where pieces are known."""
    path = table.tokenizer
    if path is None:
        return None

    def compose(tokens: Sequence[str]) -> tuple[Matrix, Flags]:
        scheme = scheme_of(token for token in table.tokens if token is not None)
        before = " " if scheme == "byte-level" else ""  # a word's own first piece carries the space before it
        ids = {token: i for i, token in enumerate(table.tokens) if token is not None and token not in table.specials}
        split = subword(path)
        pieces = [split(before + token) for token in tokens]
        made = np.array([bool(own) and all(piece in ids for piece in own) for own in pieces], dtype=bool)
        needed = sorted({ids[piece] for own, ok in zip(pieces, made.tolist(), strict=True) if ok for piece in own})
        rows = lookup.vectors(needed)
        place = {i: row for row, i in enumerate(needed)}
        vectors = np.zeros((len(tokens), rows.shape[1]), dtype=np.float32)
        for i in np.flatnonzero(made).tolist():
            vectors[i] = rows[[place[ids[piece]] for piece in pieces[i]]].mean(axis=0)
        return vectors, made & finite_rows(vectors)

    return compose


# ---------------------------------------------------------------- which tensor


def tensor_name(
    weights: Weights | TorchWeights, config: dict[str, Any], asked: str | None, source: str, tokens: int
) -> str:
    """Return the name of the input embedding: as asked, by family, by ending, or by the shape of the vocabulary."""
    names = list(weights.where)
    if asked is not None:
        if asked not in names:
            raise EmbinitError(f"{source} has no tensor {asked!r}{closest(asked, names)}")
        if len(weights.shape(asked)) != 2:
            raise EmbinitError(f"{source}: {asked} has shape {weights.shape(asked)}; a matrix is needed")
        return asked
    families, endings = _families()
    inner = config.get("text_config")
    rows = config.get("vocab_size") or (inner.get("vocab_size") if isinstance(inner, dict) else None)
    kind = str(config.get("model_type", ""))
    if "embeddings" in names and "mapping" in names and len(weights.shape("embeddings")) == 2:
        return "embeddings"  # model2vec's shared rows, fewer than tokens
    for ending in [*families.get(kind, []), *endings]:
        fitting = [name for name in names if name == ending or name.endswith("." + ending)]
        fitting = [name for name in fitting if _fits(weights.shape(name), rows, tokens)]
        if fitting:
            return min(fitting, key=lambda name: ("decoder" in name, len(name), name))
    shaped = [name for name in names if _fits(weights.shape(name), rows, tokens)]
    shaped = [
        name for name in shaped if not name.endswith(("lm_head.weight", "decoder.weight", "output.weight"))
    ] or shaped
    if len(shaped) == 1:
        return shaped[0]
    what = "several tensors" if shaped else "no tensor"
    listed = f" ({', '.join(shaped[:5])})" if shaped else ""
    raise EmbinitError(f"{source}: {what} could be the embedding{listed}; name it as {source}::TENSOR")


def _fits(shape: tuple[int, ...], rows: int | None, tokens: int) -> bool:
    """Return whether a matrix has a row for each token: as many as the config says, or a little over the tokenizer's."""
    if len(shape) != 2:
        return False
    return shape[0] == rows or tokens <= shape[0] <= tokens + max(1024, tokens // 50)
