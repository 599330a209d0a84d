"""Small files of the Hugging Face hub, through its cache: data sets, tokenizers."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Literal

from embinit.errors import NotHere, require


def download(
    repository: str, file: str, revision: str | None = None, kind: Literal["dataset", "model"] = "dataset"
) -> Path:
    """Return a file of a repository, downloaded where it is not in the cache; offline, only from there."""
    hub: Any = require("huggingface_hub", "hf", f"reading {repository} from the hub")
    from huggingface_hub import errors

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # its retries are not for the screen
    try:
        return Path(hub.hf_hub_download(repository, file, repo_type=kind, revision=revision))
    except errors.LocalEntryNotFoundError:
        raise NotHere(f"{repository}/{file} is not in the hub's cache, and the hub cannot be reached") from None
    except errors.EntryNotFoundError:
        raise NotHere(f"{repository} has no file {file} on the hub") from None
    except errors.RepositoryNotFoundError:
        raise NotHere(f"{repository} is neither here nor on the hub (or it is private)") from None
    except Exception as error:  # whatever the HTTP library of this version raises
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise NotHere(f"cannot reach the hub for {repository}: {reason}") from None
