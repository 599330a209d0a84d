"""Checkpoints as sets of files: a folder on disk, or a repository on the Hugging Face hub read by ranges."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from embinit.errors import NotHere, require
from embinit.hub import library, offline, reason, unreachable
from embinit.sources.tensors import Bytes, LocalBytes


class Repository(Protocol):
    """Files of one checkpoint."""

    name: str

    def small(self, file: str) -> Path | None:
        """Return a configuration or token file on disk, None where there is none."""
        ...

    def large(self, file: str) -> Bytes | None:
        """Return a weight file that is read in parts, None where there is none."""
        ...

    def files(self) -> list[str]:
        """Return the names of all files."""
        ...


class Folder:
    """A checkpoint on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)

    def small(self, file: str) -> Path | None:
        """Return the file's path where it exists."""
        return self.path / file if (self.path / file).is_file() else None

    def large(self, file: str) -> Bytes | None:
        """Return the file, to be read in parts."""
        return LocalBytes(self.path / file) if (self.path / file).is_file() else None

    def files(self) -> list[str]:
        """Return the names of the files in the folder."""
        return sorted(entry.name for entry in self.path.iterdir() if entry.is_file())


class Hub:
    """A repository on the hub: small files through its cache, weights by ranged reads."""

    def __init__(self, spec: str, hint: str = "") -> None:
        """Take a hub id, and what to add to the sentence that it is neither here nor there."""
        self._hub: Any = library(f"reading {spec} from the hub")
        # The package loads its modules lazily, and these two not by attribute.
        self._errors: Any = require("huggingface_hub.errors", "hf", f"reading {spec} from the hub")
        self._utils: Any = require("huggingface_hub.utils", "hf", f"reading {spec} from the hub")
        self.name = spec
        self._hint = hint
        self._id, _, revision = spec.partition("@")
        self._revision = revision or None
        self._listing: list[str] | None = None

    def small(self, file: str) -> Path | None:
        """Return the file from the cache, downloaded first where needed; offline, only from the cache."""
        errors, silent = self._errors, unreachable()
        try:
            return Path(
                self._hub.hf_hub_download(self._id, file, revision=self._revision, local_files_only=silent is not None)
            )
        except (errors.EntryNotFoundError, errors.LocalEntryNotFoundError) as error:
            if isinstance(error, errors.LocalEntryNotFoundError) and not offline():
                raise self._nowhere(silent or reason(error.__cause__ or error)) from None
            return None
        except errors.GatedRepoError:  # is a RepositoryNotFoundError
            raise NotHere(
                f"{self.name} is gated: accept its terms on the hub and log in with `hf auth login`"
            ) from None
        except (errors.RepositoryNotFoundError, errors.HFValidationError):
            raise NotHere(
                f"{self.name} is neither a file here nor a repository on the hub (or it is private){self._hint}"
            ) from None
        except errors.RevisionNotFoundError:
            raise NotHere(f"{self._id} has no revision {self._revision!r}") from None
        except Exception as error:  # whatever the HTTP library of this version raises
            raise self._nowhere(reason(error)) from None

    def large(self, file: str) -> Bytes | None:
        """Return the file from the cache where it is whole there, and else by ranged reads."""
        cached = self._hub.try_to_load_from_cache(self._id, file, revision=self._revision)
        if isinstance(cached, str):
            return LocalBytes(Path(cached))
        if offline():
            return None
        url = self._hub.hf_hub_url(self._id, file, revision=self._revision)
        return _RemoteBytes(self._utils, url, f"{self.name}/{file}")

    def files(self) -> list[str]:
        """Return the names of the repository's files; offline, of those in the cache."""
        if self._listing is None:
            if offline():
                config = self.small("config.json")
                self._listing = sorted(p.name for p in config.parent.iterdir()) if config is not None else []
                if not any(name.endswith((".safetensors", ".bin")) for name in self._listing):
                    raise NotHere(
                        f"the weights of {self.name} are not in the hub's cache, and HF_HUB_OFFLINE is set: "
                        f"run `hf download {self.name}` first{self._hint}"
                    )
            else:
                try:
                    self._listing = list(self._hub.list_repo_files(self._id, revision=self._revision))
                except Exception as error:
                    raise self._nowhere(reason(error)) from None
        return self._listing

    def _nowhere(self, why: str) -> NotHere:
        return NotHere(f"{self.name} is no folder here, and the hub cannot be reached: {why}{self._hint}")


class _RemoteBytes:
    def __init__(self, utils: Any, url: str, name: str) -> None:
        self.name = name
        self.size: int | None = None
        self._url = url
        self._session = utils.get_session()
        self._headers: dict[str, str] = utils.build_hf_headers()

    def read(self, start: int, end: int) -> bytes:
        if end <= start:
            return b""
        headers = {**self._headers, "Range": f"bytes={start}-{end - 1}"}
        try:
            with self._session.stream("GET", self._url, headers=headers, follow_redirects=True) as answer:
                if answer.status_code == 200:
                    raise NotHere(f"{self.name}: the server does not answer ranged reads; download the folder first")
                if answer.status_code != 206:
                    raise NotHere(f"{self.name}: the server answered {answer.status_code}")
                total = answer.headers.get("Content-Range", "").rpartition("/")[2]
                self.size = int(total) if total.isdigit() else None
                return bytes(answer.read())
        except NotHere:
            raise
        except Exception as error:  # whatever the HTTP library of this version raises
            raise NotHere(f"{self.name}: the connection broke ({reason(error)})") from None
