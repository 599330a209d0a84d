"""Experiments on running text: presets, tasks, scores, and what a file may not say."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from embinit.errors import EmbinitError
from embinit.experiments.definition.draft import Draft
from embinit.experiments.definition.reader import read_draft
from embinit.experiments.execution.engine import execute
from embinit.experiments.inputs.locations import Places
from embinit.experiments.inputs.outline import outline
from embinit.experiments.inputs.resolve import resolve
from embinit.experiments.plan import specs_of, write_plan
from embinit.experiments.runs.result import read_result
from embinit.experiments.spec import LATER, Spec, from_json
from embinit.experiments.spec_reader import check_settings
from embinit.experiments.status import estimate_resolved
from embinit.models.presets import presets

HEAD = """
[tasks.text]
name = "captions-text"
size = 200
tokenizer = "whitespace"
[tasks.masked]
name = "captions-text"
size = 200
tokenizer = "whitespace"
kind = "masked_language_model"
[defaults]
task = "text"
model.dim = 16
model.heads = 2
model.layers = 1
model.feedforward = 16
model.length = 24
training.epochs = 2
training.batch = 8
"""
BLOCK = '[[block]]\nname = "one"\n'


def draft(folder: Path, blocks: str, head: str = HEAD) -> Draft:
    path = folder / "text.toml"
    path.write_text(head + blocks)
    return read_draft(path)


def specs(folder: Path, blocks: str, head: str = HEAD) -> list[Spec]:
    found = outline(draft(folder, blocks, head), Places(None, None, folder / "work"))
    return [planned.spec for block in found.blocks for planned in block.runs]


def executed(folder: Path, blocks: str) -> dict[str, Any]:
    """Return the results of the runs of some blocks, by key."""
    where = Places(None, None, folder / "work")
    made = resolve([draft(folder, blocks)], where)
    jobs = write_plan(made, specs_of(made), where.work, where.work)
    summary = execute(jobs, folder / "runs", device="cpu", workers=1)
    assert not summary.failed
    return {spec.key: read_result(folder / "runs" / spec.key) for spec in specs_of(made)}


# ---------------------------------------------------------------- presets


@pytest.mark.parametrize("name", sorted(presets()))
def test_a_preset_stands_for_its_values_and_its_name_is_not_in_the_key(name: str, tmp_path: Path) -> None:
    (named,) = specs(tmp_path, f'{BLOCK}model.preset = "{name}"\n')

    def lines(part: str, values: dict[str, Any]) -> str:
        return "".join(f"{part}.{key} = {json.dumps(value)}\n" for key, value in values.items())

    chosen = presets()[name]
    (plain,) = specs(tmp_path, BLOCK + lines("model", chosen.model) + lines("training", chosen.training))
    assert named == plain
    assert "preset" not in json.dumps(named.as_json())


def test_what_the_file_says_itself_comes_before_the_preset(tmp_path: Path) -> None:
    text = f'{BLOCK}model.preset = "gpt2"\nmodel.tied = false\ngrid."training.rate" = [1e-3, 2e-3]\n'
    first, second = (run.as_json() for run in specs(tmp_path, text, f"{HEAD}training.clip = 0.5\n"))
    assert first["model"]["tied"] is False
    assert first["model"]["positions"] == "learned"
    assert [run["training"]["rate"] for run in (first, second)] == [1e-3, 2e-3]
    assert first["training"]["clip"] == 0.5
    assert first["training"]["weight_decay"] == 0.1


def test_presets_are_an_axis(tmp_path: Path) -> None:
    found = outline(draft(tmp_path, f'{BLOCK}grid."model.preset" = ["gpt2", "llama"]\n'), Places(None, None, tmp_path))
    runs = found.blocks[0].runs
    assert [dict(run.axes) for run in runs] == [{"model.preset": "gpt2"}, {"model.preset": "llama"}]
    assert len({run.spec.key for run in runs}) == 2


def test_an_unknown_preset_is_said_with_the_closest_name(tmp_path: Path) -> None:
    with pytest.raises(EmbinitError, match=r"text\.toml, block 1 \(one\).*gpt2"):
        draft(tmp_path, f'{BLOCK}model.preset = "gpt-2"\n')


# ---------------------------------------------------------------- keys


def test_the_kind_of_a_text_and_its_boundaries_are_part_of_the_key_and_of_no_other_task(tmp_path: Path) -> None:
    joined = '[tasks.joined]\nname = "captions-text"\nsize = 200\ntokenizer = "whitespace"\nboundary = "blank"\n'
    made = specs(tmp_path, f'{BLOCK}[[block]]\nname = "two"\ntask = "masked"\n')
    made += specs(tmp_path, f'{BLOCK}task = "joined"\n', joined + HEAD)
    assert len({spec.key for spec in made}) == 3
    assert [spec.task.kind for spec in made] == ["language_model", "masked_language_model", "language_model"]
    for spec in made:
        assert from_json(json.loads(json.dumps(spec.as_json()))) == spec
        check_settings(spec)
    (other,) = specs(tmp_path, f'{BLOCK}task = "captions"\n')
    later = {name.partition(".")[2] for name in LATER if name.startswith("task.")}
    assert not later & other.as_json()["task"].keys()


def test_wikitext_is_split_at_spaces_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    other = '[tasks.other]\nname = "wikitext2"\ntokenizer = "characters"\n'
    words, characters = specs(tmp_path, f'{BLOCK}grid.task = ["wikitext2", "other"]\n', other + HEAD)
    assert words.task.tokenizer == "whitespace"
    assert characters.task.tokenizer == "characters"


# ---------------------------------------------------------------- runs


def test_perplexities_and_bits_are_those_of_the_loss(tmp_path: Path) -> None:
    blocks = f'{BLOCK}model.preset = "gpt2"\ngrid.recipe = ["xavier", "normal std=0.02"]\n'
    results = executed(tmp_path, blocks)
    assert len(results) == 2
    for result in results.values():
        (folder,) = (tmp_path / "work" / "prepared").iterdir()
        sizes = json.loads((folder / "test.text.sizes.json").read_text())
        counts = json.loads((folder / "manifest.json").read_text())["splits"]["test"]
        found, tokens = result.scores["test"], counts["sides"]["text"]["tokens"] + counts["rows"]
        nats = found["loss"] * tokens
        assert found["perplexity"] == pytest.approx(math.exp(nats / tokens))
        assert found["word_perplexity"] == pytest.approx(math.exp(nats / sizes["words"]))
        assert found["bits_per_byte"] == pytest.approx(nats / math.log(2) / sizes["bytes"])
        losses = [record["valid loss"] for record in result.history]
        assert result.best_epoch == 1 + losses.index(min(losses))


def test_a_masked_model_is_scored_on_its_masked_tokens(tmp_path: Path) -> None:
    blocks = f'{BLOCK}task = "masked"\nmodel.preset = "bert"\n'
    (result,) = executed(tmp_path, blocks).values()
    assert result.scores["test"].keys() == {"loss", "masked_accuracy"}
    assert 0 <= result.scores["test"]["masked_accuracy"] < 1
    assert "masked accuracy" in result.history[0]


def test_a_plan_is_estimated_without_data_being_prepared(tmp_path: Path) -> None:
    where = Places(None, None, tmp_path / "work", read_only=True)
    seconds = []
    for length in (24, 12):
        for batch in (8, 4):
            text = f"{BLOCK}model.length = {length}\ntraining.batch = {batch}\n"
            guess = estimate_resolved(resolve([draft(tmp_path, text)], where), tmp_path / "runs", None, "cpu")
            assert guess.runs == 1
            seconds.append(guess.seconds)
    assert seconds[0] < seconds[1] < seconds[3], "the smaller a step, the longer"
    assert seconds[1] == pytest.approx(seconds[2], rel=0.2), "as many tokens a step"
    assert not (tmp_path / "work").exists()


# ---------------------------------------------------------------- what a file may not say


@pytest.mark.parametrize(
    ("tables", "block", "named"),
    [
        ('[tasks.x]\nname = "multi30k"\nkind = "language_model"\n', "", "tasks.x.kind"),
        ('[tasks.x]\nname = "wikitext2"\nkind = "translation"\n', "", "tasks.x.kind"),
        ('[tasks.x]\nname = "multi30k"\nboundary = "blank"\n', "", "tasks.x.boundary"),
        ("", 'score = "bleu"\n', "score"),
        ("", 'grid.task = ["text", "masked"]\n', "different kinds"),
        ("", 'encoder.recipe = "xavier"\n', "encoder.recipe"),
    ],
)
def test_what_means_nothing_is_said(tables: str, block: str, named: str, tmp_path: Path) -> None:
    with pytest.raises(EmbinitError) as error:
        draft(tmp_path, BLOCK + block, tables + HEAD)
    assert named in str(error.value)


def test_a_block_longer_than_the_text_is_said_before_anything_is_trained(tmp_path: Path) -> None:
    made = draft(tmp_path, f"{BLOCK}model.length = 100_000\n")
    with pytest.raises(EmbinitError, match=r"model\.length = 100,000 tokens, and the training text has [\d,]+"):
        resolve([made], Places(None, None, tmp_path / "work"))
