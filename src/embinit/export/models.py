"""Putting a matrix into a model: a Hugging Face folder, or any nn.Embedding; the rows are read back and compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embinit.errors import EmbinitError, require
from embinit.files import replacing_folder
from embinit.sources.load import load
from embinit.text.markers import looks_special
from embinit.text.token_files import FOLDER_FILES, TokenTable, token_table
from embinit.types import Embeddings, Matrix, check_matrix

if TYPE_CHECKING:
    import torch

#: Endings of files that are copied with a model; they hold neither weights nor code.
_SMALL = (".json", ".txt", ".model", ".spm", ".jinja", ".md")
_TOKENIZER_FILES = (
    *FOLDER_FILES,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
    "source.spm",
    "target.spm",
    "chat_template.jinja",
)
_TOKEN_ID = "_token_id"


@dataclass(frozen=True)
class Applied:
    """The result of `apply`: numbers of rows that were replaced and kept."""

    rows: int
    dim: int
    replaced: int
    #: special tokens of the model, whose rows are kept
    specials_kept: int
    #: other rows of the model, for which the matrix has no token
    others_kept: int
    #: tokens of the matrix that the model's tokenizer lacks
    unused: int
    tied: bool
    resized: bool
    #: tensors that the model's folder lacks; transformers initialized them at random
    missing: int = 0


def set_embedding(layer: torch.nn.Embedding, matrix: Matrix, *, freeze: bool = False) -> None:
    """Copy a matrix into an embedding layer of the same shape, in place, and check the copy.

    Parameters
    ----------
    layer
        The embedding layer. Its padding row (`padding_idx`) is kept; it is zero unless it was changed.
    matrix
        One row for each token: an array or a tensor.
    freeze
        Whether the rows are excluded from training.

    Raises
    ------
    EmbinitError
        If the layer is no embedding, or the shapes differ.

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.Embedding(2, 3)
    >>> set_embedding(layer, np.ones((2, 3)))
    >>> layer.weight.sum().item()
    6.0
    """
    torch = require("torch", "train", "putting a matrix into a layer")
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, torch.Tensor) or not hasattr(layer, "padding_idx"):
        raise EmbinitError(f"set_embedding(layer, matrix) fills a torch.nn.Embedding, not {type(layer).__name__}")
    matrix = matrix if isinstance(matrix, np.ndarray) else check_matrix(matrix)
    if tuple(weight.shape) != matrix.shape:
        raise EmbinitError(f"the layer has the shape {tuple(weight.shape)}, but the matrix has {matrix.shape}")
    values = torch.from_numpy(np.ascontiguousarray(matrix)).to(weight.device, weight.dtype)
    if layer.padding_idx is not None:
        values = values.clone()
        values[layer.padding_idx] = weight.data[layer.padding_idx]
    with torch.no_grad():
        weight.copy_(values)
    if not torch.equal(weight.data, values):
        raise EmbinitError("the layer does not hold the rows that were put into it")
    weight.requires_grad_(not freeze)


def apply(embeddings: Embeddings | str | Path, model: str | Path, out: str | Path, *, resize: bool = False) -> Applied:
    """Write a copy of a model's folder with these embedding rows, load the copy and compare its rows bit for bit.

    Parameters
    ----------
    embeddings
        Embeddings, or anything that `load` takes. Rows are matched by token: a token that the model's tokenizer has gets the
        new row. Special tokens and all other rows are kept. A model without a tokenizer takes a matrix of its own shape, row
        by row.
    model
        The model's folder.
    out
        The folder to write; it must not exist.
    resize
        Whether the model gets exactly these tokens, in their order. An output layer that is not tied keeps the rows of the
        tokens that it had, and new tokens get the mean of its rows.

    Returns
    -------
    Applied
        The numbers of rows that were replaced and kept.

    Raises
    ------
    EmbinitError
        If the model cannot be loaded, the dimensions differ, or no token matches.
    """
    transformers = require("transformers", "train", "putting a matrix into a model")
    require("torch", "train", "putting a matrix into a model")
    embeddings, model, out = load(embeddings), Path(model), Path(out)
    if not (model / "config.json").is_file():
        raise EmbinitError(f"{model} is no model folder: it has no config.json")
    if out.resolve() == model.resolve():
        raise EmbinitError(f"{out} is the model itself; give another folder")
    loaded, missing = _load(transformers, model)
    layer = loaded.get_input_embeddings()
    if int(layer.weight.shape[1]) != embeddings.dim:
        raise EmbinitError(
            f"{model} has {int(layer.weight.shape[1])} dimensions, but the matrix has {embeddings.dim}; "
            "make the matrix with --dim and --project"
        )
    table = _tokens(model, len(layer.weight), embeddings, resize)
    plan = _plan(embeddings, table, len(layer.weight), resize)
    if not plan.into:
        raise EmbinitError(
            f"no token of the matrix is in {model}, so no row would change (special tokens keep their rows); see --resize"
        )
    if resize:
        _renumber(loaded, table.tokens, embeddings)
    expected = _fill(loaded, plan, embeddings, resize)
    with replacing_folder(out) as folder:
        _save(transformers, loaded, folder)
        _carry_over(model, folder, tokenizer=not resize)
        if resize:
            (folder / "tokens.json").write_text(json.dumps({"tokens": list(embeddings.tokens)}), encoding="utf-8")
        reloaded, _ = _load(transformers, folder)
        if not _same(reloaded.get_input_embeddings().weight, expected):
            raise EmbinitError(
                f"{model}: the embedding that was saved and loaded again differs from the one that was put in"
            )
        tied = _is_tied(reloaded)
    return Applied(
        rows=len(expected),
        dim=embeddings.dim,
        replaced=len(plan.into),
        specials_kept=plan.specials_kept,
        others_kept=0 if resize else len(expected) - len(plan.into) - plan.specials_kept,
        unused=plan.unused,
        tied=tied,
        resized=resize,
        missing=missing,
    )


@dataclass(frozen=True)
class _Plan:
    """Rows to copy: from the matrix, and from the old layer, into the new layer."""

    #: row of the matrix -> row of the new layer
    source: list[int]
    into: list[int]
    #: row of the old layer -> row of the new layer, for tokens whose row or output row is kept
    kept_from: list[int]
    kept_into: list[int]
    specials_kept: int
    unused: int


def _plan(embeddings: Embeddings, table: TokenTable, rows: int, resize: bool) -> _Plan:
    known = {token: i for i, token in reversed(list(enumerate(table.tokens[:rows]))) if token is not None}
    marked = table.specials | embeddings.specials
    special = {token for token in known if token in marked or looks_special(token)}
    shared = [(i, known[token]) for i, token in enumerate(embeddings.tokens) if token in known]
    if resize:
        source = [i for i, token in enumerate(embeddings.tokens) if token not in special]
        return _Plan(source, source, [j for _, j in shared], [i for i, _ in shared], len(embeddings) - len(source), 0)
    plain = [(i, j) for i, j in shared if embeddings.tokens[i] not in special]
    return _Plan([i for i, _ in plain], [j for _, j in plain], [], [], len(special), len(embeddings) - len(shared))


def _fill(loaded: Any, plan: _Plan, embeddings: Embeddings, resize: bool) -> Any:
    """Put the rows in and return the expected contents of the layer."""
    import torch

    values = torch.from_numpy(np.ascontiguousarray(embeddings.vectors))
    old = loaded.get_input_embeddings().weight.detach().clone()
    outputs = [part.detach().clone() for part in _outputs(loaded)]
    if resize:
        loaded.resize_token_embeddings(len(embeddings), mean_resizing=False)
    weight = loaded.get_input_embeddings().weight
    with torch.no_grad():
        weight[plan.kept_into] = old[plan.kept_from]
        weight[plan.into] = values[plan.source].to(weight.dtype)
        expected = weight.detach().clone()
        if resize:
            # transformers resizes by position: the output row of the old token 7 would go to the new token 7.
            for new, old_rows in zip(_outputs(loaded), outputs, strict=True):
                new[:] = old_rows.float().mean(dim=0).to(new.dtype)
                new[plan.kept_into] = old_rows[plan.kept_from]
    loaded.tie_weights()
    return expected


def _outputs(loaded: Any) -> list[Any]:
    """Return the output tensors with an entry for each token: an untied weight, its bias, and Marian's (1, tokens) bias."""
    head = loaded.get_output_embeddings()
    tensors = [] if head is None or _is_tied(loaded) else [head.weight]
    tensors += [] if getattr(head, "bias", None) is None else [head.bias]
    logits = getattr(loaded, "final_logits_bias", None)
    return tensors + ([] if logits is None else [logits[0]])


def _renumber(loaded: Any, old_tokens: Sequence[str | None], embeddings: Embeddings) -> None:
    """Set `pad_token_id` and similar settings to the same tokens' new ids, or to None for tokens that are gone."""
    for config in (loaded.config, loaded.generation_config if loaded.can_generate() else None):
        for name, value in {} if config is None else config.to_dict().items():
            if name.endswith(_TOKEN_ID) and value is not None:
                ids = value if isinstance(value, list) else [value]
                tokens = [old_tokens[i] for i in ids if 0 <= i < len(old_tokens)]
                new = [embeddings.index[token] for token in tokens if token in embeddings.index]
                setattr(config, name, (new if isinstance(value, list) else new[0]) if new else None)


def _tokens(model: Path, rows: int, embeddings: Embeddings, resize: bool) -> TokenTable:
    """Return the model's tokens by row; a model without a tokenizer has the matrix's tokens, if the sizes agree."""
    if any((model / name).is_file() for name in FOLDER_FILES):
        return token_table(lambda name: model / name if (model / name).is_file() else None, str(model))
    if rows == len(embeddings):
        return TokenTable(list(embeddings.tokens), embeddings.specials)
    if resize:
        return TokenTable([None] * rows, frozenset())
    raise EmbinitError(
        f"{model} has no tokenizer and {rows} rows, but the matrix has {len(embeddings)}; "
        f"give a matrix of {rows} rows, or --resize"
    )


def _load(transformers: Any, folder: Path) -> tuple[Any, int]:
    """Return the model, of the class that its config names, and the number of tensors that its folder lacks."""
    try:
        with _quiet(transformers):
            config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
            names = [name for name in config.architectures or [] if hasattr(transformers, name)]
            kind = getattr(transformers, names[0]) if names else transformers.AutoModel
            loaded, report = kind.from_pretrained(folder, output_loading_info=True)
    except Exception as error:  # transformers raises errors of many libraries
        raise EmbinitError(f"{folder} cannot be loaded by transformers: {str(error).partition(chr(10))[0]}") from None
    return loaded, len(report["missing_keys"])


def _save(transformers: Any, loaded: Any, folder: Path) -> None:
    try:
        with _quiet(transformers):
            loaded.save_pretrained(folder)
    except Exception as error:  # on a full disk, safetensors raises an error of its own
        raise EmbinitError(f"cannot write {folder.name}: {str(error).partition(chr(10))[0]}") from None


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Silence transformers' log and progress bars."""
    log = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def _is_tied(loaded: Any) -> bool:
    head = loaded.get_output_embeddings()
    return head is not None and head.weight.data_ptr() == loaded.get_input_embeddings().weight.data_ptr()


def _same(weight: Any, expected: Any) -> bool:
    import torch

    return bool(torch.equal(weight.detach().cpu(), expected.cpu()))


def _carry_over(model: Path, folder: Path, tokenizer: bool) -> None:
    """Copy files that `save_pretrained` does not write: sentence-transformers' files, and the tokenizer if it still fits."""
    for source in sorted(model.rglob("*")):
        place = source.relative_to(model)
        if not source.is_file() or source.suffix not in _SMALL or place.name.endswith(".index.json"):
            continue
        if (folder / place).exists() or (not tokenizer and place.name in _TOKENIZER_FILES):
            continue
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(source.read_bytes())
