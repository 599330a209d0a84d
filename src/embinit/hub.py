"""The Hugging Face hub: repository ids, whether it can be reached, and small files through its cache."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

from embinit.errors import Unavailable, require

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
