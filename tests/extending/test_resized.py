"""Models that were resized elsewhere: the verdict on the rows of their last tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import embinit
from embinit.extending.resized import inspect_new_tokens
from tests.cli.running import run
from tests.extending.made import NEW, made, torch
from tests.refusal import refused


def test_rows_that_transformers_made_are_found_to_be_one_row(tmp_path: Path) -> None:
    for family in ("gpt2", "bert"):
        model, tokenizer = made(family)
        tokenizer.add_tokens(list(NEW))
        torch.manual_seed(0)
        model.resize_token_embeddings(len(tokenizer))
        if family == "bert":
            with torch.no_grad():
                model.cls.predictions.bias[-len(NEW) :] += 9
        model.save_pretrained(tmp_path / family)
        tokenizer.save_pretrained(tmp_path / family)
        found = inspect_new_tokens(tmp_path / family, len(NEW))
        assert found.tokens == NEW
        assert found.measures.collapsed
        assert (found.measures.bias_difference is None) == (family == "gpt2")
    assert found.measures.bias_difference == pytest.approx(9, abs=1.5)
    done = run("inspect", tmp_path / "gpt2", "--new-tokens", len(NEW), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["tokens"] == list(NEW)
    assert "harm" in [finding["severity"] for finding in told["findings"]]
    with refused("cannot be new", "1,000,000"):
        inspect_new_tokens(tmp_path / "gpt2", 1_000_000)


def test_rows_of_embinit_are_found_to_be_good(tmp_path: Path) -> None:
    model, tokenizer = made("gpt2")
    extension = embinit.extend(model, tokenizer, NEW, method="multivariate")
    model.save_pretrained(tmp_path)
    extension.tokenizer.save_pretrained(tmp_path)
    found = inspect_new_tokens(tmp_path, len(NEW))
    assert not found.measures.collapsed
    assert found.measures == extension.new_rows
