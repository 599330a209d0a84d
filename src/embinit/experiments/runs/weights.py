"""`weights.safetensors` of a run's folder: the weights of the best epoch, and everything needed to use them elsewhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from embinit.errors import EmbinitError
from embinit.records import Damaged, typed
from embinit.types import Matrix

NAME = "weights.safetensors"
_VERSION = "1"


class WeightFacts(TypedDict):
    """Facts about kept weights: their model, their tokens and their run."""

    #: the fields of Architecture
    architecture: dict[str, Any]
    #: side -> its tokens in the order of the rows
    vocabularies: dict[str, list[str]]
    #: side -> its tokenizer by name, and whether text is lower-cased first
    tokenizers: dict[str, str]
    lower: bool
    #: the run
    key: str


@dataclass(frozen=True)
class KeptWeights:
    """One member's weights by their names in this package, with the facts about them."""

    tensors: Mapping[str, Matrix]
    facts: WeightFacts

    def as_bytes(self) -> bytes:
        """Return the content of the file."""
        from safetensors.numpy import save

        facts = json.dumps(self.facts, ensure_ascii=False)
        metadata = {"version": _VERSION, "facts": facts, "checksum": _checksum(self.tensors, facts)}
        return save(dict(self.tensors), metadata=metadata)


def _checksum(tensors: Mapping[str, Matrix], facts: str) -> str:
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        values = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(values.data)
    return digest.hexdigest()


def read_weights(run: Path) -> KeptWeights:
    """Return the weights in a run's folder.

    Raises
    ------
    EmbinitError
        If the folder is no run or has no weights.
    Damaged
        If the file has other content than embinit writes.
    """
    path = run / NAME
    if not path.is_file():
        if not (run / "run.json").is_file():
            raise EmbinitError(f"{run} is no folder of a finished run; give runs/KEY")
        raise EmbinitError(
            f"{run} has no weights; remove the folder and train it again with embinit run --keep-weights"
        )
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            about = file.metadata() or {}
            if about.get("version") == _VERSION:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                # Weights of earlier versions have no checksum.
                if about.get("checksum") not in (None, _checksum(tensors, about["facts"])):
                    raise ValueError("its checksum differs")
                return KeptWeights(tensors, typed(json.loads(about["facts"]), WeightFacts))
    except OSError as error:
        raise EmbinitError(f"cannot read {path}: {error.strerror or error}") from None
    except (SafetensorError, KeyError, ValueError, RecursionError) as error:  # Damaged is a ValueError
        raise Damaged(f"{path} is damaged: {error}; remove the run and train it again") from None
    raise Damaged(
        f"{path} has version {about.get('version')!r}, and this embinit reads version {_VERSION}; use the embinit that "
        "trained it"
    )
