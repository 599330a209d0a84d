"""The versions, the device and the commit that made a run."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

import embinit
from embinit.format import plural

_PACKAGES = ("numpy", "torch", "safetensors", "sacrebleu")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide numbers."""
    versions = {"embinit": embinit.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "unknown"
    return versions


@cache
def device_name(device: str) -> str:
    """Return the name of a device: the card, or the processor with its number of threads."""
    import torch

    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    return f"{_processor()}, {plural(torch.get_num_threads(), 'thread')}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@cache
def commit_of() -> str:
    """Return the commit of this code, with a + if files have changed since; empty outside a repository."""
    folder = Path(embinit.__file__).parent
    try:
        commit = _git("rev-parse", "HEAD", folder=folder)
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", folder=folder)
    except (OSError, subprocess.SubprocessError):
        return ""
    return commit[:12] + ("+" if changed else "")


@cache
def code_of() -> str:
    """Return a short hash of the package's own files; two machines with the same code have the same hash."""
    folder = Path(embinit.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".toml")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _git(*words: str, folder: Path) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
