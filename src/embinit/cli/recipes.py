"""`embinit recipes`: what there is to choose from."""

from __future__ import annotations

from embinit.cli import options as shared

NEEDS_ARGUMENTS = False


def command(json: shared.Json = False) -> None:
    """List recipes, the steps they are made of, fills for missing rows, and models.

    Steps are put in a row with |, parameters behind their step: 'pretrained | center | scale ratio=0.4'.
    """
    from embinit.cli.console import console, print_json, table
    from embinit.hosts import host, host_names
    from embinit.recipes.fills import FILLS
    from embinit.recipes.recipe import named_recipes
    from embinit.recipes.steps import STEPS

    fills = {name: (function.__doc__ or "").partition("\n")[0] for name, function in FILLS.items()}
    if json:
        steps = {
            name: {"about": kind.about, "first": kind.first, "parameters": list(kind.parameters)}
            for name, kind in STEPS.items()
        }
        print_json(
            {
                "recipes": named_recipes(),
                "steps": steps,
                "fills": fills,
                "models": {n: host(n).about for n in host_names()},
            }
        )
        return
    screen = console()
    made = table("recipe", "what it makes", "paper", right_from=9)
    for name, values in named_recipes().items():
        made.add_row(name, values["about"], values.get("paper", ""))
    screen.print(made)
    made = table("step", "what it does", right_from=9)
    for name, kind in STEPS.items():
        if not kind.first:
            made.add_row(" ".join([name, *(f"{key}=" for key in kind.parameters)]), kind.about)
    screen.print()
    screen.print(made)
    for title, listed in (("fill", fills), ("model", {name: host(name).about for name in host_names()})):
        made = table(title, "", right_from=9)
        for name, about in listed.items():
            made.add_row(name, about)
        screen.print()
        screen.print(made)
