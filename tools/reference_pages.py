"""Generate the reference pages from the code: `python tools/reference_pages.py build/pages/reference`."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from embinit.cli import app
from embinit.experiments.definition.schema import experiment_schema
from embinit.hosts import host, host_names
from embinit.recipes.fills import FILLS
from embinit.recipes.names import named_recipes
from embinit.recipes.steps import STEPS

_COMMAND_LINE = """# Command line

This page is generated from `embinit COMMAND --help`. A wrong input ends with one message and exit code 2.
"""
_RECIPES = """# Recipes, steps, fills and models

This page is generated from what `embinit recipes` lists. [Make the matrix](../how-to/recipes.md) shows how to use it.
"""
_EXPERIMENT_FILE = """# Experiment file

This page is generated from the declarations that experiment files are checked against. `embinit run` reports all mistakes of
a file at once. [Run experiments](../how-to/experiments.md) shows complete files.

Keys with a dot may be written in one line (`model.heads = 4`) or as a table (`[block.model]`, then `heads = 4`).

## Complete keys in an editor

`embinit schema > experiment.schema.json` writes the JSON Schema. Begin the experiment file with the line below. Then Even
Better TOML (VS Code) and taplo complete its keys, explain them and underline mistakes:

```toml
#:schema ./experiment.schema.json
```

The schema checks one key at a time. `embinit run FILE --dry-run` also checks names, recipes and sizes.
"""
#: Tables of the page: heading, introduction, name of the schema definition, prefix of the keys.
_TABLES = (
    ("Top of the file", "", "", ""),
    ("Settings of a run", "In `[defaults]`, or in a `[[block]]`, which comes first.", "RunSettings", ""),
    ("Sides", "Likewise `decoder.*`, and `text.*` for a task with one text. A side's setting comes before the plain one.",
     "SideSettings", "encoder."),
    ("model", "The transformer.", "ArchitectureSettings", "model."),
    ("training", "", "TrainingSettings", "training."),
    ("Blocks", "A `[[block]]` also takes every setting of a run.", "BlockSettings", ""),
    ("Sources", "`[sources.NAME]`, with either `path` or `glove`.", "SourceSettings", ""),
    ("GloVe", "`glove = {...}` of a source.", "GloveSettings", "glove."),
    ("Tasks", "`[tasks.NAME]`. A known data set needs no table.", "TaskSettings", ""),
    ("Recipes", "`[recipes.NAME]`.", "RecipeSettings", ""),
)  # fmt: skip
_GRID = """## Grid

`grid.KEY = [...]` in a block lists values of any setting of a run: `grid.recipe`, `grid.seed`, `grid.model.norm`. Each
combination is trained. A key that is not a setting fills a placeholder in a recipe: `grid.ratio` fills `{ratio}`.

## Baseline

`baseline` is a recipe, a list of recipes, or tables that pin a setting: `{recipe = "xavier", model.norm = "post"}`.
"""
_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "object": "table",
}


def commands() -> dict[str, Any]:
    """Return the commands of embinit by name, in the order of `embinit --help`."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def cell(text: str) -> str:
    """Return the text of a table cell with escaped bars; bars in code need no escape."""
    return re.sub(r"`[^`]*`|\|", lambda part: "\\|" if part[0] == "|" else part[0], text.replace("\n", " "))


def table(rows: list[tuple[str, ...]], *header: str) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(map(cell, row)) + " |"
    yield ""


def option_names(option: Any) -> str:
    """Return the names and the value of an option: `--out`, `-o` FILE."""
    names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=len, reverse=True))
    return names if option.is_flag else f"{names} {value_name(option)}"


def value_name(option: Any) -> str:
    """Return the placeholder of an option's value; by default, it follows from the type."""
    kind = str(option.type_descriptor.annotation)
    return option.metavar or ("N" if "int" in kind else "X" if "float" in kind else "TEXT")


def default_of(option: Any) -> str:
    """Return the default of an option; empty if there is none to show."""
    default = option.show_default
    if isinstance(default, str):
        return default
    if option.is_flag or default is False or option.default is None or callable(option.default):
        return ""
    return f"`{option.default}`"


def prose(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; a paragraph with a single command becomes a code block."""
    for paragraph in inspect.cleandoc(text).replace("\b\n", "").split("\n\n"):
        is_command = re.match(r"embinit [a-z]+ ", paragraph) is not None and "\n" not in paragraph.strip()
        yield f"```bash\n{paragraph}\n```\n" if is_command else f"{paragraph}\n"


def section(name: str, command: Any) -> Iterator[str]:
    """Yield the section of one command."""
    arguments = [item for item in command.params if item.param_type_name == "argument"]
    options = [item for item in command.params if item.param_type_name == "option" and item.name != "help"]
    yield f"## {name}\n"
    yield from prose(command.help or "")
    if arguments:
        yield from table(
            [(f"`{item.metavar or item.name.upper()}`", item.help or "") for item in arguments], "argument", "meaning"
        )
    if options:
        rows = [(option_names(item), item.help or "", default_of(item)) for item in options if not item.hidden]
        has_defaults = any(default for *_, default in rows)
        yield from table(
            rows if has_defaults else [row[:2] for row in rows], "option", "meaning", *["default"][:has_defaults]
        )


def command_line_page() -> str:
    """Return the page of the command line."""
    all_commands = commands()
    summaries = [(name, (command.help or "").partition("\n")[0]) for name, command in all_commands.items()]
    links = [(f"[`embinit {name}`](#{name})", summary) for name, summary in summaries]
    parts = [_COMMAND_LINE, *table(links, "command", "what it does")]
    for name, command in all_commands.items():
        parts += section(name, command)
    return "\n".join(parts)


def recipes_page() -> str:
    """Return the page of recipes, steps, fills and models."""
    named = [(f"`{name}`", f"`{facts['steps']}`", facts["about"]) for name, facts in named_recipes().items()]
    first = [(usage(name, kind.parameters), kind.about) for name, kind in STEPS.items() if kind.first]
    later = [(usage(name, kind.parameters), kind.about) for name, kind in STEPS.items() if not kind.first]
    fills = [(f"`{name}`", (function.__doc__ or "").partition("\n")[0].rstrip(".")) for name, function in FILLS.items()]
    models = [(f"`{name}`", host(name).about) for name in host_names()]
    parts = [_RECIPES, "## Recipes\n", *table(named, "recipe", "steps", "matrix")]
    parts += ["## First steps\n", "A recipe begins with one of these steps.\n", *table(first, "step", "rows")]
    parts += [
        "## Further steps\n",
        *table(later, "step", "effect"),
        "## Fills\n",
        *table(fills, "fill", "missing rows"),
    ]
    return "\n".join([*parts, "## Models\n", *table(models, "`--model`", "description")])


def experiment_page() -> str:
    """Return the page of the experiment file: each key with its type, default and explanation."""
    schema = experiment_schema()
    run_settings = schema["definitions"]["RunSettings"]["properties"]
    parts = [_EXPERIMENT_FILE]
    for heading, sentence, name, prefix in _TABLES:
        properties = schema["definitions"][name]["properties"] if name else schema["properties"]
        hidden = run_settings if name == "BlockSettings" else ()
        rows = [
            (f"`{prefix}{key}`", type_of(value), default_in(value), value["description"])
            for key, value in properties.items()
            if key not in hidden
        ]
        parts += [f"## {heading}\n", *([f"{sentence}\n"] if sentence else [])]
        parts += table(rows, "key", "type", "default", "meaning")
    return "\n".join([*parts, _GRID])


def type_of(schema: dict[str, Any]) -> str:
    """Return the type of a key in words, or its choices."""
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    if "anyOf" in schema:
        options = [type_of(option) for option in schema["anyOf"] if "enum" not in option]
        return " or ".join(dict.fromkeys(options))
    if schema.get("type") == "array":
        items = schema["items"]
        return f"list of {len(items)} numbers" if isinstance(items, list) else f"list, each a {type_of(items)}"
    return _TYPES[schema.get("type", "object")]


def default_in(schema: dict[str, Any]) -> str:
    """Return the default of a key as a TOML value; empty without a default."""
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""


def usage(name: str, parameters: Iterable[str]) -> str:
    """Return the name of a step with its parameters: `scale to= std= ratio=`."""
    return "`" + " ".join([name, *(f"{parameter}=" for parameter in parameters)]) + "`"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cli.md").write_text(command_line_page(), "utf-8")
    (folder / "recipes.md").write_text(recipes_page(), "utf-8")
    (folder / "experiment-file.md").write_text(experiment_page(), "utf-8")
    (folder / "experiment.schema.json").write_text(json.dumps(experiment_schema(), indent=2) + "\n", "utf-8")
