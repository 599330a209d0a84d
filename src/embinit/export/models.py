"""A matrix into a model: a Hugging Face folder, or any nn.Embedding; then read back and compared."""

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

#: Endings of files that are copied along with a model: neither weights nor code.
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
    """What came to stand where in the model."""

    rows: int
    dim: int
    replaced: int
    #: special tokens of the model, whose rows it keeps
    specials_kept: int
    #: other rows of the model for which the matrix has no token
    others_kept: int
    #: tokens of the matrix that the model's tokenizer does not have
    unused: int
    tied: bool
    resized: bool
    #: tensors that the model's folder lacks, so that transformers drew them at random
    missing: int = 0


def set_embedding(layer: torch.nn.Embedding, matrix: Matrix, *, freeze: bool = False) -> None:
    """Copy a matrix into an embedding layer of the same shape, in place, and check that it is there.

    A padding row (`padding_idx`) stays as the layer has it: zero, unless somebody changed it.
    """
    torch = require("torch", "train", "putting a matrix into a layer")
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, torch.Tensor) or not hasattr(layer, "padding_idx"):
        raise EmbinitError(f"set_embedding(layer, matrix) fills a torch.nn.Embedding, not {type(layer).__name__}")
    matrix = matrix if isinstance(matrix, np.ndarray) else check_matrix(matrix)
    if tuple(weight.shape) != matrix.shape:
        raise EmbinitError(f"the layer has shape {tuple(weight.shape)}, the matrix {matrix.shape}")
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
    """Write a copy of a model's folder whose embedding holds these rows, load it again and compare them bit for bit.

    `embeddings` is what `load` gives or takes. Rows go by token: those that the model's tokenizer knows are replaced, the
    others and all special tokens keep theirs. With `resize`, the model gets exactly these tokens in their order; where the
    output layer is not tied, tokens that it knew keep their output row, and new ones get the mean row. A model without a
    tokenizer takes a matrix of its own shape row by row.
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
            f"{model} has {int(layer.weight.shape[1])} dimensions, the matrix {embeddings.dim}; "
            "make it with --dim and --project"
        )
    theirs = _tokens(model, len(layer.weight), embeddings, resize)
    plan = _plan(embeddings, theirs, len(layer.weight), resize)
    if not plan.into:
        raise EmbinitError(
            f"no token of the matrix is in {model}, so no row would change (specials keep theirs); see --resize"
        )
    if resize:
        _renumber(loaded, theirs.tokens, embeddings)
    expected = _fill(loaded, plan, embeddings, resize)
    with replacing_folder(out) as folder:
        _save(transformers, loaded, folder)
        _carry_over(model, folder, tokenizer=not resize)
        if resize:
            (folder / "tokens.json").write_text(json.dumps({"tokens": list(embeddings.tokens)}), encoding="utf-8")
        again, _ = _load(transformers, folder)
        if not _same(again.get_input_embeddings().weight, expected):
            raise EmbinitError(f"{model}: saved and loaded again, the embedding is not the one that was put in")
        tied = _is_tied(again)
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
    #: row of the matrix -> row of the new layer
    source: list[int]
    into: list[int]
    #: old row of the model -> row of the new layer, for rows that are kept or whose output row is
    kept_from: list[int]
    kept_into: list[int]
    specials_kept: int
    unused: int


def _plan(embeddings: Embeddings, theirs: TokenTable, rows: int, resize: bool) -> _Plan:
    known = {token: i for i, token in reversed(list(enumerate(theirs.tokens[:rows]))) if token is not None}
    marked = theirs.specials | embeddings.specials
    special = {token for token in known if token in marked or looks_special(token)}
    shared = [(i, known[token]) for i, token in enumerate(embeddings.tokens) if token in known]
    if resize:
        source = [i for i, token in enumerate(embeddings.tokens) if token not in special]
        return _Plan(source, source, [j for _, j in shared], [i for i, _ in shared], len(embeddings) - len(source), 0)
    plain = [(i, j) for i, j in shared if embeddings.tokens[i] not in special]
    return _Plan([i for i, _ in plain], [j for _, j in plain], [], [], len(special), len(embeddings) - len(shared))


def _fill(loaded: Any, plan: _Plan, embeddings: Embeddings, resize: bool) -> Any:
    """Put the rows in and return what the layer must hold from then on."""
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
            # transformers resizes by place: output row 7 would go from the old token 7 to the new one.
            for new, before in zip(_outputs(loaded), outputs, strict=True):
                new[:] = before.float().mean(dim=0).to(new.dtype)
                new[plan.kept_into] = before[plan.kept_from]
    loaded.tie_weights()
    return expected


def _outputs(loaded: Any) -> list[Any]:
    """Return what has an entry a token on the output side: an untied layer, its bias, and Marian's (1, tokens) bias."""
    head = loaded.get_output_embeddings()
    found = [] if head is None or _is_tied(loaded) else [head.weight]
    found += [] if getattr(head, "bias", None) is None else [head.bias]
    logits = getattr(loaded, "final_logits_bias", None)
    return found + ([] if logits is None else [logits[0]])


def _renumber(loaded: Any, theirs: Sequence[str | None], embeddings: Embeddings) -> None:
    """Let `pad_token_id` and its like mean the same tokens in the new vocabulary, or None where it lacks them."""
    for config in (loaded.config, loaded.generation_config if loaded.can_generate() else None):
        for name, value in {} if config is None else config.to_dict().items():
            if name.endswith(_TOKEN_ID) and value is not None:
                old = value if isinstance(value, list) else [value]
                tokens = [theirs[i] for i in old if 0 <= i < len(theirs)]
                new = [embeddings.index[token] for token in tokens if token in embeddings.index]
                setattr(config, name, (new if isinstance(value, list) else new[0]) if new else None)


def _tokens(model: Path, rows: int, embeddings: Embeddings, resize: bool) -> TokenTable:
    """Return the model's tokens by row; without a tokenizer its rows are the matrix's, if the shapes agree."""
    if any((model / name).is_file() for name in FOLDER_FILES):
        return token_table(lambda name: model / name if (model / name).is_file() else None, str(model))
    if rows == len(embeddings):
        return TokenTable(list(embeddings.tokens), embeddings.specials)
    if resize:
        return TokenTable([None] * rows, frozenset())
    raise EmbinitError(
        f"{model} has no tokenizer and {rows} rows, the matrix {len(embeddings)}: give one of that size, or --resize"
    )


def _load(transformers: Any, folder: Path) -> tuple[Any, int]:
    """Return the model with the class that its config names, head included, and how many tensors its folder lacks."""
    try:
        with _quiet(transformers):
            config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
            names = [name for name in config.architectures or [] if hasattr(transformers, name)]
            kind = getattr(transformers, names[0]) if names else transformers.AutoModel
            loaded, report = kind.from_pretrained(folder, output_loading_info=True)
    except Exception as error:  # transformers passes on whatever its readers raise
        raise EmbinitError(f"{folder} cannot be loaded by transformers: {str(error).partition(chr(10))[0]}") from None
    return loaded, len(report["missing_keys"])


def _save(transformers: Any, loaded: Any, folder: Path) -> None:
    try:
        with _quiet(transformers):
            loaded.save_pretrained(folder)
    except Exception as error:  # a full disk comes as an error of safetensors' own
        raise EmbinitError(f"cannot write {folder.name}: {str(error).partition(chr(10))[0]}") from None


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep transformers' reports and progress bars off the screen."""
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
    """Copy what `save_pretrained` does not write: sentence-transformers' files, and the tokenizer where it still fits."""
    for source in sorted(model.rglob("*")):
        place = source.relative_to(model)
        if not source.is_file() or source.suffix not in _SMALL or place.name.endswith(".index.json"):
            continue
        if (folder / place).exists() or (not tokenizer and place.name in _TOKENIZER_FILES):
            continue
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(source.read_bytes())
