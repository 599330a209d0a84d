"""The recipe of a matrix: the given one, or the one that the diagnosis advises."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embinit.diagnosis.diagnose import diagnose
from embinit.diagnosis.verdict import Verdict
from embinit.recipes.recipe import ADVISED, Recipe
from embinit.recipes.recipe import recipe as recipe_of
from embinit.types import Aligned, Host


@dataclass(frozen=True)
class RecipeChoice:
    """The recipe of a matrix, and the verdict that advises it."""

    recipe: Recipe
    #: None if the recipe was given
    verdict: Verdict | None = None

    def as_dict(self) -> dict[str, Any] | None:
        """Return the advice as plain data; None if the recipe was given."""
        if self.verdict is None:
            return None
        content = self.verdict.as_dict()
        return {name: content[name] for name in ("advice", "headline", "recipe", "rate", "at_full_rate")}


def choose_recipe(
    aligned: Aligned,
    recipe: Recipe | str | Path = ADVISED,
    *,
    host: Host,
    fill: str | None = None,
    task: str | None = None,
    seed: int = 0,
) -> RecipeChoice:
    """Return the recipe for aligned vectors.

    Parameters
    ----------
    aligned
        The rows of a source in vocabulary order.
    recipe
        A recipe, or `advised`: the recipe that `embinit inspect` advises for this host and task.
    host
        The model that the matrix is made for.
    fill
        The fill of missing rows; by default that of the recipe.
    task
        `translation` (the default) or `classification`.
    seed
        The seed of the samples that are measured.

    Returns
    -------
    RecipeChoice
        The recipe, with the verdict if it is advised.

    Raises
    ------
    EmbinitError
        If there is no such recipe, or the vectors or the task cannot be judged.
    """
    if recipe != ADVISED:
        return RecipeChoice(recipe_of(recipe, fill))
    verdict = diagnose(aligned, host=host, recipe=recipe_of("pretrained", fill), task=task, seed=seed).verdict
    return RecipeChoice(recipe_of(verdict.recipe, verdict.fill), verdict)
