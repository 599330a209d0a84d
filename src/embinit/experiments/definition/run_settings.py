"""The settings of a run, declared with their types: of its task, its matrices, its model and its training.

The model's and the training's are made from the fields of Architecture and Training. The comment above a field is its
explanation in the reference and in editors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, create_model
from pydantic.json_schema import WithJsonSchema

from embinit.corpora.data_sets import data_sets as known_tasks
from embinit.errors import closest
from embinit.experiments.definition.settings import GENERATED
from embinit.models.architecture import Architecture
from embinit.models.presets import presets
from embinit.recipes.fills import FILLS
from embinit.recipes.names import named_recipes
from embinit.training.options import Training

#: Fields of Architecture that the prepared task decides and a file cannot set.
_DECIDED = ("task", "vocabularies", "classes")
#: Settings whose default depends on others.
_WITHOUT_DEFAULT = ("dim", "heads", "rate")


def _known_fill(name: str) -> str:
    if name and name not in FILLS:
        raise ValueError(f"unknown fill {name!r}{closest(name, FILLS)}")
    return name


#: The schema lists names that editors complete.
Fill = Annotated[str, AfterValidator(_known_fill), WithJsonSchema({"type": "string", "enum": list(FILLS)})]
RecipeName = Annotated[str, WithJsonSchema({"anyOf": [{"enum": list(named_recipes())}, {"type": "string"}]})]
PresetName = Annotated[str, WithJsonSchema({"type": "string", "enum": list(presets())})]
TaskName = Annotated[str, WithJsonSchema({"anyOf": [{"enum": [*known_tasks(), *GENERATED]}, {"type": "string"}]})]


class SettingsTable(BaseModel):
    """Base of every table that is not a source or a task."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def _settings_of(kind: type[Any], omitted: Iterable[str] = (), base: type[SettingsTable] = SettingsTable) -> Any:
    """Return a table with the fields, types and defaults of a dataclass; each of its keys may be left out."""
    hints = get_type_hints(kind)
    declared: dict[str, Any] = {}
    for item in fields(kind):
        if item.name not in omitted:
            hint = hints[item.name]
            default = None if item.default is MISSING or item.name in _WITHOUT_DEFAULT else item.default
            declared[item.name] = (Annotated[hint, Strict(False)] if get_origin(hint) is tuple else hint, default)
    return create_model(f"{kind.__name__}Settings", __base__=base, **declared)


class PresetSettings(SettingsTable):
    """The key `preset` of `model`, which is no field of Architecture."""

    #: a named model whose values this table starts from
    preset: PresetName = ""


ModelSettings = _settings_of(Architecture, _DECIDED, PresetSettings)
TrainingSettings = _settings_of(Training)


class SideSettings(SettingsTable):
    """`encoder`, `decoder`, `text` or `output`: one matrix of rows."""

    #: a table of `[sources]`
    source: str = ""
    #: a recipe's name, steps (`pretrained | center`), a table of `[recipes]`, or `FILE.toml::NAME`
    recipe: RecipeName = "xavier"
    #: rows of the tokens that the source lacks
    fill: Fill = "target"


class RunSettings(SideSettings):
    """The settings of a run: `[defaults]`, and a part of every `[[block]]`."""

    #: a table of `[tasks]`, or a known data set
    task: TaskName = ""
    #: seed of everything random in a run
    seed: Annotated[int, Field(ge=0)] = 1
    #: the encoder's matrix, if it differs from the decoder's
    encoder: SideSettings = SideSettings()
    #: the decoder's matrix, if it differs from the encoder's
    decoder: SideSettings = SideSettings()
    #: the matrix of a task with one text
    text: SideSettings = SideSettings()
    #: the matrix of an untied output layer; without these settings it is drawn like the other weights
    output: SideSettings = SideSettings()
    #: the transformer
    model: ModelSettings = ModelSettings()  # type: ignore[valid-type]
    #: the training
    training: TrainingSettings = TrainingSettings()  # type: ignore[valid-type]


def inner_table(hint: Any) -> type[SettingsTable] | None:
    """Return the type of a field if it is a table of settings, else None."""
    return hint if isinstance(hint, type) and issubclass(hint, SettingsTable) else None


def setting_names() -> list[str]:
    """Return the dotted names of all settings of a run."""
    names = []
    for name, info in RunSettings.model_fields.items():
        inner = inner_table(info.annotation)
        names += [name] if inner is None else [f"{name}.{key}" for key in inner.model_fields]
    return names
