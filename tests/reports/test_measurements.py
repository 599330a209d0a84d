"""Reports of what is measured without training: matrices beside Tables 2, 6 and 8, analogies beside Table 4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embinit.reports.analysis.measurements import summarize_measured
from embinit.reports.results_file import write_measured
from embinit.reports.results_reader import read_compact
from embinit.reports.verdicts import AnalogiesKept, MatrixAgreement, NothingYet, NotRun
from embinit.reports.writers.csv_table import spreadsheet
from embinit.reports.writers.html import page
from embinit.reports.writers.latex import latex
from embinit.reports.writers.markdown import markdown
from tests.reports import made


def fact(std: float) -> dict[str, Any]:
    return {
        "rows": 7853, "dim": 300, "min": -3.9, "max": 4.8, "mean": 0.05, "std": std,
        "scaled": {"std": std * 300**0.5}, "coverage": {"types": 0.9, "tokens": None},
        "histogram": {"counts": [1], "edges": [0, 1]},
    }  # fmt: skip


def distributions() -> dict[str, Any]:
    rows = [
        {"axes": {"recipe": "xavier"}, "seed": 1, "sides": {"source": fact(0.0157), "target": fact(0.018)}},
        {"axes": {"recipe": "pretrained"}, "seed": 1, "sides": {"source": fact(0.5), "target": fact(0.378)}},
        {"axes": {}, "positions": {**fact(0.695), "scaled": None, "coverage": None}},
    ]
    return {"name": "table6", "kind": "distribution", "blocks": [{"name": "Table 6", "rows": rows}]}


def analogies() -> dict[str, Any]:
    rows = [
        {"axes": {}, "name": "vectors", "right": [1424], "asked": 1631, "paper": 87.3, "accuracy": 1424 / 1631},
        {"axes": {}, "name": "vectors, scaled + positions", "right": [1420, 1430], "asked": 1631, "paper": 87.3,
         "accuracy": 1425 / 1631},
    ]  # fmt: skip
    return {"name": "table4", "kind": "analogy", "blocks": [{"name": "Table 4", "rows": rows}]}


def test_matrices_lie_beside_the_papers_and_agreement_is_counted() -> None:
    block = made.block("Table 6", paper=("6", "multi30k", "glove"))
    summary = summarize_measured(made.experiment(block, kind="distribution"), distributions())
    # 0.0157 is 0.016 as printed; 0.5 is not 0.37; 0.695 is not 0.67; the decoder's are not in the paper.
    assert summary.answer.verdicts == (MatrixAgreement(1, 3, 5),)
    table = summary.parts[0].measured
    assert table is not None
    assert [str(cell) for cell in table.rows[2]] == [
        "pretrained, source", "7,853 × 300", "−3.9", "4.8", "0.05", "0.5", "8.66", "90.0 %", "−3.93, 4.82", "0.37",
    ]  # fmt: skip


def test_analogies_lie_beside_table_4() -> None:
    summary = summarize_measured(made.experiment(made.block("Table 4"), kind="analogy"), analogies())
    table = summary.parts[0].measured
    assert table is not None
    assert [str(cell) for cell in table.rows[1]] == [
        "vectors, scaled + positions", "1425.0", "1,631", "87.4 ± 0.4", "87.3", "+0.1",
    ]  # fmt: skip
    assert summary.answer.verdicts == (AnalogiesKept((("vectors, scaled + positions", 1425 / 1631),)),)


def test_every_writer_takes_measures_and_a_small_file_keeps_them(tmp_path: Path) -> None:
    asked = made.experiment(made.block("Table 6", paper=("6", "multi30k", "glove")), kind="distribution")
    summary = summarize_measured(asked, distributions(), "x.toml")
    for written in (markdown(summary), latex(summary), spreadsheet(summary), page(summary)):
        assert "0.378" in written
    write_measured(asked, distributions(), tmp_path / "x.json", "x.toml")
    again = read_compact(tmp_path / "x.json").summary()
    assert again.parts[0].measured == summary.parts[0].measured
    assert (again.answer, again.commands) == (summary.answer, summary.commands)
    assert "histogram" not in (tmp_path / "x.json").read_text("utf-8")


def test_nothing_measured_is_said() -> None:
    summary = summarize_measured(made.experiment(made.block(), kind="analogy"), None)
    assert summary.answer.verdicts == (NothingYet("measurements"),)
    missing = summarize_measured(made.experiment(made.block(missing="needs questions-words.txt"), kind="analogy"), None)
    assert missing.answer.verdicts == (NotRun("needs questions-words.txt"),)
    assert "needs questions-words.txt" in page(missing)


def test_several_blocks_are_counted_together() -> None:
    blocks = [made.block(name, paper=("6", "multi30k", "glove")) for name in ("one", "two")]
    rows = distributions()["blocks"][0]["rows"]
    found = {"name": "x", "kind": "distribution", "blocks": [{"name": name, "rows": rows} for name in ("one", "two")]}
    summary = summarize_measured(made.experiment(*blocks, kind="distribution"), found)
    assert summary.answer.verdicts == (MatrixAgreement(2, 6, 10),)
