"""The notebook of the tutorials: it runs from top to bottom, and shows what its text says."""

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


def cells(kind: str) -> list[dict[str, Any]]:
    content = json.loads(NOTEBOOK.read_text("utf-8"))
    return [cell for cell in content["cells"] if cell["cell_type"] == kind]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_has_plain_code_outputs_and_links_that_lead_somewhere() -> None:
    assert len(cells("code")) >= 7
    for cell in cells("code"):
        ast.parse("".join(cell["source"]))  # plain Python: no magic
        assert all(output["output_type"] in ("stream", "display_data") for output in cell["outputs"])
    texts = "\n".join("".join(cell["source"]) for cell in cells("markdown"))
    links = re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", texts)
    assert links
    for link in links:
        assert (NOTEBOOK.parent / link).is_file(), link


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
