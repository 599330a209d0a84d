"""A report imports the part of the project that it needs, and nothing that trains, loads vectors or diagnoses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from embinit.reports.results_file import write_compact
from tests.reports import made

#: The most modules of the project that `embinit report` may import for a file of results.
LARGEST = 90
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


def test_a_writer_is_imported_only_for_its_format(tmp_path: Path) -> None:
    block = made.block()
    write_compact(made.experiment(block), made.results(block), tmp_path / "made.results.json")
    modules = imported("report", str(tmp_path / "made.results.json"), "-o", str(tmp_path / "made.csv"))
    writers = {name.removeprefix("embinit.reports.writers.") for name in modules if ".writers." in name}
    assert writers == {"csv_table", "tables"}
