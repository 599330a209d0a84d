"""Our numbers beside the paper's: each block is named once, and missing blocks are left out."""

from __future__ import annotations

from dataclasses import replace

from embinit.reports.model import Summary
from embinit.reports.summarize import summarize
from research.versus_paper import section
from tests.reports import made
from tests.research.test_setting_tables import AXES, TABLE3


def report(*names: str, missing: str = "", **fields: str) -> Summary:
    blocks = [made.block(name, sources=((f"of {name}", "stands in for GloVe"),)) for name in names]
    missing_block = made.block("Multi30k, mT5", missing=missing, paper=("1", "multi30k", "mt5"), task="iwslt2017")
    experiment = made.experiment(*blocks, *([missing_block] if missing else []), **fields)
    return summarize(experiment, made.results(*blocks))


def test_a_block_is_named_once_and_its_rows_follow() -> None:
    lines = section([report("A, GloVe", "B, GloVe")])
    table = "\n".join(lines)
    assert table.count("A, GloVe (BLEU)") == 1
    assert table.count("B, GloVe (BLEU)") == 1
    assert table.count("|  | pretrained_xavier | **") == 2
    assert "Table 1 |" not in table
    # GloVe has no shuffled row in the paper.
    assert "pretrained_shuffled" not in table


def test_missing_blocks_are_left_out_and_substitutes_are_named() -> None:
    table = "\n".join(section([report("A, GloVe", missing="needs files")]))
    assert "mT5" not in table
    assert "needs files" not in table
    assert "- of A, GloVe: stands in for GloVe" in table
    assert section([report(missing="needs files")]) == []


def test_the_same_block_in_two_files_is_shown_once() -> None:
    summaries = [report("A, GloVe"), report("A, GloVe", name="figure1")]
    assert "\n".join(section(summaries)).count("A, GloVe (BLEU)") == 1


def test_numbers_on_other_data_are_not_comparable() -> None:
    block = made.block("Captions, GloVe", task="captions", paper=("1", "multi30k", "glove"))
    table = "\n".join(section([summarize(made.experiment(block), made.results(block))]))
    assert "| 37.3 ± 0.4 | not comparable | – |" in table


def test_part_of_the_papers_data_is_other_data() -> None:
    def page(**task: int) -> str:
        block = made.block("SST-2, BERT", task="sst2", paper=("1", "sst2", "bert"))
        runs = tuple(replace(run, spec=replace(run.spec, task=replace(run.spec.task, **task))) for run in block.runs)
        part = replace(block, runs=runs)
        return "\n".join(section([summarize(made.experiment(part), made.results(part))]))

    assert "not comparable | –" not in page()
    assert "not comparable | –" in page(rows=1000)


def test_a_second_test_set_of_the_paper_follows_the_first() -> None:
    block = made.block("MNLI, BERT", task="mnli", score="accuracy", split="valid", paper=("1", "mnli", "bert"))
    results = made.results(block)
    for key, result in results.items():
        results[key] = replace(result, scores={**result.scores, "valid_mismatched": {"accuracy": 0.5, "macro_f1": 0.4}})
    lines = "\n".join(section([summarize(made.experiment(block), results)])).splitlines()
    (place,) = [number for number, line in enumerate(lines) if "MNLI, BERT, on valid_mismatched (accuracy, %)" in line]
    assert lines[place].split(" | ")[1:4] == ["xavier", "50.0 ± 0.0", "60.6 ± 0.7"]
    assert lines[place + 1].split(" | ")[1:4] == ["pretrained", "50.0 ± 0.0", "66.8 ± 0.6"]
    # The paper has no macro F1.
    assert not any("macro" in line for line in lines)


def test_the_best_epoch_is_beside_the_papers() -> None:
    lines = section([report("A, GloVe")])
    rows = [line for line in "\n".join(lines).splitlines() if line.startswith("|")]
    assert rows[0].endswith("| within noise | best epoch | paper |")
    # Seeds 0 to 4 have their best epochs at 8, 9, 10, 8 and 9.
    assert [line.split(" | ")[-2:] for line in rows[2:]] == [["8.8", f"{epoch} |"] for epoch in (11.7, 20.0, 12.3)]


def test_table_7_adds_its_row_and_does_not_repeat_table_1s() -> None:
    recipes = ("xavier", "pretrained", "xavier_pretrained")
    table1 = made.block("SST-2, BERT", recipes=recipes[:2], task="sst2", paper=("1", "sst2", "bert"))
    table7 = made.block("SST-2, BERT", recipes=recipes, task="sst2", paper=("7", "sst2", "bert"))
    results = made.results(table7)
    summaries = [
        summarize(made.experiment(table1, name="table1"), results),
        summarize(made.experiment(table7, name="table7", baseline="xavier_pretrained"), results),
    ]
    for chosen in (summaries, summaries[::-1], summaries[1:]):
        lines = "\n".join(section(chosen)).partition("## Table 7")
        assert lines[0].count("SST-2, BERT") == lines[2].count("SST-2, BERT") == 1
        assert "xavier_pretrained" not in lines[0]
        assert "| pretrained |" not in lines[2]


def test_losses_of_table_3_are_beside_the_papers() -> None:
    block, results = made.crossed(TABLE3, AXES, name="Multi30k, GloVe", paper=("3", "multi30k", "glove"))
    lines = section([summarize(made.experiment(block), results)])
    place = lines.index("Lowest validation loss and, in brackets, its epoch, both as means over seeds:")
    first = lines[place + 2].splitlines()[2]
    assert first.count(" | 1.98 (18.67) | ") == 1
    assert "Lowest validation loss" not in "\n".join(section([report("A, GloVe")]))


def test_table_3_is_crossed() -> None:
    block, results = made.crossed(TABLE3, AXES, name="Multi30k, GloVe", paper=("3", "multi30k", "glove"))
    lines = section([summarize(made.experiment(block), results), report("A, GloVe", name="table1")])
    assert lines.index("## Table 1") < lines.index("## Table 3")
    table = "\n".join(lines[lines.index("## Table 3") :])
    assert "|  | xavier, ours | paper | pretrained, ours | paper |" in table
    assert table.count("frozen · no positions") == 2  # scores, losses


def test_a_row_of_table_7_has_its_own_table() -> None:
    block = made.block("SST-2, BERT", recipes=("xavier_pretrained",), task="sst2", paper=("7", "sst2", "bert"))
    lines = section([summarize(made.experiment(replace(block)), made.results(block))])
    assert "## Table 7" in lines
    assert any("xavier_pretrained" in line and "82.0 ± 1.0" in line for line in "\n".join(lines).split("\n"))
