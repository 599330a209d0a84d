"""Initialize transformers with pre-trained embeddings, so that they help.

>>> import embinit
>>> aligned = embinit.align("glove.6B.300d.txt", ["the", "cat", "sat"])       # doctest: +SKIP
>>> verdict = embinit.diagnose(aligned, host="bert").verdict                    # doctest: +SKIP
>>> print(verdict.headline)                                                     # doctest: +SKIP
>>> matrix = verdict.matrix(aligned)                                            # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from embinit.moved import keep_old_names

__version__ = "0.2.0"

if TYPE_CHECKING:
    from embinit.alignment import Matching as Matching
    from embinit.alignment import align as align
    from embinit.diagnosis.diagnose import Diagnosis as Diagnosis
    from embinit.diagnosis.diagnose import diagnose as diagnose
    from embinit.diagnosis.verdict import Verdict as Verdict
    from embinit.errors import EmbinitError as EmbinitError
    from embinit.export.formats import write as write
    from embinit.export.initialize import initialize as initialize
    from embinit.export.layers import set_embedding as set_embedding
    from embinit.export.models import apply as apply
    from embinit.export.rates import parameter_groups as parameter_groups
    from embinit.export.report import Initialization as Initialization
    from embinit.export.row_rates import row_rates as row_rates
    from embinit.extending.distillation.distill import Distillation as Distillation
    from embinit.extending.extend import extend as extend
    from embinit.extending.report import Extension as Extension
    from embinit.hosts import host as host
    from embinit.recipes.recipe import Recipe as Recipe
    from embinit.recipes.recipe import Step as Step
    from embinit.recipes.recipe import recipe as recipe
    from embinit.seeds import stream as stream
    from embinit.sources.load import load as load
    from embinit.types import Aligned as Aligned
    from embinit.types import Embeddings as Embeddings
    from embinit.types import Host as Host
    from embinit.types import Vocabulary as Vocabulary

keep_old_names()

#: public name -> its module, which is imported when the name is first used
_MODULES = {
    "Aligned": "types",
    "Diagnosis": "diagnosis.diagnose",
    "Distillation": "extending.distillation.distill",
    "EmbinitError": "errors",
    "Embeddings": "types",
    "Extension": "extending.report",
    "Host": "types",
    "Initialization": "export.report",
    "Matching": "alignment",
    "Recipe": "recipes.recipe",
    "Step": "recipes.recipe",
    "Verdict": "diagnosis.verdict",
    "Vocabulary": "types",
    "align": "alignment",
    "apply": "export.models",
    "diagnose": "diagnosis.diagnose",
    "extend": "extending.extend",
    "host": "hosts",
    "initialize": "export.initialize",
    "load": "sources.load",
    "parameter_groups": "export.rates",
    "recipe": "recipes.recipe",
    "row_rates": "export.row_rates",
    "set_embedding": "export.layers",
    "stream": "seeds",
    "write": "export.formats",
}

__all__ = [
    "Aligned",
    "Diagnosis",
    "Distillation",
    "Embeddings",
    "EmbinitError",
    "Extension",
    "Host",
    "Initialization",
    "Matching",
    "Recipe",
    "Step",
    "Verdict",
    "Vocabulary",
    "__version__",
    "align",
    "apply",
    "diagnose",
    "extend",
    "host",
    "initialize",
    "load",
    "parameter_groups",
    "recipe",
    "row_rates",
    "set_embedding",
    "stream",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'embinit' has no attribute {name!r}")
    return getattr(importlib.import_module(f"embinit.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
