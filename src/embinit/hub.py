"""Hugging Face: ids and small files of the hub, and objects of its libraries, recognized without an import."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

from embinit.errors import EmbinitError, Unavailable, require

#: The hub must answer one request within this many seconds.
_TIMEOUT = 5
_ID = re.compile(r"[\w-][\w.-]*(?P<name>/[\w.-]+)?(@[\w./-]+)?")
_FILE = re.compile(r"\.(txt|vec|bin|gz|bz2|xz|zip|npy|npz|safetensors|json|model|spm|kv|pt|csv|tsv)$", re.IGNORECASE)


class NoSuchFile(Unavailable):
    """The repository exists but does not have the file; offline: the cache does not have it."""


def is_id(text: str, owned: bool = True) -> bool:
    """Return whether a text may be the id of a repository (OWNER/NAME or OWNER/NAME@REVISION) and not a file name.

    The oldest models have a NAME alone; it counts if `owned` is false.

    >>> is_id("google/mt5-base"), is_id("glove/glove.6B.50d.txt"), is_id("t5-small"), is_id("t5-small", owned=False)
    (True, False, False, True)
    """
    match = _ID.fullmatch(text)
    return match is not None and bool(match["name"] or not owned) and not _FILE.search(text)


def library(purpose: str) -> Any:
    """Return the huggingface_hub library with its retry warnings silenced."""
    hub = require("huggingface_hub", "hf", purpose)
    # The first import of this module creates the loggers and resets their level, so the level is set through it.
    require("huggingface_hub.utils.logging", "hf", purpose).set_verbosity_error()
    return hub


def unreachable() -> str | None:
    """Return why the hub does not answer; None if it answers, or if HF_HUB_OFFLINE forbids requests.

    The library itself retries for half a minute before it gives up.
    """
    if offline():
        return None
    try:
        _send_request()
    except Exception as error:  # the exception depends on the version's HTTP library
        return reason(error)
    return None


@cache  # a success is cached, an exception is not
def _send_request() -> None:
    from huggingface_hub import constants, get_session

    get_session().head(constants.ENDPOINT, timeout=_TIMEOUT)


def offline() -> bool:
    """Return whether HF_HUB_OFFLINE forbids requests to the hub."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def reason(error: BaseException) -> str:
    """Return the first line of an error, or its type if it has no text."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def download(
    repository: str, file: str, revision: str | None = None, kind: Literal["dataset", "model"] = "dataset"
) -> Path:
    """Return the path of a repository's file in the cache, after a download if necessary; offline: from the cache only."""
    hub = library(f"reading {repository} from the hub")
    from huggingface_hub import errors

    cached = unreachable() is not None
    try:
        return Path(hub.hf_hub_download(repository, file, repo_type=kind, revision=revision, local_files_only=cached))
    except errors.LocalEntryNotFoundError:
        missing = Unavailable if cached else NoSuchFile
        raise missing(f"{repository}/{file} is not in the hub's cache, and the hub cannot be reached") from None
    except errors.EntryNotFoundError:
        raise NoSuchFile(f"{repository} has no file {file} on the hub") from None
    except errors.RepositoryNotFoundError:
        raise Unavailable(
            f"{repository} is neither a file here nor a repository on the hub, or it is private"
        ) from None
    except Exception as error:  # the exception depends on the version's HTTP library
        raise Unavailable(f"cannot reach the hub for {repository}: {reason(error)}") from None


# ---------------------------------------------------------------- objects


def is_instance(value: Any, library: str, *names: str) -> bool:
    """Return whether a value is an instance of one of a library's classes, or of a subclass of them.

    >>> import collections
    >>> is_instance(collections.OrderedDict(), "collections", "OrderedDict"), is_instance({}, "torch", "Tensor")
    (True, False)
    """
    return any(kind.__name__ in names and kind.__module__.partition(".")[0] == library for kind in type(value).__mro__)


def is_config(value: Any) -> bool:
    """Return whether a value is a configuration of transformers, which version 4 spells PretrainedConfig."""
    return is_instance(value, "transformers", "PreTrainedConfig", "PretrainedConfig")


def is_model(value: Any) -> bool:
    """Return whether a value is a model of transformers."""
    return is_instance(value, "transformers", "PreTrainedModel")


def is_base_model(model: Any) -> bool:
    """Return whether a model is its own base model, so that it may be a part of a model with an output layer.

    Decoders and bare layers are such parts too.
    """
    return getattr(model, "base_model", model) is model


def is_embedding(value: Any) -> bool:
    """Return whether a value is torch's embedding layer."""
    return is_instance(value, "torch", "Embedding")


def is_linear(value: Any) -> bool:
    """Return whether a value is torch's linear layer, for example an output layer."""
    return is_instance(value, "torch", "Linear")


def is_tokenizer(value: Any) -> bool:
    """Return whether a value is a tokenizer of transformers or of tokenizers."""
    return is_instance(value, "transformers", "PreTrainedTokenizerBase") or is_instance(
        value, "tokenizers", "Tokenizer"
    )


def uncompiled(model: Any) -> Any:
    """Return the model that torch.compile wrapped; any other value comes back unchanged."""
    return model._orig_mod if is_instance(model, "torch", "OptimizedModule") else model


def embedding_of(model: Any) -> Any:
    """Return the input embedding of a transformers model; a model without one is an error."""
    try:
        layer = model.get_input_embeddings()
    except NotImplementedError:
        layer = None
    if layer is None or not hasattr(layer, "weight"):
        raise EmbinitError(f"{type(model).__name__} has no embedding of tokens (get_input_embeddings)")
    return layer
