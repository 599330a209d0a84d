"""Markdown, CSV and LaTeX: the table is right, and no text in it does anything but show."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from embinit.format import fixed, signed
from embinit.reports.model import Summary
from embinit.reports.summarize import summarize
from embinit.reports.writers import csv_table, latex, markdown, tables
from tests.reports import made

HOSTILE = "<script>alert(1)</script> | *b* _i_ [x](y) `c` $m$ \\def\\x{} & % # ~ ^ \"q\" 'q' {z} \n| --- |"


def summary() -> Summary:
    block, other = made.block(seeds=range(10)), made.block("SST-2", task="sst2")
    found = made.results(block, other)
    for planned in other.runs:
        if planned.axes[0][1] == "pretrained" and planned.spec.seed > 1:
            del found[planned.spec.key]
    missing = made.block("IWSLT", task="iwslt2017", missing="needs the official files", seeds=range(1))
    return summarize(made.experiment(block, other, missing), found)


def hostile() -> Summary:
    """Return a report whose every text is hostile."""
    block = replace(
        made.block(HOSTILE),
        sources=((HOSTILE, HOSTILE),),
        runs=tuple(replace(planned, axes=(("recipe", planned.axes[0][1] + HOSTILE),)) for planned in made.block().runs),
    )
    found = {
        key: replace(
            one,
            outputs={"test": [f"{HOSTILE} {i} {one.spec.sides[0][1].recipe}" for i in range(6)]},
            signatures={"bleu": HOSTILE},
            run={**one.run, "device": HOSTILE, "versions": {HOSTILE: HOSTILE}, "commit": HOSTILE},
            history=[{**record, HOSTILE: 1.0} for record in one.history],
            matrices={HOSTILE: {**one.matrices["source"], "kinds": {HOSTILE: 3}}},
        )
        for key, one in made.results(made.block()).items()
    }
    asked = made.experiment(
        block,
        title=HOSTILE,
        question=HOSTILE,
        notes=(HOSTILE,),
        baseline="xavier" + HOSTILE,
        name="hostile",
        cost=HOSTILE,
    )
    return summarize(asked, found, file=HOSTILE)


def lines_of(text: str, label: str) -> list[list[str]]:
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in rows if label in line]


def test_markdown_has_the_answer_the_table_and_the_paper() -> None:
    text = markdown.markdown(summary())
    assert text.startswith("# Which start is best?\n\nDo pre-trained")
    assert "**pretrained_xavier is better than xavier in both comparisons" in text
    (line,) = [cells for cells in lines_of(text, "pretrained_xavier") if len(cells) == 9][:1]
    assert line[0] == "pretrained_xavier"
    assert line[1] == "**38.8 ± 0.4**"
    assert line[3] == "+1.4 [+1.2, +1.6]\\*\\*\\*"
    assert line[5:8] == ["38.7 ± 0.3", "+0.1", "yes"]
    assert float(line[8].partition(" ± ")[0]) < 3
    assert "*Not run: needs the official files*" in text
    assert "embinit run made.toml" in text


def test_missing_seeds_and_cells_show_in_every_table() -> None:
    report = summary()
    text = markdown.markdown(report)
    assert any(cells[1] == "79.1 ± 0.0 (2/5)" for cells in lines_of(text, "pretrained") if len(cells) == 9)
    assert "(2/5)" in latex.latex(report)
    rows = list(csv.DictReader(io.StringIO(csv_table.spreadsheet(report))))
    (short,) = [row for row in rows if row["block"] == "SST-2" and row["row"] == "pretrained"]
    assert (short["seeds"], short["planned"]) == ("2", "5")
    nothing = [row for row in rows if row["block"] == "IWSLT"]
    assert len(nothing) == 4
    assert {(row["mean"], row["missing"]) for row in nothing} == {("", "needs the official files")}
    whole = tables.overview(report)
    assert whole is not None
    assert [str(cell) for cell in whole.rows[-1][1:]] == ["not run"] * 4


def test_every_test_is_there_with_the_floor_of_the_exact_one() -> None:
    first, second, third = (tables.tests(part) for part in summary().parts)
    assert first is not None
    assert second is not None
    assert third is None
    assert [str(cell) for cell in first.rows[1]] == [
        "pretrained_xavier", "xavier", "10", "< 0.001", "< 0.001", "0.002", "0.002", "100.0 %",
    ]  # fmt: skip
    assert [str(cell) for cell in second.rows[0]][2::4] == ["2", "0.5"]
    assert "| pretrained_xavier | xavier | 10 |" in markdown.markdown(summary())


def test_an_empty_cell_is_a_dash() -> None:
    block = made.block()
    found = {
        key: one for key, one in made.results(block).items() if one.spec.sides[0][1].recipe != "pretrained_shuffled"
    }
    table = tables.block_table(summarize(made.experiment(block), found).parts[0])
    assert [str(cell) for cell in table.rows[-1]] == ["pretrained_shuffled", "– (0/5)", *["–"] * 7]


def test_csv_has_every_number_in_full_and_reads_back() -> None:
    report = summary()
    rows = list(csv.DictReader(io.StringIO(csv_table.spreadsheet(report))))
    assert len(rows) == 12
    first = report.parts[0].rows[2]
    (line,) = [row for row in rows if row["block"] == report.parts[0].name and row["row"] == "pretrained_xavier"]
    assert float(line["mean"]) == first.statistic.mean  # type: ignore[union-attr]
    assert float(line["difference"]) == first.difference.mean  # type: ignore[union-attr]
    assert line["within_noise"] == "yes"
    assert line["best"] == "yes"
    assert line["verdict"] == "better"


@given(st.text(max_size=40))
@example("=HYPERLINK(1)")
@example("@x")
@example(" +1")
def test_any_label_survives_csv_and_is_no_formula(label: str) -> None:
    block = replace(made.block(seeds=range(1)), name=label)
    text = csv_table.spreadsheet(summarize(made.experiment(block, name="x"), {}))
    (line, *_) = list(csv.DictReader(io.StringIO(text, newline="")))
    assert line["block"].removeprefix("'") == " ".join(label.replace("\0", "").split()).removeprefix("'")
    assert line["block"][:1] not in ("=", "+", "-", "@")


@given(st.text(max_size=60))
def test_any_text_in_markdown_is_one_line_without_tags_bars_or_links(said: str) -> None:
    shown = markdown.text(said)
    assert "\n" not in shown
    assert "<" not in shown
    assert not re.search(r"(?<!\\)(?:\\\\)*(?:[|`*]|\][(\[:])", shown)
    assert not re.match(r"#|[-+] |\d+[.)] |[-=]+$", shown)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("pretrained_xavier", "pretrained_xavier"),
        ("_a_", r"\_a\_"),
        ("a|b", r"a\|b"),
        ("1. x", r"1\. x"),
        ("# x", r"\# x"),
        ("- x", r"\- x"),
        ("see https://a.b", "see https:/&#47;a.b"),
        ("a\nb", "a b"),
        ("<b>", "&lt;b&gt;"),
        ("37.3 [37.2, 37.5]", "37.3 [37.2, 37.5]"),
        ("[a](y)", r"[a\](y)"),
        ("---", r"\---"),
        ("+1.4", "+1.4"),
    ],
)
def test_markdown_shows_text_as_it_is(said: str, shown: str) -> None:
    assert markdown.text(said) == shown


def test_a_hostile_report_has_tables_of_even_width_in_markdown() -> None:
    text = markdown.markdown(hostile())
    assert not any("<script" in line for line in text.splitlines() if not line.startswith("    "))
    widths: dict[int, set[int]] = {}
    block = 0
    for line in text.splitlines():
        if line.startswith("|"):
            widths.setdefault(block, set()).add(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)))
        else:
            block += 1
    assert widths
    assert all(len(found) == 1 for found in widths.values())


@given(st.text(max_size=60))
def test_any_text_in_latex_has_no_bare_special(said: str) -> None:
    shown = latex.text(said)
    bare = re.sub(
        r"\\text[a-z]+\{\}|\\[{}$&#_%]|\$\\(?:pm|times|cdot|sigma|sqrt\{\})\$|\$-\$|\$\^\{\*\}\$|\{[-\[\]]\}", "", shown
    )
    assert not re.search(r"[\\{}$&#_%^~<>|\"`*]", bare)


def test_latex_is_booktabs_with_the_best_in_bold() -> None:
    text = latex.latex(summary())
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == text.count(r"\begin{tabular}") == 3
    assert r"\textbf{38.8 $\pm$ 0.4}" in text
    assert r"pretrained\_xavier" in text
    for row in re.findall(r"\\midrule\n(.*?)\\bottomrule", text, flags=re.S):
        counts = {line.count(" & ") for line in row.strip().splitlines()}
        assert len(counts) == 1


def test_a_hostile_report_in_latex_has_no_command_of_its_own() -> None:
    text = latex.latex(hostile())
    assert r"\def" not in re.sub(r"(?m)^%.*$", "", text)
    assert all(not line.startswith("%") or "\n" not in line for line in text.splitlines())


@pytest.mark.long
def test_latex_is_set_without_an_error(tmp_path: Path) -> None:
    engine = shutil.which("pdflatex")
    if engine is None:
        pytest.skip("there is no pdflatex here")
    body = latex.latex(hostile()) + latex.latex(summary())
    packages = r"\usepackage[T1]{fontenc}\usepackage{booktabs}"
    source = f"\\documentclass{{article}}{packages}\\begin{{document}}\n{body}\n\\end{{document}}\n"
    (tmp_path / "report.tex").write_text(source, "utf-8")
    words_of = [engine, "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
    done = subprocess.run(words_of, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "report.pdf").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("value", "plain", "with_sign"),
    [(1.44, "1.4", "+1.4"), (-0.34, "−0.3", "−0.3"), (-0.04, "0.0", "0.0"), (0.0, "0.0", "0.0"), (None, "–", "–")],
)
def test_numbers_have_a_real_minus_and_zero_has_no_sign(value: float | None, plain: str, with_sign: str) -> None:
    assert fixed(value, 1) == plain
    assert signed(value, 1) == with_sign
