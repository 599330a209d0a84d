"""The benchmark of language models: equal models on all sides, bars by either quantity, and rows that can be measured."""

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
from benchmarks.cases import Case, Timed, text_products
from benchmarks.cases import text as tokens_of
from benchmarks.peers_compiled import GPT
from benchmarks.row import MEASURES, measured
from benchmarks.text import COMPILED, OURS, TextRow, bars, compared, row
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


def test_the_peers_read_the_text_that_ours_reads(prepared: str) -> None:
    whole = sequence(open_prepared(Path(prepared)), "train")
    assert np.array_equal(tokens_of(prepared), whole[1:])


def test_rates_are_sums_over_members() -> None:
    made = row(CASE, Timed(0.5, 100.0, 11), 1e9)
    assert made.tokens_per_s == pytest.approx(2 * 4 * 32 / 0.5)
    weights = 3 * 12 * 16**2 + 16 * 1000
    assert text_products(CASE) == 6 * 4 * 32 * (weights + 3 * 2 * 32 * 16)
    assert made.share_of_peak == pytest.approx(2 * text_products(CASE) / 0.5 / 1e9)


def test_rows_are_compared_with_the_compiled_loop() -> None:
    found = compared([TextRow(replace(CASE, what=COMPILED), tokens_per_s=10.0), TextRow(CASE, tokens_per_s=25.0)])
    assert [one.times_compiled for one in found] == [1.0, 2.5]
    assert compared([TextRow(CASE, tokens_per_s=25.0)])[0].times_compiled is None


@pytest.mark.parametrize(
    ("times", "share", "kept"), [(5.1, 0.1, True), (2.0, 0.46, True), (4.9, 0.44, False), (5.0, 0.0, True)]
)
def test_the_cards_bar_is_kept_by_speed_or_by_the_share_of_the_peak(times: float, share: float, kept: bool) -> None:
    case = replace(CASE, device="cuda", members=16, protected=False)
    ((_, found),) = bars([TextRow(case, times_compiled=times, share_of_peak=share)])
    assert found is kept


def test_bars_compare_equal_number_formats() -> None:
    case = replace(CASE, device="cpu", members=1)
    assert bars([TextRow(case, times_compiled=9.0)]) == []
    assert len(bars([TextRow(replace(case, protected=False), times_compiled=9.0)])) == 1


def test_bars_are_about_rows_that_there_are() -> None:
    listed = tomllib.loads(Path(text.__file__).with_name("text.toml").read_text("utf-8"))["bar"]
    assert len(listed) == 3
    for bar in listed:
        options = text.read_options(["--device", bar["device"]])
        assert bar["members"] in options.members
    assert set(text.WHO.values()) <= MEASURES.keys()


def test_ours_is_measured_and_has_the_peers_parameters(tiny: Case) -> None:
    found = measured(tiny)
    assert found.seconds > 0
    assert found.parameters == sum(p.numel() for p in GPT(tiny).parameters())


def test_the_peers_model_is_causal(tiny: Case) -> None:
    model = GPT(tiny).eval()
    ids = torch.randint(0, tiny.vocabularies[0], (1, 17), generator=torch.Generator().manual_seed(0))
    changed = ids.clone()
    changed[0, -1] = (changed[0, -1] + 1) % tiny.vocabularies[0]
    with torch.no_grad():
        one, other = (model(each[:, :8], each[:, 1:9]) for each in (ids, changed))
    assert one == other


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
def test_a_peers_row_is_measured(tiny: Case, what: str) -> None:
    found = text.attempted(replace(tiny, what=what), None)
    if "cannot be installed" in found.note:
        pytest.skip(found.note)
    assert not found.note
    assert found.parameters == measured(tiny).parameters
