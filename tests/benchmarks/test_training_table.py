"""The training benchmark: what its numbers mean, which bars they are held against, and that its rows can be measured."""

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
from benchmarks.cases import LAYERS, Case, Data, Timed, data, products, read_case, sentences
from benchmarks.lockstep import _Members, settings, started, swept
from benchmarks.row import MEASURES, measured
from benchmarks.rows import Row, bars, compared, row
from benchmarks.table import COLUMNS, cells, plain
from benchmarks.training import GROUPS, MIXED, MPS, OURS, WHOLE
from embinit.corpora.generated import captions
from embinit.models.architecture import Architecture
from embinit.models.parameters import parameters
from embinit.prepared.prepare import Settings, prepare

CASE = Case("embinit", "nowhere", (7853, 5893), members=4)
TEN_STEPS = Data(640, 14.4, 14.1)


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


def test_operations_are_six_for_each_weight_of_a_product_and_each_token() -> None:
    architecture = Architecture("translation", 300, CASE.vocabularies, 10)
    sizes = {p.name: int(np.prod(p.shape)) for p in parameters(architecture) if len(p.shape) == 2}
    assert len(sizes) > 10 * LAYERS
    assert products(CASE, Data(1, 1.0, 1.0)) == 6 * sum(sizes.values())
    of_source = sum(n for name, n in sizes.items() if name.startswith("encoder") or ".cross.kv" in name)
    assert products(CASE, Data(1, 1.0, 0.0)) == 6 * of_source


def test_rates_are_sums_over_members_and_an_epoch_is_shared_by_them() -> None:
    made = row(CASE, Timed(0.1, 500.0, 11), TEN_STEPS, {"float32": 1e12})
    assert made.sentences_per_s == pytest.approx(4 * 64 / 0.1)
    assert made.tokens_per_s == pytest.approx(2560 * 28.5)
    assert made.s_per_model_epoch == pytest.approx(10 * 0.1 / 4)
    assert made.share_of_peak == pytest.approx(2560 * products(CASE, TEN_STEPS) / 1e12)


def test_rows_are_compared_with_the_tutorial_of_their_own_size() -> None:
    tutorial = replace(CASE, what=benchmark_rows.TUTORIAL, members=1)
    found = compared(
        [
            row(case, Timed(seconds, 0.0, 0), TEN_STEPS, {})
            for case, seconds in [(tutorial, 0.2), (CASE, 0.1), (replace(CASE, dim=768), 0.1)]
        ]
    )
    assert [one.times_tutorial for one in found] == [1.0, pytest.approx(8.0), None]


def test_other_rows_of_ours_are_compared_with_bare_steps_of_as_many_members() -> None:
    whole, mixed = replace(CASE, what=WHOLE), replace(CASE, what=MIXED, members=8)
    timed = [(CASE, 0.1), (whole, 0.12), (mixed, 0.3), (replace(CASE, members=8), 0.2)]
    found = compared([row(case, Timed(seconds, 0.0, 0), TEN_STEPS, {}) for case, seconds in timed])
    assert [one.times_bare for one in found] == [None, pytest.approx(1.2), pytest.approx(1.5), None]


def test_a_sweep_has_every_setting_that_a_member_may_own(tiny: Case) -> None:
    members, options = swept(started(replace(tiny, members=24)), settings(tiny, 1))
    for name in ("rate", "warmup", "weight_decay", "smoothing", "frozen_epochs", "embedding_rate"):
        assert len({getattr(one, name) for one in options}) > 1, name
    assert len({one.dropout for one in members}) == 3


def test_a_card_is_measured_by_rows_of_its_own_and_in_time(
    prepared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole table of a card, with a device that is not there: every row says that it could not be measured."""
    monkeypatch.setattr(training, "taken", lambda case: Timed(0.5, 1.0, 1) if "product" in case.what else refuse(case))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "none")
    path = tmp_path / "rows.jsonl"

    def rows(*words: str) -> list[dict[str, Any]]:
        training.main(["--prepared", prepared, "--device", "cuda", "--json", str(path), *words])
        return [one["row"] for one in map(json.loads, path.read_text().splitlines()) if "row" in one]

    found = {(one["what"], one["members"], one["dim"], one["precision"]) for one in rows()}
    assert found >= {(OURS, m, 300, p) for m in (1, 16, 32) for p in ("tf32", "bfloat16")}
    assert found >= {(OURS, 16, 768, "tf32"), (OURS, 16, 768, "bfloat16"), (MIXED, 32, 300, "tf32")}
    assert found >= {(what, 20, 300, "tf32") for what in (OURS, WHOLE, GROUPS, MPS)}
    assert {one["note"] for one in rows()} == {"not measured: RuntimeError: no card"}
    assert {one["note"] for one in rows("--within", "0")} == {"not measured: no time left"}


def refuse(case: Case) -> Timed:
    raise RuntimeError("no card")


@pytest.mark.parametrize(("seconds", "kept"), [(0.99 * 4.8, True), (1.01 * 4.8, False)])
def test_a_bar_is_kept_by_the_best_row_that_fits_it(seconds: float, kept: bool) -> None:
    card = replace(CASE, device="cuda", precision="tf32", members=16)
    listed = [
        row(replace(card, members=8), Timed(0.001, 0.0, 0), TEN_STEPS, {}),  # too few members to count
        row(replace(card, precision="bfloat16"), Timed(0.001, 0.0, 0), TEN_STEPS, {}),
        row(card, Timed(100.0, 0.0, 0), TEN_STEPS, {}),
        row(card, Timed(seconds / 10, 0.0, 0), TEN_STEPS, {}),
    ]
    (bar,) = bars(listed)
    assert bar.found == pytest.approx(seconds / 16)
    assert bar.kept is kept


def test_bars_speak_of_rows_and_quantities_that_there_are() -> None:
    listed = tomllib.loads(Path(benchmark_rows.__file__).with_name("training.toml").read_text("utf-8"))["bar"]
    assert len(listed) == 8
    known = {one.name for one in fields(Case)} | {"least_members"}
    for bar in listed:
        assert bar["row"].keys() <= known
        assert bar["row"]["what"] in MEASURES
        assert bar["quantity"] in {one.name for one in fields(Row)}
        assert len({"at_least", "at_most"} & bar.keys()) == 1


def test_a_row_that_was_not_measured_says_why_and_the_table_stands() -> None:
    lines = [list(COLUMNS), cells(Row(CASE, note="not measured: no such package")), cells(Row(CASE))]
    assert "no such package" in lines[1][0]
    first, second, _ = plain(lines).splitlines()
    assert first.index("members") + len("members") == second.index("  4 ") + 3


def test_sentences_are_those_that_were_prepared(prepared: str) -> None:
    rows = sentences(prepared, "target")
    assert len(rows) == data(prepared).sentences == 200
    assert data(prepared).target == pytest.approx(np.mean([len(one) for one in rows]) + 1)


def test_a_case_survives_its_way_to_another_process(tiny: Case) -> None:
    assert read_case(tiny.written()) == tiny


MEASURED = [OURS, MIXED, WHOLE, GROUPS, "PyTorch's tutorial", "greedy decoding", "matrix product"]


@pytest.mark.parametrize("what", MEASURED)
def test_a_row_is_measured(tiny: Case, what: str) -> None:
    found = measured(replace(tiny, what=what, members=2 if "embinit" in what or what == "greedy decoding" else 1))
    assert found.seconds > 0
    assert found.memory > 50
    if what == GROUPS:
        assert found.note.count("epochs in") == 2
    if what == "greedy decoding":
        assert found.note.startswith("5 sentences")


def test_members_meet_every_size_of_batch_before_the_clock_runs(tiny: Case) -> None:
    members = _Members(tiny)
    met = set()
    for lane in members._run.lanes:
        lane.trainer.step = lambda rows, rooms, number, epoch: met.add((epoch, rooms))  # type: ignore[method-assign]
    members.capture()
    (lane,) = members._run.lanes
    assert met >= {(0, rooms) for rooms in lane.rooms}
    assert {epoch for epoch, _ in met} == {0, 1}
    assert members._run.epoch == 0


def test_ours_and_the_tutorials_model_are_of_one_size(tiny: Case) -> None:
    ours, tutorial = (measured(replace(tiny, what=what)) for what in ("embinit", "PyTorch's tutorial"))
    assert ours.parameters == tutorial.parameters > 0


def test_one_run_prints_the_table_and_writes_json(
    prepared: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    only = ["--only", "embinit", "tutorial", "--precisions", "float32", "--members", "2", "--threads", "1"]
    size = ["--dim", "16", "--heads", "2", "--batch", "8", "--steps", "1"]
    assert training.main(["--prepared", prepared, *only, *size, "--json", str(path), "--strict"]) == 0
    assert "PyTorch's tutorial" in capsys.readouterr().out
    first, *rest = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert first["machine"]["peak_tflops"]["float32"] > 0
    assert [(one["row"]["what"], one["row"]["members"]) for one in rest] == [("PyTorch's tutorial", 1), ("embinit", 2)]
    assert rest[1]["row"]["times_tutorial"] > 0


@pytest.mark.long
@pytest.mark.parametrize("what", [training.MARIAN, training.JOEYNMT])
def test_a_peers_row_is_measured_in_an_environment_of_its_own(tiny: Case, what: str) -> None:
    try:
        found = training.taken(replace(tiny, what=what))
    except environments.Missing as reason:
        pytest.skip(str(reason))
    assert found.seconds > 0
    assert found.memory > 50
    # The final norms and the bias of the output layer are what these models do without.
    ours = measured(tiny).parameters
    assert ours - found.parameters == 4 * tiny.dim + tiny.vocabularies[1]


@pytest.mark.long
def test_a_steps_time_is_listed_by_what_took_it(prepared: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [prepared, "--device", "cpu", "--precision", "float32", "--members", "2", "--dim", "16", "--heads", "2"]
    assert kernels.main([*words, "--batch", "8", "--steps", "3", "--most", "200"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert " ms a step by the clock, " in head
    times = {line[22:].strip(): (float(line[:9]), float(line[12:20])) for line in lines}
    assert times["aten::_fused_adam_"][1] == 2.0 * 2  # two members, each with its embeddings and its other weights
    assert float(head.split()[-3]) == pytest.approx(sum(time for time, _ in times.values()) / 1000, abs=0.02)
