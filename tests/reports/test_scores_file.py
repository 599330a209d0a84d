"""`report scores.csv`: scores of anybody's training get the statistics and the page of every report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scipy import stats
from typer.testing import CliRunner

from embinit.cli import app
from embinit.reports.model import Summary
from embinit.reports.scores_file import read_scores
from embinit.reports.verdicts import UseStart
from tests.refusal import refused

XAVIER, GLOVE, SCALED = (38.2, 38.9, 38.1, 38.4), (35.2, 35.9, 35.4, 35.7), (39.2, 39.6, 39.3, 39.3)


def table(path: Path, header: str = "start,seed,score") -> Path:
    starts = {"xavier": XAVIER, "glove": GLOVE, "scaled": SCALED}
    lines = [f"{start},{seed},{score}" for start, scores in starts.items() for seed, score in enumerate(scores)]
    path.write_text("\n".join([header, *lines]) + "\n", "utf-8")
    return path


def summary(path: Path, text: str | None = None, **options: object) -> Summary:
    if text is not None:
        path.write_text(text, "utf-8")
    return read_scores(path, **options).summary(str(path))  # type: ignore[arg-type]


def test_statistics_are_those_of_scipy(tmp_path: Path) -> None:
    made = summary(table(tmp_path / "scores.csv"))
    (part,) = made.parts
    xavier, glove, scaled = part.rows
    assert [row.label for row in part.rows] == ["xavier", "glove", "scaled"]
    assert xavier.baseline
    assert scaled.best
    assert scaled.statistic is not None
    assert scaled.statistic.mean == pytest.approx(39.35)
    assert scaled.difference is not None
    assert scaled.difference.t_p == pytest.approx(stats.ttest_rel(SCALED, XAVIER).pvalue)
    assert (scaled.verdict, glove.verdict) == ("better", "worse")
    (verdict,) = made.answer.verdicts
    assert isinstance(verdict, UseStart)
    assert verdict.best.start == "scaled"
    assert "missing" not in " ".join(made.caveats)


def test_a_lower_score_is_better_by_option_or_by_name(tmp_path: Path) -> None:
    made = summary(table(tmp_path / "scores.csv"), lower_is_better=True)
    assert [row.verdict for row in made.parts[0].rows] == ["", "better", "worse"]
    (verdict,) = made.answer.verdicts
    assert isinstance(verdict, UseStart)
    assert verdict.best.start == "glove"
    assert any("ower is better for score" in note for note in made.caveats)
    named = table(tmp_path / "named.csv", "start,seed,valid_loss")
    assert [row.best for row in summary(named).parts[0].rows] == [False, True, False]
    assert [row.best for row in summary(table(tmp_path / "x.csv", "start,seed,gloss")).parts[0].rows] == [
        *(False, False, True)
    ]


def test_missing_seeds_and_diverged_runs_are_shown(tmp_path: Path) -> None:
    lines = "start,seed,score\na,1,3.0\na,2,3.5\na,3,3.1\nb,1,4.0\nb,3,4.2\nc,1,9\nc,2,nan\nc,3,\n"
    made = summary(tmp_path / "scores.csv", lines)
    assert [f"scores: {start}" in " ".join(made.caveats) for start in "abc"] == [False, True, True]
    assert "scores: b has no score for seed 2." in made.caveats
    a, b, c = made.parts[0].rows
    assert [(len(row.scores), row.planned, row.diverged) for row in (a, b, c)] == [(3, 3, 0), (2, 3, 0), (1, 3, 1)]
    assert [row.best for row in (a, b, c)] == [False, True, False]  # a run of c diverged, so its mean flatters it
    assert b.difference is not None
    assert b.difference.n == 2


def test_blocks_and_columns_of_scores_are_judged_apart(tmp_path: Path) -> None:
    lines = ["block,start,seed,bleu,loss,machine"]
    for block, sign in (("de", 1), ("fr", -1)):
        for seed in range(5):
            lines.append(f"{block},random,{seed},{30 + seed / 10},{2 - seed / 100},m{seed}")
            lines.append(
                f"{block},vectors,{seed},{30 + sign * (1 + seed % 2 / 10)},{2 + sign * (0.1 + seed % 2 / 100)},x"
            )
    made = summary(tmp_path / "scores.csv", "\n".join(lines))
    assert [part.name for part in made.parts] == ["de, bleu", "fr, bleu", "de, loss", "fr, loss"]
    assert [part.rows[1].verdict for part in made.parts] == ["better", "worse", "worse", "better"]
    assert any("machine" in note for note in made.caveats)
    assert len({run for part in made.parts for row in part.rows for run in row.scores}) == 5


def test_the_baseline_is_named_or_found(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    assert summary(path, "start,seed,score\nmine,1,2\nrandom,1,3\n").baseline == "random"
    assert summary(path, "start,seed,score\nmine,1,2\nother,1,3\n").baseline == "mine"
    assert summary(path, baseline="other").baseline == "other"
    with refused("othre", "did you mean 'other'?"):
        summary(path, baseline="othre")


@pytest.mark.parametrize(
    "text", ["start;seed;score\na;1;2.5\nb;1;3\n", "\ufeffStart\tSEED\tscore\r\na\t1\t2.5\r\nb\t1\t3\r\n"]
)
def test_other_separators_are_read(text: str, tmp_path: Path) -> None:
    rows = summary(tmp_path / "scores.csv", text).parts[0].rows
    assert [row.scores for row in rows] == [{"1": 2.5}, {"1": 3.0}]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["is empty"]),
        ("stat,seed,score\na,1,2\n", ["no column 'start'", "did you mean 'stat'?"]),
        ("system,run,bleu\na,1,2\n", ["no column 'start'; it has system, run and bleu"]),
        ("start;seed;score\na;1;2,5\nb;1;3,5\n", ["line 2: score", "write 2.5"]),
        ("start,seed,score\na,1,\nb,1,3.5 %\n", ["line 3: score", "write 3.5"]),
        ("start,seed,score\n", ["no scores"]),
        ("start,seed\na,1\n", ["no column of scores"]),
        ("start,seed,score\na,1,\nb,1,\n", ["no column of scores"]),
        ("start,seed,score\na,one,2\n", ["line 2", "'one'"]),
        ("start,seed,score\na,1,1e200\nb,1,2\n", ["line 2: score", "1e200"]),
        ("start,seed,score\na,1,2\nb,1,-1e308\n", ["line 3: score", "-1e308"]),
        ("start;seed;score\na;1;1,5\nb;1;2,5\n", ["line 2: score", "write 1.5"]),
        ("start,seed,score\n" + "".join(f"s{i},{i},1\n" for i in range(400)), ["400 starts and 400 seeds"]),
        ("start,seed,score\na,1,2\nb,1,bad\n", ["line 3: score", "'bad'"]),
        ("start;seed;score\na;1;2\nb;1;2,5\n", ["line 3: score", "write 2.5"]),
        ("start,seed,score\na,1,2\nb,1\n", ["line 3", "2 cells"]),
        ("start,seed,score\n,1,2\n", ["line 2", "start is empty"]),
        ("start,seed,score\na,1,2\nb,1,2\na,1,3\n", ["lines 2 and 4", "seed 1"]),
        ("start,seed,score,score\na,1,2,3\n", ["a name of its own"]),
    ],
)
def test_a_wrong_table_is_one_sentence_that_names_the_line(text: str, parts: list[str], tmp_path: Path) -> None:
    with refused("scores.csv", *parts):
        summary(tmp_path / "scores.csv", text)


def test_the_command_writes_every_format_but_its_own_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "scores.csv")
    words = ["report", "scores.csv", "--baseline", "glove"]
    done = CliRunner().invoke(app, [*words, "--format", "html,md,tex,csv,json", "-o", "out"])
    assert done.exit_code == 0, done.output
    assert sorted(path.suffix for path in Path("out").iterdir()) == [".csv", ".html", ".json", ".md", ".tex"]
    content = json.loads(Path("out/scores.json").read_text())
    assert content["commands"] == ["embinit report scores.csv --baseline glove"]
    page = Path("out/scores.html").read_text("utf-8")
    assert "embedding layer" not in page
    before = Path("scores.csv").read_bytes()
    over = CliRunner().invoke(app, [*words, "--format", "csv", "-o", "."])
    assert "is an input" in str(over.exception)
    assert Path("scores.csv").read_bytes() == before
    kept = CliRunner().invoke(app, [*words, "--format", "results", "-o", "x.json"])
    assert "an experiment's TOML" in str(kept.exception)
    Path("x.toml").write_text("")
    wrong = CliRunner().invoke(app, ["report", "x.toml", "--lower-is-better"])
    assert "--lower-is-better needs a CSV" in str(wrong.exception)
