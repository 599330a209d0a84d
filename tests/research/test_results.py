"""RESULTS.md: answers first, experiments of the paper before others, what was not run in one list."""

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
    left = [
        made.block("Multi30k, mT5", missing="needs mt5-base", task="iwslt2017"),
        made.block("Tatoeba, MiniLM", task="captions"),
    ]
    asked = made.experiment(*blocks, *left, name="table1", title="Table 1: all")
    return summarize(asked, made.results(*blocks), file="experiments/paper/table1.toml")


def test_the_short_page_has_the_answers_and_links_the_paper_before_open_questions_and_the_rest() -> None:
    other = summarize(made.experiment(name="engine", title="Engine"), made.results(), file="experiments/engine.toml")
    page = short_document([other, swept(), table1("A")])
    assert [line for line in page.split("\n") if line.startswith("## ")] == ["## In short", "## Pages"]
    places = [page.index(f"](results/{name}.md)") for name in ("table1", "scale", "engine")]
    assert places == sorted(places)
    assert len(page.split("\n")) < 200


def test_what_was_not_run_is_one_line_each_at_the_end_of_its_experiment() -> None:
    said = experiment_page(table1("A", "B"))
    listed = said.partition("Blocks without results:\n\n")[2].split("\n")[:2]
    assert listed == [
        "- Multi30k, mT5: Not run: needs mt5-base.",
        "- Tatoeba, MiniLM: Not run yet: 20 runs.",
    ]
    assert said.count("Multi30k, mT5") == 1
    assert "(0/" not in said
    assert "No run is finished yet" not in said
    assert "runs of" not in said


def test_an_experiment_of_which_nothing_was_run_is_its_list() -> None:
    said = experiment_page(table1())
    assert "|" not in said
    assert said.partition("## How to read")[0].count("\n- ") == 2


def test_several_blocks_are_folded_under_their_answers_and_one_is_open() -> None:
    said = experiment_page(table1("A", "B"))
    assert said.count("<details>") == said.count("</details>") == 2
    assert "<summary><b>A</b>: " in said
    alone = experiment_page(table1("A"))
    assert "## A\n" in alone
    assert alone.index("| xavier |") < alone.index("Blocks without results")
    assert "<details>" not in alone  # without a picture there is nothing to fold


def test_folded_heads_are_no_markup() -> None:
    said = experiment_page(table1("<script>alert(1)</script>", "B"))
    assert "<script>" not in said
    assert "<summary><b>&lt;script&gt;" in said


def test_a_sweep_has_its_figure_first_then_a_small_table_and_the_long_one_folded() -> None:
    said = experiment_page(swept(), {1: ["figures/scale-1-sweep.svg"]})
    places = [
        said.index(word)
        for word in ("![one](figures/scale-1-sweep.svg)", "|  | 0.1 | 1 | 10 |", "<details>", "| xavier · ratio 0.1 |")
    ]
    assert places == sorted(places)


def test_a_value_without_any_run_is_said_once() -> None:
    levels = FALLING | {(x, "pretrained_shuffled"): math.nan for x in ("0.1", "1", "10")}
    block, found = made.crossed(levels, ("ratio", "recipe"), sweep="ratio")
    said = experiment_page(summarize(made.experiment(block, title="S"), found))
    assert said.count("shuffled") == 1
    assert "- Not run yet: pretrained_shuffled (12 runs)." in said


def test_settings_are_a_small_table_and_the_long_one_is_folded() -> None:
    block, found = made.crossed(TABLE3, AXES, paper=("3", "multi30k", "glove"))
    said = experiment_page(summarize(made.experiment(block, title="T3"), found))
    assert said.index("|  | xavier | pretrained |") < said.index("<summary>Intervals and tests</summary>")


def test_the_findings_say_on_which_kind_of_task_they_are_supported() -> None:
    two = made.block("SST-2, GloVe", task="sst2", seeds=range(8))
    one = made.block("Multi30k, GloVe", seeds=range(8))
    found = made.results(one) | made.results(two, levels={**made.LEVELS, "pretrained": 40.0})
    text = findings_page([summarize(made.experiment(one, two), found)])
    assert (
        "Supported in 1 of 2 cases (against in 1). Translation: supported in 1 of 1 case (against in 0); "
        "Classification: supported in 0 of 1 case (against in 1)."
    ) in text
    assert "| supported, as in the paper |" in text


def test_blocks_that_were_measured_are_one_table() -> None:
    blocks = [made.block(name, paper=("6", "multi30k", "glove")) for name in ("one", "two")]
    rows = distributions()["blocks"][0]["rows"]
    found = {"name": "x", "kind": "distribution", "blocks": [{"name": name, "rows": rows} for name in ("one", "two")]}
    summary = summarize_measured(made.experiment(*blocks, kind="distribution", title="Table 6"), found)
    said = experiment_page(summary)
    assert said.count("| block | matrix |") == 1
    assert said.count("| one |") == said.count("| two |") == 1
    assert "0 runs" not in said


def test_pictures_of_blocks_that_are_gone_are_removed(tmp_path: Path) -> None:
    block, other = made.block(seeds=range(3)), made.block("other", seeds=range(20, 23))
    found = made.results(block, other)
    write_compact(made.experiment(block, other), found, tmp_path / "made.results.json")
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
