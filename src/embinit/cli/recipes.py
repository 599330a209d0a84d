"""`embinit recipes`: list recipes, steps, fills and models."""

from __future__ import annotations

from embinit.cli import options as shared

NEEDS_ARGUMENTS = False


def command(json: shared.Json = False) -> None:
    """List recipes, their steps, the fills for missing rows, and the models that are known by name.

    Join steps with |, and write parameters after their step: 'pretrained | center | scale ratio=0.4'.
    """
    from embinit.cli.console import console, print_json, table
    from embinit.hosts import host, host_names
    from embinit.recipes.fills import FILLS
    from embinit.recipes.names import named_recipes
    from embinit.recipes.steps import STEPS

    fills = {name: (function.__doc__ or "").partition("\n")[0] for name, function in FILLS.items()}
    models = {name: host(name).about for name in host_names()}
    if json:
        steps = {
            name: {"about": kind.about, "first": kind.first, "parameters": list(kind.parameters)}
            for name, kind in STEPS.items()
        }
        print_json({"recipes": named_recipes(), "steps": steps, "fills": fills, "models": models})
        return
    tables: dict[tuple[str, ...], list[tuple[str, ...]]] = {
        ("recipe", "matrix", "paper"): [
            (name, values["about"], values.get("paper", "")) for name, values in named_recipes().items()
        ],
        ("step", "effect"): [
            (" ".join([name, *(f"{key}=" for key in kind.parameters)]), kind.about)
            for name, kind in STEPS.items()
            if not kind.first
        ],
        ("fill", "missing rows"): list(fills.items()),
        ("model", "description"): list(models.items()),
    }
    screen = console()
    for place, (header, rows) in enumerate(tables.items()):
        listing = table(*header, right_from=len(header))
        for row in rows:
            listing.add_row(*row)
        if place:
            screen.print()
        screen.print(listing)
