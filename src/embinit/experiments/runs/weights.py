"""`weights.safetensors` of a run's folder: the weights of the best epoch, with what is needed to use them elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

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
        return save(dict(self.tensors), metadata={"version": _VERSION, "facts": facts})


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
            if about.get("version") != _VERSION:
                raise Damaged(
                    f"{path} has version {about.get('version')!r}, and this embinit reads version {_VERSION}; "
                    "use the embinit that trained it"
                )
            facts: WeightFacts = typed(json.loads(about["facts"]), WeightFacts)
            return KeptWeights({name: file.get_tensor(name) for name in file.keys()}, facts)  # noqa: SIM118
    except OSError as error:
        raise EmbinitError(f"cannot read {path}: {error.strerror or error}") from None
    except Damaged:
        raise
    except (SafetensorError, KeyError, ValueError) as error:
        raise Damaged(f"{path} is damaged: {error}; remove the run and train it again") from None
