"""Give a Hugging Face model new embedding and output rows, save it, load it again and compare the rows bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embinit.errors import EmbinitError
from embinit.files import replacing_folder
from embinit.hub import reason

if TYPE_CHECKING:
    import torch

#: Endings of files that are copied with a model; they hold neither weights nor code.
_SMALL = (".json", ".txt", ".model", ".spm", ".jinja", ".md")
#: Files of a tokenizer; they are not copied if the tokenizer changes.
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
    "tokens.json",
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
class TokenLayers:
    """The tensors of a model that hold an entry for each token."""

    #: the embedding's weight, (rows, dim)
    inputs: torch.Tensor
    #: an output weight that is not tied, (rows, dim), and output biases, (rows,)
    outputs: tuple[torch.Tensor, ...]


def token_layers(model: Any) -> TokenLayers:
    """Return copies of a model's tensors that hold an entry for each token."""
    return TokenLayers(
        model.get_input_embeddings().weight.detach().clone(),
        tuple(tensor.detach().clone() for tensor in output_tensors(model)),
    )


def is_tied(model: Any) -> bool:
    """Return whether the model's output layer shares the embedding's weight."""
    head = model.get_output_embeddings()
    return head is not None and head.weight.data_ptr() == model.get_input_embeddings().weight.data_ptr()


def output_tensors(model: Any) -> list[Any]:
    """Return the output tensors with an entry for each token: an untied weight, its bias, and Marian's (1, tokens) bias."""
    head = model.get_output_embeddings()
    tensors = [] if head is None or is_tied(model) else [head.weight]
    tensors += [] if getattr(head, "bias", None) is None else [head.bias]
    logits = getattr(model, "final_logits_bias", None)
    return tensors + ([] if logits is None else [logits[0]])


def set_token_layers(model: Any, layers: TokenLayers) -> None:
    """Give a model these rows in place. `vocab_size` follows their number, and a tied output layer stays tied."""
    import torch

    rows = len(layers.inputs)
    if rows != len(model.get_input_embeddings().weight):
        # transformers draws the rows that are replaced below, and some of its models print how
        with torch.random.fork_rng(), quiet():
            try:
                model.resize_token_embeddings(rows, mean_resizing=False)
            except NotImplementedError as error:
                raise EmbinitError(f"this {type(model).__name__} cannot be resized: {reason(error)}") from None
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(layers.inputs)
        for tensor, values in zip(output_tensors(model), layers.outputs, strict=True):
            tensor.copy_(values)
    model.tie_weights()


def renumber(model: Any, new_id: Callable[[int], int | None]) -> None:
    """Set `pad_token_id` and similar settings of a model to new ids, or to None if no token of a setting has a new id."""
    for config in (model.config, model.generation_config if model.can_generate() else None):
        for name, value in {} if config is None else config.to_dict().items():
            if name.endswith(_TOKEN_ID) and value is not None:
                ids = [new_id(old) for old in (value if isinstance(value, list) else [value])]
                kept = [new for new in ids if new is not None]
                setattr(config, name, (kept if isinstance(value, list) else kept[0]) if kept else None)


def load_model(folder: Path) -> tuple[Any, int]:
    """Return the model, of the class that its config names, and the number of tensors that its folder lacks."""
    import transformers

    try:
        with quiet():
            config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
            names = [name for name in config.architectures or [] if hasattr(transformers, name)]
            kind = getattr(transformers, names[0]) if names else transformers.AutoModel
            # Version 4 loads float32 unless it is told to keep the folder's number format; version 5 keeps it.
            loaded, report = kind.from_pretrained(folder, dtype="auto", output_loading_info=True)
    except Exception as error:  # transformers raises errors of many libraries
        reason = str(error).partition("\n")[0]
        # transformers 5 names the sizes only in its log, and 4 names them after the first line.
        if any(words in str(error) for words in ("ignore_mismatched_sizes", "size mismatch")):
            reason = "its config.json gives other sizes than its weights have (vocab_size, hidden_size)"
        raise EmbinitError(f"{folder} cannot be loaded by transformers: {reason}") from None
    return loaded, len(report["missing_keys"])


def save_verified(
    model: Any,
    layers: TokenLayers,
    out: Path,
    *,
    source: Path | None,
    keep_tokenizer: bool,
    finish: Callable[[Path], None] = lambda _: None,
) -> None:
    """Save a model to a new folder, load it again, and compare its token layers bit for bit. A failure leaves no folder.

    Parameters
    ----------
    model
        The model.
    layers
        The expected contents of its token layers.
    out
        The folder to write; it must not exist.
    source
        The folder that the model came from. Its small files that transformers does not write are copied.
    keep_tokenizer
        Whether the tokenizer's files are copied too.
    finish
        Writes further files into the folder before it is checked.

    Raises
    ------
    EmbinitError
        If the folder cannot be written, or a row differs after loading.
    """
    with replacing_folder(out) as folder:
        try:
            with quiet():
                model.save_pretrained(folder)
        except Exception as error:  # on a full disk, safetensors raises an error of its own
            raise EmbinitError(f"cannot write {folder.name}: {str(error).partition(chr(10))[0]}") from None
        if source is not None:
            _carry_over(source, folder, keep_tokenizer)
        finish(folder)
        reloaded, _ = load_model(folder)
        if is_tied(reloaded) != is_tied(model) or not _equal(token_layers(reloaded), layers):
            raise EmbinitError(
                f"{source or 'the model'}: the rows that were saved and loaded again differ from those that were put in"
            )


def _equal(found: TokenLayers, expected: TokenLayers) -> bool:
    import torch

    pairs = [(found.inputs, expected.inputs), *zip(found.outputs, expected.outputs, strict=True)]
    # A model in half precision is loaded in float32 or in its own format; either holds the same numbers.
    return all(torch.equal(tensor.cpu().float(), other.cpu().float()) for tensor, other in pairs)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' log and progress bars."""
    import transformers

    log: Any = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def _carry_over(model: Path, folder: Path, tokenizer: bool) -> None:
    """Copy files that `save_pretrained` does not write: sentence-transformers' files, and the tokenizer if it still fits."""
    for source in sorted(model.rglob("*")):
        place = source.relative_to(model)
        if not source.is_file() or source.suffix not in _SMALL or place.name.endswith(".index.json"):
            continue
        if (folder / place).exists() or (not tokenizer and place.name in TOKENIZER_FILES):
            continue
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(source.read_bytes())
