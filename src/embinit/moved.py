"""Old module names that the documentation showed before version 0.2 stay importable."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

#: old name -> new name
MOVED = {
    "embinit.experiments.store": "embinit.experiments.runs.store",
    "embinit.experiments.toml": "embinit.experiments.inputs.outline",
    "embinit.export.writing": "embinit.export.formats",
    "embinit.reports.page": "embinit.reports.writers.html",
    "embinit.reports.summary": "embinit.reports.summarize",
    "embinit.reports.types": "embinit.reports.model",
    "embinit.sources.loading": "embinit.sources.load",
    "embinit.text.glove": "embinit.glove",
}


class _Finder(MetaPathFinder, Loader):
    """Imports the new module when its old name is asked for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(MOVED[spec.name])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the spec of the module, which ran when it was imported under its new name."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def keep_old_names() -> None:
    """Make `import OLD` return the module that holds its contents now."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
