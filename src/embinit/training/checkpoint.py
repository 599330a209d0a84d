"""Checkpoints: everything that a training needs to continue, as one safetensors file with a checksum.

The file appears when it is complete. The previous one is kept, so that a damaged file does not cost the whole training:
`discard` puts the earlier one in the place of a damaged one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from embinit.errors import EmbinitError
from embinit.files import replacing


class Unusable(EmbinitError):
    """A checkpoint that is damaged or belongs to another training."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}; remove it to begin again")
        self.problem = problem


_NAME = "checkpoint.safetensors"
_EARLIER = "earlier.safetensors"
_KINDS = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}
#: Placeholder in the header while the checksum of the whole file, this text included, is computed.
_NO_CHECKSUM = "0" * 64
_LARGEST_HEADER = 1 << 28
_BLOCK = 1 << 20


def save(folder: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write a checkpoint, one tensor after the other, so that no second copy is in memory.

    The last checkpoint becomes the earlier one. The one before that is removed first, so that the folder never holds more
    than two.
    """
    for left in folder.glob(f".{_NAME}.*.part"):
        left.unlink(missing_ok=True)  # a killed process left it
    # Wide numbers come first, so that each tensor begins at a multiple of its width.
    tensors = dict(sorted(tensors.items(), key=lambda item: -item[1].element_size()))
    header: dict[str, Any] = {"__metadata__": {"checksum": _NO_CHECKSUM, "facts": json.dumps(facts)}}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _KINDS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    last, earlier = folder / _NAME, folder / _EARLIER
    if last.is_file():
        with suppress(OSError):
            earlier.unlink(missing_ok=True)
    with replacing(last) as out:
        out.write(head)
        checksum = hashlib.sha256(head)
        for tensor in tensors.values():
            data = tensor.detach().cpu().contiguous().numpy().data
            checksum.update(data)
            out.write(data)
        out.seek(head.index(_NO_CHECKSUM.encode()))
        out.write(checksum.hexdigest().encode())
        if last.is_file():
            with suppress(OSError):  # without hard links, only the last checkpoint is kept
                earlier.hardlink_to(last)


def load(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Return the tensors and facts of the last checkpoint; None if there is none.

    Raises
    ------
    Unusable
        If the file is damaged.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / _NAME
    if not path.is_file():
        return None
    try:
        with path.open("rb") as whole:
            _verify(whole)
        with safe_open(path, framework="pt") as file:
            facts = dict(json.loads(file.metadata()["facts"]))
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
    except (SafetensorError, ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        raise Unusable(f"{path} is damaged ({error})") from None


def _verify(file: BinaryIO) -> None:
    """Raise ValueError unless the file matches its checksum."""
    size = file.read(8)
    text = file.read(min(int.from_bytes(size, "little"), _LARGEST_HEADER))
    expected = str(json.loads(text)["__metadata__"]["checksum"])
    checksum = hashlib.sha256(size + text.replace(expected.encode(), _NO_CHECKSUM.encode(), 1))
    while block := file.read(_BLOCK):
        checksum.update(block)
    if checksum.hexdigest() != expected:
        raise ValueError("its checksum differs")


def discard(folder: Path) -> bool:
    """Replace the last checkpoint by the earlier one; return whether there is an earlier one."""
    last, earlier = folder / _NAME, folder / _EARLIER
    last.unlink(missing_ok=True)
    if not earlier.is_file():
        return False
    earlier.replace(last)
    return True
