"""A report imports the part of the project that it needs, and nothing that trains, loads vectors or diagnoses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import embinit
from embinit.reports.results_file import write_compact
from tests.experiments.made import places
from tests.reports import made

ROOT = Path(embinit.__file__).parents[1]
#: The most modules of the project that `embinit report` may import.
LARGEST = 90
_EXPERIMENT = """
[sources.small]
path = "small.txt"
dim = 16
[[block]]
name = "known data"
task = "multi30k"
source = "small"
model.heads = 2
grid.recipe = ["xavier", "pretrained"]
grid.seed = [1, 2]
"""
_CODE = """
import contextlib, io, json, sys
from embinit.cli import main
sys.argv = ["embinit", *sys.argv[1:]]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
print(json.dumps([name for name in sys.modules if name.partition(".")[0] == "embinit"]))
"""


def imported(*words: str) -> set[str]:
    """Return the modules of the project that a command imports."""
    done = subprocess.run([sys.executable, "-c", _CODE, *words], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_a_report_on_results_imports_few_modules(tmp_path: Path) -> None:
    block = made.block()
    write_compact(made.experiment(block), made.results(block), tmp_path / "made.results.json")
    page = tmp_path / "made.html"
    modules = imported("report", str(tmp_path / "made.results.json"), "-o", str(page))
    assert page.is_file()
    assert "embinit.reports.writers.html.page" in modules
    assert len(modules) < LARGEST, sorted(modules)
    rooms = {".".join(name.split(".")[:2]) for name in modules}
    assert not rooms & {"embinit.sources", "embinit.corpora", "embinit.diagnosis", "embinit.prepared", "embinit.hosts"}
    assert "embinit.experiments.definition" not in modules


def test_a_report_on_an_experiment_file_imports_few_modules(tmp_path: Path) -> None:
    where, file = places(tmp_path), tmp_path / "made.toml"
    file.write_text(_EXPERIMENT)
    (tmp_path / "runs").mkdir()
    page = tmp_path / "made.html"
    modules = imported("report", str(file), "--runs", str(tmp_path / "runs"), "--vectors", str(where.vectors),
                       "--work", str(tmp_path / "work"), "-o", str(page))  # fmt: skip
    assert page.is_file()
    assert "embinit.experiments.definition.reader" in modules
    own = {name for name in modules if not (ROOT / name.replace(".", "/") / "__init__.py").is_file()}
    assert len(own) < LARGEST, sorted(own)
    readers = {"embinit.corpora.tasks", "embinit.sources.load", "embinit.prepared.prepare", "embinit.hosts"}
    assert not readers & modules


def test_a_writer_is_imported_only_for_its_format(tmp_path: Path) -> None:
    block = made.block()
    write_compact(made.experiment(block), made.results(block), tmp_path / "made.results.json")
    modules = imported("report", str(tmp_path / "made.results.json"), "-o", str(tmp_path / "made.csv"))
    writers = {name.removeprefix("embinit.reports.writers.") for name in modules if ".writers." in name}
    assert writers == {"csv_table", "tables"}
