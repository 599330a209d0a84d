"""Checksums of contents, whatever their folder is called."""

from __future__ import annotations

import hashlib
from pathlib import Path


def fingerprint(path: Path) -> str:
    """Return a checksum of everything in a prepared task's folder that decides what a run sees: all but the manifest."""
    whole = hashlib.sha256()
    for file in sorted(path.iterdir(), key=lambda file: file.name):
        if file.name != "manifest.json":
            with file.open("rb") as content:
                whole.update(f"{file.name} {hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()
