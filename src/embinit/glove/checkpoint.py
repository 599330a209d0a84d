"""Where a training was, on disk: written whole or not at all, and read only by the training that wrote it."""

from __future__ import annotations

import glob
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from embinit.errors import EmbinitError
from embinit.files import replacing
from embinit.glove.kernel import Parameters

Settings = Mapping[str, str | int | float]


@dataclass
class Position:
    """How far a training is."""

    epoch: int = 0
    #: entries of this epoch that are done, and the sum of their loss
    done: int = 0
    loss: float = 0.0
    #: mean loss of each epoch that is done
    losses: list[float] = field(default_factory=list)


def beside(out: Path) -> Path:
    """Return where the checkpoint of a training lies that will write `out`."""
    return out.with_name(f"{out.name}.checkpoint")


def save(path: Path, settings: Settings, parameters: Parameters, position: Position) -> None:
    """Write a checkpoint, in the place of the one before."""
    head = np.array(json.dumps({"settings": dict(settings), "position": asdict(position)}))
    with replacing(path) as file:
        np.savez(file, head=head, **parameters._asdict())


def load(path: Path, settings: Settings) -> tuple[Parameters, Position] | None:
    """Return what the checkpoint holds, None where there is none; one of other settings is an error."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            head = json.loads(str(stored["head"]))
            differing = _differing(head["settings"], settings)
            if not differing:
                position = Position(**head["position"])
                return Parameters(*(np.ascontiguousarray(stored[name]) for name in Parameters._fields)), position
    except OSError as error:
        raise EmbinitError(f"cannot read the checkpoint {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, EOFError, zipfile.BadZipFile, zlib.error):
        raise EmbinitError(f"the checkpoint {path} is damaged; remove it, or give --fresh to start anew") from None
    raise EmbinitError(
        f"the checkpoint {path} is of an unfinished training with {differing}; "
        "run that again to go on with it, or give --fresh to start anew"
    )


def clear(out: Path) -> None:
    """Remove the checkpoint of a training that has written `out`, and what killed writes of both have left."""
    beside(out).unlink(missing_ok=True)
    for path in (out.resolve(), beside(out)):  # a link's file is written where it lies
        for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
            part.unlink(missing_ok=True)


def _differing(stored: Settings, asked: Settings) -> str:
    """Return in words which settings are others than those asked for, empty where none is."""
    names = [name for name in {**asked, **stored} if stored.get(name) != asked.get(name)]
    differences = [f"{name} {stored.get(name)} (now {asked.get(name)})" for name in names if name != "counts"]
    if "counts" in names:
        differences.append("other counts (another text, tokenizer, window or minimum count)")
    return ", ".join(differences)
