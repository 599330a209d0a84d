"""The notebooks of the tutorials: they run from top to bottom, and show what their text says."""

from __future__ import annotations

import ast
import csv
import importlib.util
import json
import re
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs" / "tutorials" / "notebook.ipynb"
NEW_TOKENS = NOTEBOOK.with_name("new-tokens.ipynb")


def cells(kind: str, notebook: Path = NOTEBOOK) -> list[dict[str, Any]]:
    content = json.loads(notebook.read_text("utf-8"))
    return [cell for cell in content["cells"] if cell["cell_type"] == kind]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("notebook", "least"), [(NOTEBOOK, 7), (NEW_TOKENS, 5)], ids=lambda given: getattr(given, "stem", "")
)
def test_a_notebook_has_plain_code_outputs_and_links_that_lead_somewhere(notebook: Path, least: int) -> None:
    assert len(cells("code", notebook)) >= least
    for cell in cells("code", notebook):
        ast.parse("".join(cell["source"]))  # plain Python: no magic
        assert all(output["output_type"] in ("stream", "display_data") for output in cell["outputs"])
    texts = "\n".join("".join(cell["source"]) for cell in cells("markdown", notebook))
    links = re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", texts)
    assert links
    for link in links:
        assert (notebook.parent / link).is_file(), link


def test_the_page_of_the_notebook_shows_what_the_code_showed() -> None:
    page = tool("site_pages").notebook_page(NOTEBOOK)
    blocks = re.findall(r'^<div class="embinit">.*?</div>$', page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2  # the diagnosis and the report
    assert not any("\n\n" in block for block in blocks)
    for cell in cells("code"):
        assert "".join(cell["source"]) in page
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                assert "".join(output["text"]).rstrip() in page


@pytest.mark.long
def test_the_notebook_runs_and_its_comparison_is_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    done = tool("run_notebook").run_cells(json.loads(NOTEBOOK.read_text("utf-8")))
    shown = [output for cell in done["cells"] for output in cell.get("outputs", [])]
    assert sum("text/html" in output.get("data", {}) for output in shown) == 2
    scores = defaultdict(list)
    with Path("scores.csv").open() as file:
        for row in csv.DictReader(file):
            scores[row["start"]].append(float(row["accuracy"]))
    means = {start: float(np.mean(values)) for start, values in scores.items()}
    assert {len(values) for values in scores.values()} == {3}
    assert means["random rows"] < means["raw vectors"] < means["advised rows"] < means["advised and slow"]


def printed(notebook: dict[str, Any]) -> list[str]:
    """Return what the cells of a notebook printed."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    return ["".join(output["text"]) for output in outputs if output["output_type"] == "stream"]


def test_the_notebook_on_new_tokens_runs_and_prints_what_it_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    stored = json.loads(NEW_TOKENS.read_text("utf-8"))
    done = tool("run_notebook").run_cells(stored)
    assert printed(done) == printed(stored)
    assert "bit for bit: True" in printed(done)[1]
    assert (tmp_path / "extended" / "model.safetensors").is_file()
