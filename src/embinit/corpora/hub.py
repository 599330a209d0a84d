"""Files of data sets on the Hugging Face hub, through its cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, require


def download(repository: str, file: str, revision: str | None) -> Path:
    """Return a file of a data set's repository, downloaded where it is not in the cache; offline, only from there."""
    hub: Any = require("huggingface_hub", "hf", f"reading {repository} from the hub")
    try:
        return Path(hub.hf_hub_download(repository, file, repo_type="dataset", revision=revision))
    except hub.errors.LocalEntryNotFoundError:
        raise EmbinitError(f"{repository}/{file} is not in the hub's cache, and the hub cannot be reached") from None
    except hub.errors.EntryNotFoundError:
        raise EmbinitError(f"{repository} has no file {file}") from None
    except (hub.errors.HfHubHTTPError, OSError) as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise EmbinitError(f"cannot reach the hub for {repository}: {reason}") from None
