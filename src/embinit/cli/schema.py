"""`embinit schema`: print the JSON Schema of experiment files."""

from __future__ import annotations

NEEDS_ARGUMENTS = False


def command() -> None:
    """Print the JSON Schema of experiment files, with which editors complete and explain their keys.

    \b
    embinit schema > experiment.schema.json

    Then begin the experiment file with `#:schema ./experiment.schema.json`: Even Better TOML (VS Code) and taplo read this
    line.
    """
    from embinit.cli.console import print_json
    from embinit.experiments.definition.schema import experiment_schema

    print_json(experiment_schema())
