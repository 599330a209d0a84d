"""Read specs back from run folders and plans, with every type checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_type_hints

from embinit.errors import EmbinitError
from embinit.experiments.spec import OUTPUT, VERSION, Side, Spec, Task, from_json
from embinit.models.architecture import Architecture
from embinit.records import Damaged, read_json, typed
from embinit.training.options import Training
from embinit.types import task_kind

#: The largest accepted sizes. Real experiments stay far below them.
_LARGEST = {"layers": 1_000, "dim": 1 << 16, "heads": 1 << 12, "feedforward": 1 << 20, "length": 1 << 20}
_LARGEST_TRAINING = {"epochs": 1_000_000, "batch": 1 << 20}
#: The fields that the prepared task decides.
_DECIDED = ("task", "vocabularies", "classes")
_Values = dict[str, bool | int | float | str | list[float] | None]
_SPEC = {"task": Task, "sides": dict[str, Side], "seed": int, "model": _Values, "training": _Values}


def read_spec(path: Path) -> Spec:
    """Return the spec of a run folder's `spec.json`."""
    content = read_json(path, dict[str, Any], "remove the folder and run it again", largest=1 << 20)
    try:
        return spec_of(content)
    except Damaged as error:
        raise Damaged(f"{path} is damaged: {error}; remove the folder and run it again") from None


def spec_of(content: Any) -> Spec:
    """Return the spec that `Spec.as_json` wrote; an error names the value that is missing or of another type."""
    typed(content, dict[str, Any])
    version = content.get("version", VERSION)
    if version != VERSION:
        raise Damaged(f"the spec has version {version!r}; this embinit reads version {VERSION}")
    for name, kind in _SPEC.items():
        if name not in content:
            raise Damaged(f"the spec has no {name!r}")
        try:
            typed(content[name], kind)
        except Damaged as error:
            raise Damaged(f"{name}: {error}") from None
    return from_json(content)


def check_settings(spec: Spec) -> None:
    """Raise EmbinitError if this version cannot train a spec: an unknown setting, a wrong type or an absurd size."""
    model, training = dict(spec.model), dict(spec.training)
    hints = {name: hint for name, hint in get_type_hints(Architecture).items() if name not in _DECIDED}
    _check_values("model", model, hints, _LARGEST)
    _check_values("training", training, get_type_hints(Training), _LARGEST_TRAINING)
    if "dim" not in model:
        raise EmbinitError("model.dim is missing")
    translation = "target" in dict(spec.sides)
    kind = spec.task.kind or ("translation" if translation else "classification")
    architecture = Architecture(task=task_kind(kind), vocabularies=(8, 8)[: 1 + translation], **model)
    if OUTPUT in dict(spec.sides) and (architecture.tied or kind == "classification"):
        raise EmbinitError("the job has rows for the output layer, but its model predicts classes or has a tied layer")
    Training(**training)


def _check_values(part: str, values: dict[str, Any], hints: dict[str, Any], largest: dict[str, int]) -> None:
    for name, value in values.items():
        if name not in hints:
            raise EmbinitError(
                f"the setting {part}.{name} is unknown to this version of embinit; "
                "install the version that planned the jobs"
            )
        try:
            typed(value, hints[name])
        except Damaged as error:
            raise EmbinitError(f"{part}.{name}: {error}") from None
        if name in largest and value > largest[name]:
            raise EmbinitError(f"{part}.{name} is {value:,}; at most {largest[name]:,} is accepted")
