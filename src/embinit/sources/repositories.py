"""The files of a checkpoint: in a folder on disk, or in a repository on the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from embinit.errors import Unavailable, require
from embinit.hub import library, offline, reason, unreachable
from embinit.sources.safetensors import ByteSource, LocalBytes

#: Seconds without a byte from the server, after which a read ends.
_STALL = 30


def is_inside(file: str) -> bool:
    """Return whether the name of a file stays inside its folder.

    >>> is_inside("onnx/model.safetensors"), is_inside("../model.safetensors"), is_inside("/etc/passwd")
    (True, False, False)
    """
    path = PurePosixPath(file)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in file


class Repository(Protocol):
    """The files of one checkpoint."""

    name: str

    def small(self, file: str) -> Path | None:
        """Return the path of a configuration or token file on disk, None if there is no such file."""
        ...

    def large(self, file: str) -> ByteSource | None:
        """Return a weight file to read in parts, None if there is no such file."""
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
        """Return the path of the file, None if it does not exist."""
        return self.path / file if (self.path / file).is_file() else None

    def large(self, file: str) -> ByteSource | None:
        """Return the file to read in parts, None if it does not exist."""
        return LocalBytes(self.path / file) if (self.path / file).is_file() else None

    def files(self) -> list[str]:
        """Return the names of the files in the folder."""
        return sorted(entry.name for entry in self.path.iterdir() if entry.is_file())


class Hub:
    """A repository on the hub. Small files come through the cache, weights by range requests."""

    def __init__(self, spec: str, hint: str = "") -> None:
        """Take the id of a repository, and a hint that is added to the message if there is no such repository."""
        self._hub: Any = library(f"reading {spec} from the hub")
        # The package loads its modules lazily, but these two must be imported by name.
        self._errors: Any = require("huggingface_hub.errors", "hf", f"reading {spec} from the hub")
        self._utils: Any = require("huggingface_hub.utils", "hf", f"reading {spec} from the hub")
        self.name = spec
        self._hint = hint
        self._id, _, revision = spec.partition("@")
        self._revision = revision or None
        self._listing: list[str] | None = None

    def small(self, file: str) -> Path | None:
        """Return the path of the file in the cache, after a download if necessary; offline: from the cache only."""
        errors, why_unreachable = self._errors, unreachable()
        try:
            cached_only = why_unreachable is not None
            return Path(
                self._hub.hf_hub_download(self._id, file, revision=self._revision, local_files_only=cached_only)
            )
        except (errors.EntryNotFoundError, errors.LocalEntryNotFoundError) as error:
            if isinstance(error, errors.LocalEntryNotFoundError) and not offline():
                raise self._unreachable(why_unreachable or reason(error.__cause__ or error)) from None
            return None
        except errors.GatedRepoError:  # before its base class RepositoryNotFoundError
            raise Unavailable(
                f"{self.name} is gated; accept its terms on the hub and log in with `hf auth login`"
            ) from None
        except (errors.RepositoryNotFoundError, errors.HFValidationError):
            raise Unavailable(
                f"{self.name} is neither a file here nor a repository on the hub, or it is private{self._hint}"
            ) from None
        except errors.RevisionNotFoundError:
            raise Unavailable(f"{self._id} has no revision {self._revision!r}") from None
        except Exception as error:  # the exception depends on the version's HTTP library
            raise self._unreachable(reason(error)) from None

    def large(self, file: str) -> ByteSource | None:
        """Return the file from the cache if it is there, and otherwise the file on the server."""
        cached = self._hub.try_to_load_from_cache(self._id, file, revision=self._revision)
        if isinstance(cached, str):
            return LocalBytes(Path(cached))
        if offline():
            return None
        url = self._hub.hf_hub_url(self._id, file, revision=self._revision)
        return _RemoteBytes(self._utils, url, f"{self.name}/{file}")

    def files(self) -> list[str]:
        """Return the names of the repository's files; offline: of the files in the cache."""
        if self._listing is None:
            if offline():
                config = self.small("config.json")
                self._listing = sorted(p.name for p in config.parent.iterdir()) if config is not None else []
                if not any(name.endswith((".safetensors", ".bin")) for name in self._listing):
                    raise Unavailable(
                        f"the weights of {self.name} are not in the hub's cache, and HF_HUB_OFFLINE is set; "
                        f"run `hf download {self.name}` first{self._hint}"
                    )
            else:
                try:
                    names = self._hub.list_repo_files(self._id, revision=self._revision)
                    self._listing = [name for name in names if is_inside(name)]
                except Exception as error:
                    raise self._unreachable(reason(error)) from None
        return self._listing

    def _unreachable(self, why: str) -> Unavailable:
        return Unavailable(f"{self.name} is not a folder here, and the hub cannot be reached: {why}{self._hint}")


class _RemoteBytes:
    """A file on a server, read by range requests."""

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
            with self._session.stream(
                "GET", self._url, headers=headers, follow_redirects=True, timeout=_STALL
            ) as response:
                if response.status_code == 200:
                    raise Unavailable(f"{self.name}: the server ignores range requests; download the folder first")
                if response.status_code != 206:
                    raise Unavailable(f"{self.name}: the server answered {response.status_code}")
                total = response.headers.get("Content-Range", "").rpartition("/")[2]
                self.size = int(total) if total.isdigit() else None
                return self._body(response, end - start)
        except Unavailable:
            raise
        except Exception as error:  # the exception depends on the version's HTTP library
            raise Unavailable(f"{self.name}: the connection broke ({reason(error)})") from None

    def _body(self, response: Any, size: int) -> bytes:
        """Return the bytes of an answer; more than were asked for are an error."""
        body = bytearray()
        for part in response.iter_bytes():
            body += part
            if len(body) > size:
                raise Unavailable(f"{self.name}: the server sent more than the {size:,} bytes that were asked for")
        return bytes(body)
