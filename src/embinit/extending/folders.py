"""Extend a model's folder: load it, extend it, save it, load it again, and compare rows and token ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, require
from embinit.export.resize import load_model, quiet, save_verified, token_layers
from embinit.extending.report import Extension
from embinit.text.token_files import FOLDER_FILES, check_size, read_json_object

#: From a model and its tokenizer to the result, for example `embinit.extend` with its arguments.
Extend = Callable[[Any, Any], Extension]
#: Words whose ids are compared after the tokenizer is loaded again.
_PROBES = 1000


def extend_folder(folder: Path, out: Path, extend: Extend) -> Extension:
    """Write an extended copy of a model's folder. A failure leaves no folder.

    Parameters
    ----------
    folder
        The folder of a model of transformers with its tokenizer.
    out
        The folder to write; it must not exist.
    extend
        Extends the loaded model in place.

    Returns
    -------
    Extension
        The result of `extend`.

    Raises
    ------
    EmbinitError
        If the folder cannot be read or written, or the copy differs when it is loaded again.
    """
    require("transformers", "train", "extending a model")
    if out.exists():
        raise EmbinitError(f"{out} exists already; give a new folder or remove it first")
    if not (folder / "config.json").is_file():
        raise EmbinitError(f"{folder} is no model folder: it has no config.json")
    if "quantization_config" in read_json_object(folder / "config.json"):
        raise EmbinitError(f"{folder} is quantized; extend the original model and quantize the result")
    tokenizer = load_tokenizer(folder)
    model, missing = load_model(folder)
    extension = extend(model, tokenizer)
    probes = [*extension.words[:_PROBES], *(f"a {word}, {word}s" for word in extension.words[:_PROBES] if word)]

    def write_tokenizer(part: Path) -> None:
        with quiet():
            extension.tokenizer.save_pretrained(part)
        check_tokenizer(extension.tokenizer, part, probes)

    layers = token_layers(model)
    save_verified(model, layers, out, source=folder, keep_tokenizer=False, finish=write_tokenizer)
    return replace(extension, details={**extension.details, "missing tensors": missing}) if missing else extension


def checkpoint_beside(out: Path) -> Path:
    """Return the file that holds a stopped fit while a folder is made."""
    return out.with_name(f"{out.name}.checkpoint")


def load_tokenizer(folder: Path) -> Any:
    """Return the fast tokenizer of a folder."""
    import transformers

    if not folder.is_dir():
        raise EmbinitError(f"there is no tokenizer folder {folder}")
    if not any((folder / name).is_file() for name in FOLDER_FILES):
        raise EmbinitError(f"{folder} has no fast tokenizer; looked for {', '.join(FOLDER_FILES)}")
    for name in FOLDER_FILES:
        if (folder / name).exists():
            check_size(folder / name)
    try:
        with quiet():
            return transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # transformers raises errors of many libraries
        reason = str(error).partition("\n")[0]
        raise EmbinitError(f"the tokenizer of {folder} cannot be loaded: {reason}") from None


def check_tokenizer(tokenizer: Any, folder: Path, texts: Sequence[str]) -> None:
    """Raise EmbinitError if the tokenizer that a folder holds gives other ids than this one."""
    reloaded = load_tokenizer(folder)
    for text in texts:
        if tokenizer(text)["input_ids"] != reloaded(text)["input_ids"]:
            raise EmbinitError(f"the tokenizer that was saved and loaded again splits {text!r} differently")
