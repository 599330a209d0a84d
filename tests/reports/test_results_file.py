"""Small files of results: what goes in comes out, into the same report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from embinit.errors import EmbinitError
from embinit.experiments.runs.collect import take
from embinit.experiments.runs.result import read_result
from embinit.reports.analysis.samples import SplitTexts
from embinit.reports.results_file import write_compact
from embinit.reports.results_reader import read_compact
from embinit.reports.summarize import summarize
from embinit.reports.writers.html import page
from embinit.reports.writers.markdown import markdown
from research.results import findings_page, main, read_results
from tests.reports import made
from tests.reports.test_writers import HOSTILE


def texts(spec: object, split: str) -> SplitTexts:
    return SplitTexts([f"quelle {i}" for i in range(6)], made.SENTENCES)


def test_the_report_of_a_small_file_is_the_report_of_the_runs(tmp_path: Path) -> None:
    block, other = made.block(), made.block("SST-2", task="sst2")
    found = made.results(block, other)
    lost = block.runs[7].spec
    found[lost.key] = made.result(lost, 0.0, diverged=True)
    del found[block.runs[8].spec.key]
    asked = made.experiment(block, other, notes=("a note",), cost="2 minutes")
    whole = summarize(asked, found, texts=texts, file="experiments/x.toml")
    write_compact(asked, found, tmp_path / "x.json", "experiments/x.toml")
    again = read_compact(tmp_path / "x.json").summary()
    for one, two in zip(whole.parts, again.parts, strict=True):
        assert one.rows == two.rows
        assert one.answer == two.answer
        assert one.notes == two.notes
        assert not two.examples
        assert one.settings == two.settings
        assert one.signatures == two.signatures
        for name, curves in one.curves.items():
            for curve, rounded in zip(curves, two.curves[name], strict=True):
                assert curve.label == rounded.label
                assert rounded.mean == pytest.approx(curve.mean, rel=2e-3)
        assert [(s.series, s.side, s.counts) for s in one.shapes] == [(s.series, s.side, s.counts) for s in two.shapes]
    assert whole.cost == again.cost
    assert (whole.answer, whole.caveats, whole.commands) == (again.answer, again.caveats, again.commands)
    assert page(again)


def test_a_file_is_small_has_a_line_a_run_and_no_sentence(tmp_path: Path) -> None:
    block = made.block(seeds=range(10))
    found = {key: replace(one, outputs={"test": one.outputs["test"] * 200}) for key, one in made.results(block).items()}
    write_compact(made.experiment(block), found, tmp_path / "x.json")
    content = (tmp_path / "x.json").read_text("utf-8")
    assert len(content) < 60_000
    # Four rows of ten seeds: nine of each are like its first.
    assert (content.count('\n{"axes"'), content.count('\n{"like"')) == (4, 36)
    assert "a girl in karate uniform" not in content
    assert json.loads(content)["embinit results"] == 1


def test_runs_of_small_files_are_taken_in_and_give_the_same_files(tmp_path: Path) -> None:
    block, found = made.block(seeds=range(3)), made.results(made.block(seeds=range(3)))
    swept = replace(block, name="swept", sweep="recipe")
    for name, one in (("plain", block), ("swept", swept)):
        write_compact(made.experiment(one, name=name), found, tmp_path / f"{name}.json", "x.toml")
    kept = [one for name in ("swept", "plain") for one in read_compact(tmp_path / f"{name}.json").results.values()]
    runs = tmp_path / "runs"
    taken = take(kept, runs)
    assert (len(taken.taken), taken.already) == (len(block.runs), 0)
    assert take(kept, runs).already == len(block.runs)
    again = {key: read_result(runs / key) for key in found}
    for name, one in (("plain", block), ("swept", swept)):
        write_compact(made.experiment(one, name=name), again, tmp_path / f"{name}.again.json", "x.toml")
        assert (tmp_path / f"{name}.again.json").read_bytes() == (tmp_path / f"{name}.json").read_bytes()


def test_what_was_run_whole_is_not_replaced_by_what_a_small_file_tells(tmp_path: Path) -> None:
    block = made.block(seeds=range(1))
    found = made.results(block)
    first = next(iter(found.values()))
    first.write(tmp_path / "runs")
    (tmp_path / "runs" / f"{list(found)[1]}.failed.json").write_text("{}", "utf-8")
    write_compact(made.experiment(block), found, tmp_path / "x.json")
    taken = take(read_compact(tmp_path / "x.json").results.values(), tmp_path / "runs")
    assert (len(taken.taken), taken.already) == (len(found) - 1, 1)
    assert read_result(tmp_path / "runs" / first.key).outputs == first.outputs
    assert not list((tmp_path / "runs").glob("*.failed.json"))


def test_results_without_a_run_are_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(EmbinitError, match="these results have no finished runs"):
        take([], tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_file_whose_runs_all_tell_their_axes_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_compact(made.experiment(made.block()), made.results(), path)
    content, known = json.loads(path.read_text("utf-8")), read_compact(path)
    for block in content["blocks"]:
        for line, planned in zip(block["runs"], known.experiment.blocks[0].runs, strict=True):
            line.pop("like", None)
            line |= {"axes": dict(planned.axes), "spec": {"": planned.spec.as_json()}}
    path.write_text(json.dumps(content), "utf-8")
    assert read_compact(path) == known


def test_a_sweep_leaves_its_histograms_behind_and_keeps_its_ratios(tmp_path: Path) -> None:
    cells = {(x, "xavier"): 37.0 for x in ("0.1", "1")}
    swept, found = made.crossed(cells, ("ratio", "recipe"), sweep="ratio")
    for name, block in (("swept", swept), ("plain", replace(swept, sweep=""))):
        write_compact(made.experiment(block), found, tmp_path / f"{name}.json")
    swept_again, plain_again = (
        read_compact(tmp_path / f"{name}.json").summary().parts[0] for name in ("swept", "plain")
    )
    assert all(shape.counts for shape in plain_again.shapes)
    assert not any(shape.counts for shape in swept_again.shapes)
    assert {shape.ratio for shape in swept_again.shapes} == {shape.ratio for shape in plain_again.shapes} != {None}


def test_hostile_text_survives_a_small_file(tmp_path: Path) -> None:
    block = replace(made.block(HOSTILE), sources=((HOSTILE, HOSTILE),))
    asked = made.experiment(block, title=HOSTILE)
    write_compact(asked, made.results(block), tmp_path / "x.json")
    again = read_compact(tmp_path / "x.json")
    assert again.experiment.title == HOSTILE
    assert again.experiment.blocks[0].sources == ((HOSTILE, HOSTILE),)
    assert again.experiment.blocks == asked.blocks


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "holds no results"),
        ('{"embinit results": 99}', "another version"),
        ('{"embinit results": 1, "blocks": [{}]}', "is damaged"),
    ],
)
def test_a_file_that_is_none_is_said_in_a_sentence(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(EmbinitError, match=said):
        read_compact(tmp_path / "x.json")
    with pytest.raises(EmbinitError, match="no such file"):
        read_compact(tmp_path / "absent.json")


# ---------------------------------------------------------------- RESULTS.md


def written(folder: Path, seeds: int = 10) -> None:
    block = made.block(seeds=range(seeds))
    missing = made.block(
        "IWSLT2017, mT5", task="iwslt2017", paper=("1", "iwslt2017", "mT5"), missing="needs the official files"
    )
    asked = made.experiment(block, missing, name="table1", title="Table 1")
    write_compact(asked, made.results(block), folder / "table1.json", "experiments/paper/table1.toml")


def test_results_are_one_short_page_and_its_pages_from_the_files_alone(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    written(folder)
    main([str(folder), str(tmp_path / "RESULTS.md")])
    short = (tmp_path / "RESULTS.md").read_text("utf-8")
    assert "about 162 GPU-hours" in short
    assert "(results/table1.md)" in short
    beside_paper = (folder / "versus_paper.md").read_text("utf-8")
    assert "|  | pretrained_xavier | **38.8 ± 0.4** | 38.7 ± 0.3 | +0.1 | yes |" in beside_paper
    assert beside_paper.count("Multi30k, GloVe (BLEU)") == 1
    text = (folder / "table1.md").read_text("utf-8")
    assert "needs the official files" in text
    assert "![Multi30k, GloVe](figures/table1-1-curves.svg)" in text
    assert "`embinit run experiments/paper/table1.toml`" in text
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix in (".md", ".svg")]
    assert not [path for path in files if str(tmp_path) in path.read_text("utf-8")]
    before = {path: path.read_bytes() for path in files}
    main([str(folder), str(tmp_path / "AGAIN.md")])
    assert (tmp_path / "AGAIN.md").read_text("utf-8") == short
    assert {path: path.read_bytes() for path in before} == before


def test_results_say_what_becomes_of_each_finding(tmp_path: Path) -> None:
    written(tmp_path)
    text = findings_page(read_results(tmp_path))
    assert "Finding 1" in text
    assert "Supported in 1 of 1 case (against in 0)." in text
    assert "Not tested." in text
    with pytest.raises(EmbinitError, match="holds no results"):
        read_results(tmp_path / "nothing")


def test_markdown_of_a_small_file_is_that_of_the_runs(tmp_path: Path) -> None:
    block = made.block()
    asked, found = made.experiment(block), made.results(block)
    write_compact(asked, found, tmp_path / "x.json")
    assert markdown(read_compact(tmp_path / "x.json").summary()) == markdown(summarize(asked, found, shown={}))


def test_a_file_names_no_folder_of_the_machine(tmp_path: Path) -> None:
    block = replace(made.block(), missing="needs x.txt", searched=f"searched {tmp_path / 'x.txt'}")
    write_compact(made.experiment(block), {}, tmp_path / "x.json")
    assert "needs x.txt" in (tmp_path / "x.json").read_text("utf-8")
    assert str(tmp_path) not in (tmp_path / "x.json").read_text("utf-8")
