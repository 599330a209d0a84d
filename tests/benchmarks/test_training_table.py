"""The training benchmark: its rates, ratios and bars, and a measurement of each row."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import environments, kernels, training
from benchmarks import rows as benchmark_rows
from benchmarks.cases import LAYERS, Case, SplitStatistics, Timing, pair_flops, read_case, read_sentences, read_split
from benchmarks.lockstep import _Members, initial_members, sweep_members, training_settings
from benchmarks.row import MEASURES, measure
from benchmarks.rows import Row, add_ratios, bars, make_row
from benchmarks.table import COLUMNS, align_columns, cells
from benchmarks.training import GROUPS, MIXED, MPS, OURS, WHOLE
from embinit.corpora.generated import captions
from embinit.models.architecture import Architecture
from embinit.models.parameters import parameters
from embinit.prepared.prepare import Settings, prepare

CASE = Case("embinit", "nowhere", (7853, 5893), members=4)
TEN_STEPS = SplitStatistics(640, 14.4, 14.1)


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> str:
    settings = Settings("captions", ("whitespace", "whitespace"), True, 2, ("de", "en"))
    return str(prepare(captions(200, 0), settings, tmp_path_factory.mktemp("prepared"))[0].path)


@pytest.fixture
def tiny(prepared: str) -> Case:
    return Case("embinit", prepared, (2000, 2000), dim=16, heads=2, batch=8, steps=2, threads=1, sentences=5)


def test_training_takes_six_operations_per_weight_and_token() -> None:
    architecture = Architecture("translation", 300, CASE.vocabularies, 10)
    sizes = {p.name: int(np.prod(p.shape)) for p in parameters(architecture) if len(p.shape) == 2}
    assert len(sizes) > 10 * LAYERS
    assert pair_flops(CASE, SplitStatistics(1, 1.0, 1.0)) == 6 * sum(sizes.values())
    source_weights = sum(n for name, n in sizes.items() if name.startswith("encoder") or ".cross.kv" in name)
    assert pair_flops(CASE, SplitStatistics(1, 1.0, 0.0)) == 6 * source_weights


def test_rates_are_sums_over_members_and_epoch_time_is_divided_by_them() -> None:
    row = make_row(CASE, Timing(0.1, 500.0, 11), TEN_STEPS, {"float32": 1e12})
    assert row.sentences_per_s == pytest.approx(4 * 64 / 0.1)
    assert row.tokens_per_s == pytest.approx(2560 * 28.5)
    assert row.s_per_model_epoch == pytest.approx(10 * 0.1 / 4)
    assert row.share_of_peak == pytest.approx(2560 * pair_flops(CASE, TEN_STEPS) / 1e12)


def test_rows_are_compared_with_the_tutorial_of_the_same_size() -> None:
    tutorial = replace(CASE, what=benchmark_rows.TUTORIAL, members=1)
    rows = add_ratios(
        [
            make_row(case, Timing(seconds, 0.0, 0), TEN_STEPS, {})
            for case, seconds in [(tutorial, 0.2), (CASE, 0.1), (replace(CASE, dim=768), 0.1)]
        ]
    )
    assert [row.times_tutorial for row in rows] == [1.0, pytest.approx(8.0), None]


def test_other_rows_of_embinit_are_compared_with_bare_steps_of_equally_many_members() -> None:
    whole, mixed = replace(CASE, what=WHOLE), replace(CASE, what=MIXED, members=8)
    timed = [(CASE, 0.1), (whole, 0.12), (mixed, 0.3), (replace(CASE, members=8), 0.2)]
    rows = add_ratios([make_row(case, Timing(seconds, 0.0, 0), TEN_STEPS, {}) for case, seconds in timed])
    assert [row.times_bare for row in rows] == [None, pytest.approx(1.2), pytest.approx(1.5), None]


def test_a_sweep_varies_every_setting_of_a_member(tiny: Case) -> None:
    members, options = sweep_members(initial_members(replace(tiny, members=24)), training_settings(tiny, 1))
    for name in ("rate", "warmup", "weight_decay", "smoothing", "frozen_epochs", "embedding_rate"):
        assert len({getattr(option, name) for option in options}) > 1, name
    assert len({member.dropout for member in members}) == 3


def test_a_card_has_further_rows_and_a_time_limit(
    prepared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a card, every row of its table has a note that it was not measured."""
    monkeypatch.setattr(
        training, "run_case", lambda case: Timing(0.5, 1.0, 1) if "product" in case.what else refuse(case)
    )
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "none")
    path = tmp_path / "rows.jsonl"

    def rows(*words: str) -> list[dict[str, Any]]:
        training.main(["--prepared", prepared, "--device", "cuda", "--json", str(path), *words])
        records = map(json.loads, path.read_text().splitlines())
        return [record["row"] for record in records if "row" in record]

    cases = {(row["what"], row["members"], row["dim"], row["precision"]) for row in rows()}
    assert cases >= {(OURS, m, 300, p) for m in (1, 16, 32) for p in ("tf32", "bfloat16")}
    assert cases >= {(OURS, 16, 768, "tf32"), (OURS, 16, 768, "bfloat16"), (MIXED, 32, 300, "tf32")}
    assert cases >= {(what, 20, 300, "tf32") for what in (OURS, WHOLE, GROUPS, MPS)}
    assert {row["note"] for row in rows()} == {"not measured: RuntimeError: no card"}
    assert {row["note"] for row in rows("--within", "0")} == {"not measured: no time left"}


def refuse(case: Case) -> Timing:
    raise RuntimeError("no card")


@pytest.mark.parametrize(("seconds", "kept"), [(0.99 * 4.8, True), (1.01 * 4.8, False)])
def test_a_bar_is_met_by_the_best_row_that_it_applies_to(seconds: float, kept: bool) -> None:
    card = replace(CASE, device="cuda", precision="tf32", members=16)
    rows = [
        make_row(replace(card, members=8), Timing(0.001, 0.0, 0), TEN_STEPS, {}),  # too few members for the bar
        make_row(replace(card, precision="bfloat16"), Timing(0.001, 0.0, 0), TEN_STEPS, {}),
        make_row(card, Timing(100.0, 0.0, 0), TEN_STEPS, {}),
        make_row(card, Timing(seconds / 10, 0.0, 0), TEN_STEPS, {}),
    ]
    (bar,) = bars(rows)
    assert bar.found == pytest.approx(seconds / 16)
    assert bar.kept is kept


def test_bars_name_existing_rows_and_quantities() -> None:
    entries = tomllib.loads(Path(benchmark_rows.__file__).with_name("training.toml").read_text("utf-8"))["bar"]
    assert len(entries) == 8
    known = {field.name for field in fields(Case)} | {"least_members"}
    for bar in entries:
        assert bar["row"].keys() <= known
        assert bar["row"]["what"] in MEASURES
        assert bar["quantity"] in {field.name for field in fields(Row)}
        assert len({"at_least", "at_most"} & bar.keys()) == 1


def test_a_row_that_was_not_measured_shows_the_reason_in_an_aligned_table() -> None:
    lines = [list(COLUMNS), cells(Row(CASE, note="not measured: no such package")), cells(Row(CASE))]
    assert "no such package" in lines[1][0]
    first, second, _ = align_columns(lines).splitlines()
    assert first.index("members") + len("members") == second.index("  4 ") + 3


def test_sentences_are_the_prepared_ones(prepared: str) -> None:
    rows = read_sentences(prepared, "target")
    assert len(rows) == read_split(prepared).sentences == 200
    assert read_split(prepared).target_length == pytest.approx(np.mean([len(row) for row in rows]) + 1)


def test_a_case_survives_json(tiny: Case) -> None:
    assert read_case(tiny.to_json()) == tiny


MEASURED = [OURS, MIXED, WHOLE, GROUPS, "PyTorch's tutorial", "greedy decoding", "matrix product"]


@pytest.mark.parametrize("what", MEASURED)
def test_a_row_is_measured(tiny: Case, what: str) -> None:
    timing = measure(replace(tiny, what=what, members=2 if "embinit" in what or what == "greedy decoding" else 1))
    assert timing.seconds > 0
    assert timing.memory > 50
    if what == GROUPS:
        assert timing.note.count("epochs in") == 2
    if what == "greedy decoding":
        assert timing.note.startswith("5 sentences")


def test_capture_runs_every_batch_size_of_two_epochs(tiny: Case) -> None:
    members = _Members(tiny)
    batches = set()
    for lane in members._run.lanes:
        lane.trainer.step = lambda rows, rooms, number, epoch: batches.add((epoch, rooms))  # type: ignore[method-assign]
    members.capture()
    (lane,) = members._run.lanes
    assert batches >= {(0, rooms) for rooms in lane.rooms}
    assert {epoch for epoch, _ in batches} == {0, 1}
    assert members._run.epoch == 0


def test_embinit_and_the_tutorial_have_equally_many_parameters(tiny: Case) -> None:
    ours, tutorial = (measure(replace(tiny, what=what)) for what in ("embinit", "PyTorch's tutorial"))
    assert ours.parameters == tutorial.parameters > 0


def test_one_run_prints_the_table_and_writes_json(
    prepared: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    only = ["--only", "embinit", "tutorial", "--precisions", "float32", "--members", "2", "--threads", "1"]
    size = ["--dim", "16", "--heads", "2", "--batch", "8", "--steps", "1"]
    assert training.main(["--prepared", prepared, *only, *size, "--json", str(path), "--strict"]) == 0
    assert "PyTorch's tutorial" in capsys.readouterr().out
    first, *rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert first["machine"]["peak_tflops"]["float32"] > 0
    assert [(row["row"]["what"], row["row"]["members"]) for row in rows] == [("PyTorch's tutorial", 1), ("embinit", 2)]
    assert rows[1]["row"]["times_tutorial"] > 0


@pytest.mark.long
@pytest.mark.parametrize("what", [training.MARIAN, training.JOEYNMT])
def test_a_peer_is_measured_in_its_own_environment(tiny: Case, what: str) -> None:
    try:
        timing = training.run_case(replace(tiny, what=what))
    except environments.Missing as reason:
        pytest.skip(str(reason))
    assert timing.seconds > 0
    assert timing.memory > 50
    # These models lack the final norms and the bias of the output layer.
    ours = measure(tiny).parameters
    assert ours - timing.parameters == 4 * tiny.dim + tiny.vocabularies[1]


@pytest.mark.long
def test_kernels_add_up_to_the_printed_time_of_a_step(prepared: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [prepared, "--device", "cpu", "--precision", "float32", "--members", "2", "--dim", "16", "--heads", "2"]
    assert kernels.main([*words, "--batch", "8", "--steps", "3", "--most", "200"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert " ms a step by the clock, " in head
    times = {line[22:].strip(): (float(line[:9]), float(line[12:20])) for line in lines}
    assert times["aten::_fused_adam_"][1] == 2.0 * 2  # two members, each with its embeddings and its other weights
    assert float(head.split()[-3]) == pytest.approx(sum(time for time, _ in times.values()) / 1000, abs=0.02)
