"""Checkpoints: everything that a run needs to go on, as one safetensors file that is whole or absent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from embinit.errors import EmbinitError
from embinit.files import replacing


class Unusable(EmbinitError):
    """A checkpoint that is damaged, or of something else."""


_NAME = "checkpoint.safetensors"
_KINDS = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}


def save(folder: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write a checkpoint in place of the last one, tensor by tensor, so that no second copy of them is held."""
    for left in folder.glob(f".{_NAME}.*.part"):
        left.unlink(missing_ok=True)  # of a process that was killed while it wrote
    # Wide numbers first, so that each tensor begins at a multiple of its own width.
    tensors = dict(sorted(tensors.items(), key=lambda item: -item[1].element_size()))
    header: dict[str, Any] = {"__metadata__": {"facts": json.dumps(facts)}}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _KINDS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with replacing(folder / _NAME) as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            out.write(tensor.detach().cpu().contiguous().numpy().data)


def load(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Return the tensors and facts of a checkpoint; None where there is none."""
    from safetensors import SafetensorError, safe_open

    path = folder / _NAME
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            facts = dict(json.loads(file.metadata()["facts"]))
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
    except (SafetensorError, ValueError, KeyError, TypeError, OSError) as error:
        raise Unusable(f"{path} is damaged ({error}); remove it to begin anew") from None
