"""The Hugging Face hub: whether it answers, and small files through its cache (data sets, tokenizers)."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

from embinit.errors import NotHere, require

#: Seconds in which the hub must have answered once.
_PATIENCE = 5
_ID = re.compile(r"[\w-][\w.-]*(?P<name>/[\w.-]+)?(@[\w./-]+)?")
_FILE = re.compile(r"\.(txt|vec|bin|gz|bz2|xz|zip|npy|npz|safetensors|json|model|spm|kv|pt|csv|tsv)$", re.IGNORECASE)


class NoSuchFile(NotHere):
    """The repository is there and has no such file; offline, the cache has none."""


def is_id(text: str, owned: bool = True) -> bool:
    """Return whether this may be a repository's id, OWNER/NAME or OWNER/NAME@REVISION, and is not the name of a file.

    Models of old have a NAME alone, which counts unless they are to be `owned`.

    >>> is_id("google/mt5-base"), is_id("glove/glove.6B.50d.txt"), is_id("t5-small"), is_id("t5-small", owned=False)
    (True, False, False, True)
    """
    found = _ID.fullmatch(text)
    return found is not None and bool(found["name"] or not owned) and not _FILE.search(text)


def library(purpose: str) -> Any:
    """Return the hub's library, whose warnings of retries are not for the screen."""
    hub = require("huggingface_hub", "hf", purpose)
    # Its loggers are made, with a level of their own, when this module is first imported: so by it, and not before it.
    require("huggingface_hub.utils.logging", "hf", purpose).set_verbosity_error()
    return hub


def unreachable() -> str | None:
    """Return why the hub does not answer; None where it does, or where HF_HUB_OFFLINE says not to ask it.

    The library itself would try for half a minute before it says so.
    """
    if offline():
        return None
    try:
        _answers()
    except Exception as error:  # whatever the HTTP library of this version raises
        return reason(error)
    return None


@cache  # an answer is remembered, and an exception is not
def _answers() -> None:
    from huggingface_hub import constants, get_session

    get_session().head(constants.ENDPOINT, timeout=_PATIENCE)


def offline() -> bool:
    """Return whether the environment says that the hub is not to be asked."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def reason(error: BaseException) -> str:
    """Return the first line of an error, or its kind where it has no text."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def download(
    repository: str, file: str, revision: str | None = None, kind: Literal["dataset", "model"] = "dataset"
) -> Path:
    """Return a file of a repository, downloaded where it is not in the cache; offline, only from there."""
    hub = library(f"reading {repository} from the hub")
    from huggingface_hub import errors

    cached = unreachable() is not None
    try:
        return Path(hub.hf_hub_download(repository, file, repo_type=kind, revision=revision, local_files_only=cached))
    except errors.LocalEntryNotFoundError:
        missing = NotHere if cached else NoSuchFile
        raise missing(f"{repository}/{file} is not in the hub's cache, and the hub cannot be reached") from None
    except errors.EntryNotFoundError:
        raise NoSuchFile(f"{repository} has no file {file} on the hub") from None
    except errors.RepositoryNotFoundError:
        raise NotHere(f"{repository} is neither here nor on the hub (or it is private)") from None
    except Exception as error:  # whatever the HTTP library of this version raises
        raise NotHere(f"cannot reach the hub for {repository}: {reason(error)}") from None
