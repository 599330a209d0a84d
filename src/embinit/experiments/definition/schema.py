"""The JSON Schema of experiment files: editors complete keys with it, and the reference page is written from it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from embinit.experiments.definition import file, run_settings, settings
from embinit.models.architecture import Architecture
from embinit.training.options import Training

_DRAFT = "http://json-schema.org/draft-07/schema#"
#: Tables that are built from other classes; those classes hold the explanations of the keys.
_ORIGINS: dict[str, tuple[type[Any], ...]] = {
    "ArchitectureSettings": (Architecture, run_settings.PresetSettings),
    "ArchitectureGrid": (Architecture, run_settings.PresetSettings),
    "TrainingSettings": (Training,),
    "TrainingGrid": (Training,),
    "RunGrid": (run_settings.RunSettings,),
    "SideGrid": (run_settings.SideSettings,),
}


def experiment_schema() -> dict[str, Any]:
    """Return the JSON Schema of an experiment file, draft 7, with an explanation of every key."""
    generated = file.ExperimentFile.model_json_schema(ref_template="#/definitions/{model}")
    tables = {name: _table(name, table) for name, table in generated.pop("$defs").items()}
    root = _table("ExperimentFile", generated)
    root["required"] = ["block"]
    title = "An experiment of embinit"
    return {"$schema": _DRAFT, **root, "title": title, "definitions": tables}


def key_comments(kind: type[Any]) -> dict[str, str]:
    """Return the `#:` comment above each field of a class and of its base classes, by the field's name."""
    comments: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("embinit."):
            comments.update(_comments_in(textwrap.dedent(inspect.getsource(base))))
    return comments


def _comments_in(source: str) -> dict[str, str]:
    lines, comments = source.splitlines(), {}
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    for statement in definition.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            first = statement.lineno - 1
            while lines[first - 1].strip().startswith("#:"):
                first -= 1
            text = " ".join(line.strip().removeprefix("#:").strip() for line in lines[first : statement.lineno - 1])
            if text:
                comments[statement.target.id] = text
    return comments


def _table(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a table with explanations, and without what TOML cannot say: null."""
    origins = _ORIGINS.get(name) or tuple(
        getattr(module, name) for module in (file, run_settings, settings) if hasattr(module, name)
    )
    comments = {key: comment for origin in origins for key, comment in key_comments(origin).items()}
    properties = {key: _key(value, comments.get(key, "")) for key, value in table["properties"].items()}
    required = [key for key in table.get("required", []) if key in properties and key != "name"]
    extra = {"additionalProperties": table.get("additionalProperties", False) is not False}
    described = {"description": inspect.cleandoc(origins[0].__doc__ or "").partition("\n")[0]}
    return {
        "type": "object",
        **described,
        "properties": properties,
        **({"required": required} if required else {}),
        **extra,
    }


def _key(schema: dict[str, Any], comment: str) -> dict[str, Any]:
    """Return the schema of a key with its explanation."""
    plain = _without_null(schema)
    if "$ref" in plain:  # draft 7 ignores everything beside a reference
        plain = {"allOf": [{"$ref": plain["$ref"]}]}
    return {"description": comment, **plain} if comment else plain


def _without_null(schema: Any) -> Any:
    """Return a schema without null, titles and defaults that are null, empty or tables; tuples as draft 7 writes them."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema if item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    plain = {
        key: _without_null(value) for key, value in schema.items() if key not in ("title", "default", "description")
    }
    if len(plain.get("anyOf", ())) == 1:
        plain = {**plain.pop("anyOf")[0], **plain}
    if "prefixItems" in plain:
        plain["items"] = plain.pop("prefixItems")
    default = schema.get("default")
    return {**plain, "default": default} if default not in (None, "", [], {}) and "$ref" not in plain else plain
