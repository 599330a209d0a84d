"""New rows that are fitted: the frozen model reads new tokens as it read their old pieces."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embinit
from embinit.extending.distillation import fit as fitting
from embinit.extending.distillation.contexts import PairedSentence, gather, pair
from embinit.extending.distillation.distill import Distillation
from embinit.extending.distillation.objective import Objective, folder_match
from embinit.extending.tokenizers import add_words
from embinit.seeds import stream
from tests.cli.running import run
from tests.extending.made import FAMILIES, KINDS, NEW, made, save, tokenizer_of, torch
from tests.refusal import refused

TEXT = [f"a {place} dog sees the {word} in the park" for place in ("red", "small", "young", "tall") for word in NEW]


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rows_of(layer: Any) -> np.ndarray:
    return layer.weight.detach().numpy().copy()  # type: ignore[no-any-return]


def difference(model: Any, contexts: Sequence[PairedSentence], match: Any, old_rows: Any) -> float:
    objective = Objective(model, match, torch.from_numpy(old_rows))
    with torch.no_grad():
        return float(objective.loss(contexts, objective.targets(contexts)))


@pytest.mark.parametrize("match", ["states", "mean"])
def test_fitted_rows_bring_the_model_nearer_to_what_it_read_before(family: str, match: Any) -> None:
    differences = {}
    for method in ("pieces", "distill"):
        model, tokenizer = made(family)
        old = rows_of(model.get_input_embeddings())
        settings = Distillation(match=match, epochs=30) if method == "distill" else None
        text = TEXT if method == "distill" else None
        extension = embinit.extend(model, tokenizer, NEW, method=method, text=text, distillation=settings)
        contexts = pair(tokenizer, extension.tokenizer, TEXT)
        differences[method] = difference(model, contexts, match, old)
        assert (rows_of(model.get_input_embeddings())[: len(old)] == old).all()
        assert not model.training and all(parameter.requires_grad for parameter in model.parameters())
    assert differences["distill"] < 0.97 * differences["pieces"]


def test_without_text_sentences_are_made_of_the_vocabulary() -> None:
    model, tokenizer = made("bert")
    extension = embinit.extend(model, tokenizer, NEW)
    assert extension.method == "distill"
    assert {"pieces", "distill"} <= set(extension.stages)
    contexts = gather(
        tokenizer, extension.tokenizer, dict(zip(extension.ids, NEW, strict=True)), text=None, per_token=3,
        rng=stream(0, "x"),
    )  # fmt: skip
    assert (contexts.from_text, contexts.made, contexts.in_text) == (0, 15, 0)
    counts = [sum(token_id in context.new_ids for context in contexts.contexts) for token_id in extension.ids]
    assert counts == [3] * len(NEW)


def test_contexts_are_cut_from_text_first_and_made_for_the_rest() -> None:
    tokenizer = tokenizer_of("WordPiece")
    extended = add_words(tokenizer, NEW, rows=5000)
    words = dict(zip(extended.ids, NEW, strict=True))
    lines = [" ".join(["dog"] * 50 + [NEW[0]] + ["cat"] * 50)] * 9 + [f"a {NEW[1]}", "a dog"]
    contexts = gather(tokenizer, extended.tokenizer, words, text=lines, per_token=4, rng=stream(0, "x"))
    assert contexts.from_text == 5
    assert contexts.in_text == 2
    assert contexts.made == 3 + 4 * 3
    assert max(len(context.new_ids) for context in contexts.contexts) < 60


@pytest.mark.parametrize("kind", KINDS)
def test_positions_are_paired_where_the_same_part_of_a_text_ends(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    extended = add_words(tokenizer, ["graphene"], rows=5000)
    (context,) = pair(tokenizer, extended.tokenizer, ["a dog graphene bird"])
    new_place = context.new_ids.index(extended.ids[0])
    partner = dict(context.pairs)[new_place]
    pieces = extended.pieces[0]
    assert context.old_ids[partner - len(pieces) + 1 : partner + 1] == pieces
    for own, other in context.pairs:
        if own != new_place:
            assert context.new_ids[own] == context.old_ids[other]
    assert len(context.pairs) == len(context.new_ids)


class Stopped(Exception):
    pass


def test_a_stopped_fit_goes_on_and_gives_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_SAVED_EVERY", 1)
    monkeypatch.setattr(fitting, "_BATCH", 4)

    def extended(progress: Any, checkpoint: Path | None) -> np.ndarray:
        model, tokenizer = made("bert")
        before = rows_of(model.get_input_embeddings())
        settings = Distillation(progress=progress, checkpoint=checkpoint)
        try:
            ids = embinit.extend(model, tokenizer, NEW, method="distill", distillation=settings).ids
        except Stopped:
            assert (rows_of(model.get_input_embeddings()) == before).all()
            assert model.config.vocab_size == len(before)
            raise
        return rows_of(model.get_input_embeddings())[list(ids)]

    def stop(what: str, done: int, total: int | None) -> None:
        if done == 7:
            raise Stopped

    told: list[int] = []
    whole = extended(lambda what, done, total: told.append(done), None)
    assert told == list(range(1, 21))
    path = tmp_path / "checkpoint"
    with pytest.raises(Stopped):
        extended(stop, path)
    assert path.is_file()
    told.clear()
    assert (extended(lambda what, done, total: told.append(done), path) == whole).all()
    assert told[0] == 8
    assert not path.exists()
    with pytest.raises(Stopped):
        extended(stop, path)
    content = path.read_bytes()
    with np.load(path) as stored:
        arrays = dict(stored)
    with path.open("wb") as file:
        np.savez(file, **{**arrays, "rows": arrays["rows"][:1]})
    for damaged in (path.read_bytes(), b"", content[:-9], content[:300] + bytes([content[300] ^ 1]) + content[301:]):
        path.write_bytes(damaged)
        told.clear()
        assert (extended(lambda what, done, total: told.append(done), path) == whole).all()
        assert told[0] == 1, "it began again"
    path.write_bytes(b"mine")
    with refused("no checkpoint", str(path)):
        extended(None, path)
    assert path.read_bytes() == b"mine"


def test_what_users_of_a_folder_take_is_matched(tmp_path: Path) -> None:
    assert folder_match(tmp_path) == "states"
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Pooling"}]))
    assert folder_match(tmp_path) == "mean"
    (tmp_path / "1_Pooling").mkdir()
    settings = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (tmp_path / "1_Pooling/config.json").write_text(json.dumps(settings))
    assert folder_match(tmp_path) == "cls"


def test_unfit_text_and_settings_are_refused_in_one_sentence() -> None:
    for text, values in (([""], ["no lines"]), (["a dog"], ["none of the new tokens"])):
        with refused(*values):
            embinit.extend(*made("bert"), NEW, method="distill", text=text)
    for text in (__file__, [__file__]):
        with refused("is a file", "Path("):
            embinit.extend(*made("bert"), NEW, method="distill", text=text)
    with refused("takes no text", "pieces"):
        embinit.extend(*made("bert"), NEW, method="pieces", text=TEXT)
    with refused("takes no vectors", "distill"):
        embinit.extend(*made("bert"), NEW, method="distill", vectors="glove.txt")
    with refused("epochs is 0"):
        Distillation(epochs=0)


def test_the_command_fits_on_text_and_removes_its_checkpoint(tmp_path: Path) -> None:
    folder = save("bert", tmp_path / "model")
    (tmp_path / "words.txt").write_text("\n".join(NEW))
    (tmp_path / "text.txt").write_text("\n".join(TEXT))
    told = run(
        "extend", folder, "--tokens", tmp_path / "words.txt", "--text", tmp_path / "text.txt", "--match", "cls",
        "-o", tmp_path / "out", "--json",
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    content = json.loads(told.stdout)
    assert content["method"] == "distill"
    assert set(content["new_rows"]) == {"transformers' default", "pieces", "distill"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "out", "text.txt", "words.txt"]
    shutil.rmtree(tmp_path / "out")
    wrong = run("extend", folder, "--tokens", tmp_path / "words.txt", "--match", "max", "-o", tmp_path / "out")
    assert wrong.returncode == 2 and "max" in wrong.stderr
    assert not (tmp_path / "out").exists()
