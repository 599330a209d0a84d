"""The checkpoint of a training of vectors. It is written completely or not at all, and fits only its own training.

A damaged checkpoint is left out, and the training begins again.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from embinit.errors import EmbinitError
from embinit.files import replacing
from embinit.glove.kernel import Parameters
from embinit.records import Damaged, read_arrays

Settings = Mapping[str, str | int | float]


@dataclass
class Position:
    """The progress of a training."""

    epoch: int = 0
    #: the number of finished entries of this epoch, and the sum of their losses
    done: int = 0
    loss: float = 0.0
    #: mean loss of each finished epoch
    losses: list[float] = field(default_factory=list)


class _GloveHead(TypedDict):
    settings: dict[str, Any]
    position: Position


def beside(out: Path) -> Path:
    """Return the path of the checkpoint of the training that will write `out`."""
    return out.with_name(f"{out.name}.checkpoint")


def save(path: Path, settings: Settings, parameters: Parameters, position: Position) -> None:
    """Write a checkpoint; it replaces the one before."""
    head = np.array(json.dumps({"settings": dict(settings), "position": asdict(position)}))
    with replacing(path) as file:
        np.savez(file, head=head, **parameters._asdict())


def load(path: Path, settings: Settings) -> tuple[Parameters, Position] | None:
    """Return the content of the checkpoint; None if there is none.

    Raises
    ------
    Damaged
        If the checkpoint is damaged.
    EmbinitError
        If it is of other settings, or if the file is no checkpoint.
    """
    if not path.exists():
        return None
    head: _GloveHead
    with read_arrays(path, _GloveHead, "give --fresh to replace it") as (head, stored):
        differing = _differing(head["settings"], settings)
        if not differing:
            arrays = [np.ascontiguousarray(stored[name]) for name in Parameters._fields]
            if any(array.dtype != np.float32 for array in arrays):
                raise Damaged("its arrays are not float32")
            position: Any = head["position"]  # an object with the fields of Position
            return Parameters(*arrays), Position(**position)
    raise EmbinitError(
        f"the checkpoint {path} belongs to an unfinished training with {differing}; "
        "run that command again to continue, or give --fresh to start again"
    )


def clear(out: Path) -> None:
    """Remove the checkpoint of the training that has written `out`, and unfinished files of killed writes."""
    beside(out).unlink(missing_ok=True)
    for path in (out.resolve(), beside(out)):  # the target of a link is written in its own folder
        for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
            part.unlink(missing_ok=True)


def _differing(stored: Settings, asked: Settings) -> str:
    """Return the settings that differ from those of the checkpoint, as text; empty if none does."""
    names = [name for name in {**asked, **stored} if stored.get(name) != asked.get(name)]
    differences = [f"{name} {stored.get(name)} (now {asked.get(name)})" for name in names if name != "counts"]
    if "counts" in names:
        differences.append("other counts (another text, tokenizer, window or minimum count)")
    return ", ".join(differences)
