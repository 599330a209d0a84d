"""RESULTS.md and its pages: answers first, the paper's experiments before others, missing blocks in one list."""

from __future__ import annotations

import math
from pathlib import Path

from embinit.reports.analysis.measurements import summarize_measured
from embinit.reports.model import Summary
from embinit.reports.results_file import write_compact, write_measured
from embinit.reports.summarize import summarize
from research.results import experiment_page, findings_page, main, short_document
from tests.reports import made
from tests.reports.test_measurements import distributions
from tests.research.test_overview import FALLING, swept
from tests.research.test_setting_tables import AXES, TABLE3


def table1(*names: str) -> Summary:
    blocks = [made.block(name) for name in names]
    missing = [
        made.block("Multi30k, mT5", missing="needs mt5-base", task="iwslt2017"),
        made.block("Tatoeba, MiniLM", task="captions"),
    ]
    experiment = made.experiment(*blocks, *missing, name="table1", title="Table 1: all")
    return summarize(experiment, made.results(*blocks), file="experiments/paper/table1.toml")


def test_the_short_page_has_answers_and_links_to_the_paper_then_open_questions_then_others() -> None:
    other = summarize(made.experiment(name="engine", title="Engine"), made.results(), file="experiments/engine.toml")
    page = short_document([other, swept(), table1("A")])
    assert [line for line in page.split("\n") if line.startswith("## ")] == ["## In short", "## Pages"]
    places = [page.index(f"](results/{name}.md)") for name in ("table1", "scale", "engine")]
    assert places == sorted(places)
    assert len(page.split("\n")) < 200


def test_missing_blocks_have_a_line_each_at_the_end_of_the_page() -> None:
    text = experiment_page(table1("A", "B"))
    listed = text.partition("Blocks without results:\n\n")[2].split("\n")[:2]
    assert listed == [
        "- Multi30k, mT5: Not run: needs mt5-base.",
        "- Tatoeba, MiniLM: Not run yet: 20 runs.",
    ]
    assert text.count("Multi30k, mT5") == 1
    assert "(0/" not in text
    assert "No run is finished yet" not in text
    assert "runs of" not in text


def test_an_experiment_without_runs_lists_its_blocks() -> None:
    text = experiment_page(table1())
    assert "|" not in text
    assert text.partition("## How to read")[0].count("\n- ") == 2


def test_several_blocks_are_folded_under_their_answers_but_a_single_one_is_not() -> None:
    text = experiment_page(table1("A", "B"))
    assert text.count("<details>") == text.count("</details>") == 2
    assert "<summary><b>A</b>: " in text
    alone = experiment_page(table1("A"))
    assert "## A\n" in alone
    assert alone.index("| xavier |") < alone.index("Blocks without results")
    assert "<details>" not in alone  # without a picture there is nothing to fold


def test_headings_of_folded_blocks_are_escaped() -> None:
    text = experiment_page(table1("<script>alert(1)</script>", "B"))
    assert "<script>" not in text
    assert "<summary><b>&lt;script&gt;" in text


def test_a_sweep_shows_its_figure_then_a_small_table_then_the_folded_long_one() -> None:
    text = experiment_page(swept(), {1: ["figures/scale-1-sweep.svg"]})
    places = [
        text.index(word)
        for word in ("![one](figures/scale-1-sweep.svg)", "|  | 0.1 | 1 | 10 |", "<details>", "| xavier · ratio 0.1 |")
    ]
    assert places == sorted(places)


def test_a_value_without_runs_is_mentioned_once() -> None:
    levels = FALLING | {(x, "pretrained_shuffled"): math.nan for x in ("0.1", "1", "10")}
    block, results = made.crossed(levels, ("ratio", "recipe"), sweep="ratio")
    text = experiment_page(summarize(made.experiment(block, title="S"), results))
    assert text.count("shuffled") == 1
    assert "- Not run yet: pretrained_shuffled (12 runs)." in text


def test_settings_have_a_small_table_and_a_folded_long_one() -> None:
    block, results = made.crossed(TABLE3, AXES, paper=("3", "multi30k", "glove"))
    text = experiment_page(summarize(made.experiment(block, title="T3"), results))
    assert text.index("|  | xavier | pretrained |") < text.index("<summary>Intervals and tests</summary>")


def test_findings_are_counted_by_kind_of_task() -> None:
    sst2 = made.block("SST-2, GloVe", task="sst2", seeds=range(8))
    multi30k = made.block("Multi30k, GloVe", seeds=range(8))
    results = made.results(multi30k) | made.results(sst2, levels={**made.LEVELS, "pretrained": 40.0})
    text = findings_page([summarize(made.experiment(multi30k, sst2), results)])
    assert (
        "Supported in 1 of 2 cases (against in 1). Translation: supported in 1 of 1 case (against in 0); "
        "Classification: supported in 0 of 1 case (against in 1)."
    ) in text
    assert "| supported, as in the paper |" in text


def test_measured_blocks_share_one_table() -> None:
    blocks = [made.block(name, paper=("6", "multi30k", "glove")) for name in ("one", "two")]
    rows = distributions()["blocks"][0]["rows"]
    measured = {
        "name": "x",
        "kind": "distribution",
        "blocks": [{"name": name, "rows": rows} for name in ("one", "two")],
    }
    summary = summarize_measured(made.experiment(*blocks, kind="distribution", title="Table 6"), measured)
    text = experiment_page(summary)
    assert text.count("| block | matrix |") == 1
    assert text.count("| one |") == text.count("| two |") == 1
    assert "0 runs" not in text


def test_pictures_of_removed_blocks_are_deleted(tmp_path: Path) -> None:
    block, other = made.block(seeds=range(3)), made.block("other", seeds=range(20, 23))
    write_compact(made.experiment(block, other), made.results(block, other), tmp_path / "made.results.json")
    measured = made.experiment(made.block("Table 6", paper=("6", "multi30k", "glove")), name="t6", kind="distribution")
    write_measured(measured, distributions(), tmp_path / "t6.results.json")
    main([str(tmp_path), str(tmp_path / "R.md")])
    pictures = tmp_path / "figures"
    assert sorted(path.name for path in pictures.iterdir()) == ["made-1-curves.svg", "made-2-curves.svg"]
    (pictures / "mine.svg").write_text("x")
    write_compact(made.experiment(block), made.results(block), tmp_path / "made.results.json")
    main([str(tmp_path), str(tmp_path / "R.md"), "--no-figures"])
    assert (pictures / "made-2-curves.svg").exists()
    main([str(tmp_path), str(tmp_path / "R.md")])
    assert sorted(path.name for path in pictures.iterdir()) == ["made-1-curves.svg", "mine.svg"]
    assert "(figures/made-1-curves.svg)" in (tmp_path / "made.md").read_text("utf-8")
