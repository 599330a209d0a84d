"""The benchmark of language models: equal models in all programs, bars by either quantity, measured rows."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import text
from benchmarks.cases import Case, Timing, read_text, text_step_flops
from benchmarks.peers_compiled import GPT
from benchmarks.row import MEASURES, measure
from benchmarks.text import COMPILED, OURS, TextRow, add_ratios, bars, make_row
from embinit.corpora.generated import caption_text
from embinit.prepared.folder import open_prepared
from embinit.prepared.prepare import Settings, prepare
from embinit.training.blocks import sequence

CASE = Case(OURS, "nowhere", (1000,), members=2, dim=16, heads=2, batch=4, layers=3, length=32)


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> str:
    settings = Settings("captions-text", ("whitespace",), False, 1, ("en",))
    return str(prepare(caption_text(200, 0), settings, tmp_path_factory.mktemp("prepared"))[0].path)


@pytest.fixture
def tiny(prepared: str) -> Case:
    rows = len(open_prepared(Path(prepared)).vocabularies["text"])
    return Case(OURS, prepared, (rows,), dim=16, heads=2, batch=2, steps=2, threads=1, layers=1, length=16)


def test_peers_read_the_same_text_as_embinit(prepared: str) -> None:
    whole = sequence(open_prepared(Path(prepared)), "train")
    assert np.array_equal(read_text(prepared), whole[1:])


def test_rates_are_sums_over_members() -> None:
    row = make_row(CASE, Timing(0.5, 100.0, 11), 1e9)
    assert row.tokens_per_s == pytest.approx(2 * 4 * 32 / 0.5)
    weights = 3 * 12 * 16**2 + 16 * 1000
    assert text_step_flops(CASE) == 6 * 4 * 32 * (weights + 3 * 2 * 32 * 16)
    assert row.share_of_peak == pytest.approx(2 * text_step_flops(CASE) / 0.5 / 1e9)


def test_rows_are_compared_with_the_compiled_loop() -> None:
    rows = add_ratios([TextRow(replace(CASE, what=COMPILED), tokens_per_s=10.0), TextRow(CASE, tokens_per_s=25.0)])
    assert [row.times_compiled for row in rows] == [1.0, 2.5]
    assert add_ratios([TextRow(CASE, tokens_per_s=25.0)])[0].times_compiled is None


@pytest.mark.parametrize(
    ("times", "share", "kept"), [(5.1, 0.1, True), (2.0, 0.46, True), (4.9, 0.44, False), (5.0, 0.0, True)]
)
def test_the_bar_of_a_card_is_met_by_speed_or_by_the_share_of_the_peak(times: float, share: float, kept: bool) -> None:
    case = replace(CASE, device="cuda", members=16)
    ((_, met),) = bars([TextRow(case, times_compiled=times, share_of_peak=share)])
    assert met is kept


def test_bars_are_about_the_default_settings() -> None:
    case = replace(CASE, device="cpu", members=1)
    assert len(bars([TextRow(case, times_compiled=9.0)])) == 1
    assert bars([TextRow(replace(case, protected=False), times_compiled=9.0)]) == []


def test_bars_name_existing_rows() -> None:
    entries = tomllib.loads(Path(text.__file__).with_name("text.toml").read_text("utf-8"))["bar"]
    assert len(entries) == 3
    for bar in entries:
        options = text.read_options(["--device", bar["device"]])
        assert bar["members"] in options.members
    assert set(text.PROGRAMS.values()) <= MEASURES.keys()


def test_embinit_is_measured_with_as_many_parameters_as_the_peer(tiny: Case) -> None:
    timing = measure(tiny)
    assert timing.seconds > 0
    assert timing.parameters == sum(p.numel() for p in GPT(tiny).parameters())


def test_the_peers_model_is_causal(tiny: Case) -> None:
    model = GPT(tiny).eval()
    ids = torch.randint(0, tiny.vocabularies[0], (1, 17), generator=torch.Generator().manual_seed(0))
    changed = ids.clone()
    changed[0, -1] = (changed[0, -1] + 1) % tiny.vocabularies[0]
    with torch.no_grad():
        loss, loss_of_changed = (model(tokens[:, :8], tokens[:, 1:9]) for tokens in (ids, changed))
    assert loss == loss_of_changed


def test_one_run_prints_the_table_and_writes_json(
    prepared: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    size = ["--dim", "16", "--heads", "2", "--batch", "2", "--length", "16", "--layers", "1", "--steps", "1"]
    words = ["--prepared", prepared, "--only", "embinit", "--members", "2", "--threads", "1", *size]
    assert text.main([*words, "--json", str(path)]) == 0
    assert f"{OURS}, all in bfloat16" in capsys.readouterr().out
    first, *rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert first["machine"]["peak_tflops"]["bfloat16"] > 0
    assert [row["row"]["case"]["protected"] for row in rows] == [True, False]
    assert {row["row"]["case"]["members"] for row in rows} == {2}
    assert all(row["row"]["tokens_per_s"] > 0 for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("what", [COMPILED, text.TRAINER])
def test_a_peer_is_measured(tiny: Case, what: str) -> None:
    row = text.try_case(replace(tiny, what=what), None)
    if "cannot be installed" in row.note:
        pytest.skip(row.note)
    assert not row.note
    assert row.parameters == measure(tiny).parameters
