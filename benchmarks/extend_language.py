"""Train, convert and score the small language model of `benchmarks.extend`.

Perplexity is per word, the loss of all tokens over the number of words, so that tokenizers can be compared.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

FILES = {"train": "train.tokens.gz", "valid": "valid.tokens.gz", "test": "test.tokens.gz"}
#: Lines of WikiText-2's training part: the first `TRAINED` train the model; the last `HELD` are the split `train`.
TRAINED, HELD = 3_000, 1_000
#: Number of lines to score.
SCORED = 400
TOKENS = 2_000
#: Number of words that become tokens: the most frequent ones that the tokenizer splits.
WORDS = 500
#: Texts are scored in parts of this many words, each after the end token.
PART = 40
BATCH = 16
END = "<eos>"
SPEC = """
title = "The language model of benchmarks.extend"
[tasks.text]
name = "files"
kind = "language_model"
path = "text"
tokenizer = "tokenizer"
lower = false
[[block]]
name = "gpt2"
task = "text"
model = { preset = "gpt2", dim = 128, heads = 4, layers = 2, feedforward = 512, length = 128 }
training = { epochs = 4, batch = 16, rate = 3e-3 }
grid.recipe = ["normal"]
grid.seed = [1]
"""


def wiki_lines(data: Path, split: str) -> list[str]:
    """Return the lines of a part of WikiText-2 without headings and `<unk>`."""
    with gzip.open(data / "wikitext2" / FILES[split], "rt", encoding="utf-8") as file:
        lines = (re.sub(r"\s*<unk>", "", line).strip() for line in file)
        return [line for line in lines if line and not line.startswith("=")]


def scored_lines(data: Path, split: str) -> list[str]:
    """Return the lines of a split that are scored. The model was not trained on the lines of `train`."""
    if split == "train":
        return wiki_lines(data, "train")[-HELD:][:SCORED]
    return wiki_lines(data, "valid" if split == "dev" else "test")[:SCORED]


def language_model(data: Path, work: Path) -> Path:
    """Return the folder of the model and its tokenizer, trained on the first call."""
    folder = work / "language-model"
    if not (folder / "tokenizer.json").is_file():
        work = (work / "language-work").resolve()
        if not (work / "spec.toml").is_file():
            _write_inputs(data, work)
        base = [sys.executable, "-W", "ignore", "-m", "embinit"]
        subprocess.run([*base, "run", "spec.toml", "--keep-weights"], check=True, cwd=work, stdout=sys.stderr)
        (run,) = (path for path in (work / "runs").iterdir() if not path.name.startswith("."))
        if not (work / "converted").exists():
            subprocess.run([*base, "convert", str(run), "-o", "converted"], check=True, cwd=work, stdout=sys.stderr)
        _save_with_tokenizer(work, folder)
    return folder


def _write_inputs(data: Path, work: Path) -> None:
    """Write the texts, a byte-level BPE trained on them, and the experiment."""
    import tokenizers
    import transformers

    (work / "text").mkdir(parents=True, exist_ok=True)
    train = wiki_lines(data, "train")[:TRAINED]
    for name, lines in (("train", train), ("valid", wiki_lines(data, "valid")), ("test", wiki_lines(data, "test"))):
        (work / "text" / f"{name}.txt").write_text("\n".join(lines) + "\n", "utf-8")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=TOKENS, initial_alphabet=alphabet, special_tokens=["<unk>", "<pad>", END], show_progress=False
    )
    tokenizer.train_from_iterator(train, trainer)
    specials = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": END, "eos_token": END}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **specials).save_pretrained(work / "tokenizer")
    (work / "spec.toml").write_text(SPEC)


def _save_with_tokenizer(work: Path, folder: Path) -> None:
    """Save the converted model with its rows in the order of the tokenizer's ids, and with the tokenizer."""
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(work / "converted")
    tokenizer = transformers.AutoTokenizer.from_pretrained(work / "tokenizer")
    place = {token: i for i, token in enumerate(json.loads((work / "converted/vocabulary.json").read_text("utf-8")))}
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    # Tokens that do not occur in the training text get the row of <unk>.
    order = [place.get(name, place["<unk>"]) for name in names]
    rows = model.get_input_embeddings().weight.detach()[order].clone()
    model.resize_token_embeddings(len(order))
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(rows)
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        for settings in (model.config, model.generation_config):
            setattr(settings, name, getattr(tokenizer, name))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def frequent_words(tokenizer: Any, lines: Sequence[str]) -> list[str]:
    """Return the most frequent words that a tokenizer splits, in alphabetical order."""
    counts = Counter(word for line in lines for word in line.split() if word.isalpha() and len(word) > 1)
    split = [word for word, _ in counts.most_common() if len(tokenizer.tokenize(f" {word}")) > 1]
    return sorted(split[:WORDS])


def text_parts(lines: Sequence[str]) -> list[str]:
    """Return lines cut into parts of at most `PART` words."""
    words = [line.split() for line in lines]
    return [" ".join(line[i : i + PART]) for line in words for i in range(0, len(line), PART)]


def word_losses(
    model: Any, tokenizer: Any, parts: Sequence[str], removed: Mapping[int, Sequence[int]] = MappingProxyType({})
) -> list[np.ndarray]:
    """Return the loss of each word of each part, in nats; `removed` maps tokens to the old pieces that replace them."""
    import torch

    numbers, ids_of = [], []
    encoded = tokenizer(list(parts), return_offsets_mapping=True, add_special_tokens=False)
    for part, row, offsets in zip(parts, encoded["input_ids"], encoded["offset_mapping"], strict=True):
        # A token belongs to the word of its last character; its first one may be the space before.
        words = np.cumsum([char == " " for char in part])
        pairs = [
            (i, int(words[end - 1]))
            for token, (_, end) in zip(row, offsets, strict=True)
            for i in removed.get(token, (token,))
        ]
        ids_of.append([token for token, _ in pairs])
        numbers.append([word for _, word in pairs])
    losses = [np.zeros(len(part.split())) for part in parts]
    order = sorted(range(len(parts)), key=lambda i: len(ids_of[i]))
    with torch.no_grad():
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            ids = torch.full((len(places), 1 + len(ids_of[places[-1]])), tokenizer.eos_token_id)
            for row, place in enumerate(places):
                ids[row, 1 : 1 + len(ids_of[place])] = torch.tensor(ids_of[place])
            logits = model(input_ids=ids).logits[:, :-1].float()
            logits[..., list(removed)] = -torch.inf
            nats = -logits.log_softmax(dim=2).gather(2, ids[:, 1:, None])[..., 0].numpy()
            for row, place in enumerate(places):
                np.add.at(losses[place], numbers[place], nats[row, : len(numbers[place])])
    return losses


def perplexities(losses: Sequence[np.ndarray], parts: Sequence[str], words: Sequence[str]) -> tuple[float, float]:
    """Return the perplexity per word: over all words, and over the words that are not new tokens."""
    new = set(words)
    other = np.concatenate([[word not in new for word in part.split()] for part in parts])
    every = np.concatenate(list(losses))
    return float(np.exp(every.mean())), float(np.exp(every[other].mean()))
