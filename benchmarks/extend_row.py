"""Measure one row of `benchmarks.extend`: `python -m benchmarks.extend_row JSON` prints JSON."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import TORCH, environment
from benchmarks.extend_data import Pairs, encode_ids, encode_text, plain_text, read_pairs, split_words
from benchmarks.extend_language import (
    HELD,
    frequent_words,
    perplexities,
    scored_lines,
    text_parts,
    wiki_lines,
    word_losses,
)

#: Number of random halves of the words that are scored.
HALVES = 3
#: Packages of deepfocus' environment.
DEEPFOCUS = (TORCH, ["numpy<2.4", "deepfocus==1.0.1"])


@dataclass(frozen=True)
class ExtendCase:
    """One row: a model, its new words or new tokenizer, and the method."""

    method: str
    model: str
    data: str
    split: str
    #: folder for sentence vectors that rows share
    work: str
    #: folder of the new tokenizer; None if the split words of the sentences become tokens
    tokenizer: str | None = None
    text: bool = False
    #: number of pairs to use; 0 for all
    pairs: int = 0
    contexts: int = 8
    #: whether the model is a causal language model, which is scored by its perplexity
    language: bool = False


@dataclass(frozen=True)
class ExtendScores:
    """The scores of a row. A sentence with new tokens is affected, and so is a pair with such a sentence."""

    words: int
    #: rank correlation, or a language model's perplexity per word
    score: float
    original: float
    #: rank correlation of affected pairs, or perplexity of words that are not new tokens
    part: float
    original_part: float
    #: number of affected pairs, or of words that are not new tokens
    part_size: int
    #: mean cosine of affected sentences to their original vectors; None for language models
    cosine: float | None
    #: scores with random halves of the words as tokens
    halves: tuple[float, ...]
    seconds: float
    cpu_seconds: float
    peak_mb: float


def load(folder: str, *, language: bool = False) -> tuple[Any, Any]:
    """Return a model and its tokenizer."""
    import transformers

    kind = transformers.AutoModelForCausalLM if language else transformers.AutoModel
    return kind.from_pretrained(folder).eval(), transformers.AutoTokenizer.from_pretrained(folder)


def original(case: ExtendCase, pairs: Pairs) -> np.ndarray:
    """Return the sentence vectors of the original model, computed once."""
    path = Path(case.work, f"{Path(case.model).name}-{case.split}-{case.pairs}.npy")
    if not path.is_file():
        vectors = encode_text(*load(case.model), pairs.sentences)
        part = path.with_suffix(".part.npy")
        np.save(part, vectors)
        part.replace(path)
    return np.load(path)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ExtendedModel:
    """An extended model."""

    model: Any
    tokenizer: Any
    words: Sequence[str]
    ids: Sequence[int]
    #: new token -> its old pieces; None if halves of the words are not scored
    pieces: dict[int, tuple[int, ...]] | None
    seconds: float
    cpu_seconds: float


def build_model(case: ExtendCase, words: Sequence[str], text: list[str] | None) -> ExtendedModel:
    """Return the extended model of a row."""
    model, tokenizer = load(case.model, language=case.language)
    started, started_cpu = time.perf_counter(), cpu()
    if case.method == "add_tokens":
        new, ids, pieces = add_tokens(model, tokenizer, words)
    else:
        new, ids, pieces = extend_model(case, model, tokenizer, words, text)
    return ExtendedModel(model, new, words, ids, pieces, time.perf_counter() - started, cpu() - started_cpu)


def measure(case: ExtendCase) -> ExtendScores:
    """Return the scores of a model that is extended by a method."""
    return measure_language(case) if case.language else measure_pairs(case)


def measure_pairs(case: ExtendCase) -> ExtendScores:
    """Return the rank correlations of sentence pairs."""
    pairs = read_pairs(Path(case.data), case.split, case.pairs)
    before = original(case, pairs)
    words = [] if case.tokenizer else split_words(load(case.model)[1], pairs.sentences)
    text = plain_text(Path(case.data), without=pairs.sentences) if case.text else None
    extended = build_model(case, words, text)
    lists = [list(entry) for entry in extended.tokenizer(pairs.sentences, truncation=True, max_length=128)["input_ids"]]
    if case.tokenizer:
        after, changed = encode_ids(extended.model, lists), set(range(len(lists)))
    else:
        changed = {place for place, row in enumerate(lists) if set(row) & set(extended.ids)}
        after = encode_changed(extended.model, lists, before, set(extended.ids))
    affected = pairs.with_sentences(changed)
    turns = range(0 if extended.pieces is None else HALVES)
    return ExtendScores(
        words=len(words) or len(extended.ids),
        score=pairs.spearman(after),
        original=pairs.spearman(before),
        part=pairs.spearman(after, affected),
        original_part=pairs.spearman(before, affected),
        part_size=len(affected),
        cosine=float((after * before).sum(axis=1)[sorted(changed)].mean()),
        halves=tuple(half_score(extended, lists, pairs, before, turn) for turn in turns),
        seconds=extended.seconds,
        cpu_seconds=extended.cpu_seconds,
        peak_mb=peak_mb(),
    )


def measure_language(case: ExtendCase) -> ExtendScores:
    """Return the perplexities per word of a language model."""
    lines = scored_lines(Path(case.data), case.split)
    lines = lines[: case.pairs or None]
    parts = text_parts(lines)
    model, tokenizer = load(case.model, language=True)
    words = frequent_words(tokenizer, lines)
    before = perplexities(word_losses(model, tokenizer, parts), parts, words)
    extended = build_model(case, words, wiki_lines(Path(case.data), "train")[:-HELD] if case.text else None)
    after = perplexities(word_losses(extended.model, extended.tokenizer, parts), parts, words)
    halves = []
    pieces = extended.pieces or {}
    for turn in range(0 if extended.pieces is None else HALVES):
        removed = {i: pieces[i] for i in set(extended.ids) - chosen_half(extended.ids, turn)}
        losses = word_losses(extended.model, extended.tokenizer, parts, removed)
        halves.append(perplexities(losses, parts, words)[0])
    return ExtendScores(
        words=len(words),
        score=after[0],
        original=before[0],
        part=after[1],
        original_part=before[1],
        part_size=sum(word not in set(words) for part in parts for word in part.split()),
        cosine=None,
        halves=tuple(halves),
        seconds=extended.seconds,
        cpu_seconds=extended.cpu_seconds,
        peak_mb=peak_mb(),
    )


def peak_mb() -> float:
    """Return the largest memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def cpu() -> float:
    """Return the CPU seconds of this process and of its finished children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def add_tokens(model: Any, tokenizer: Any, words: Sequence[str]) -> tuple[Any, list[int], None]:
    """Extend a model as transformers' documentation recommends."""
    import torch

    torch.manual_seed(0)
    before = len(tokenizer)
    tokenizer.add_tokens(list(words))
    model.resize_token_embeddings(len(tokenizer))
    return tokenizer, list(range(before, len(tokenizer))), None


def extend_model(
    case: ExtendCase, model: Any, tokenizer: Any, words: Sequence[str], text: list[str] | None
) -> tuple[Any, list[int], dict[int, tuple[int, ...]] | None]:
    """Extend a model with embinit; for deepfocus, its rows replace embinit's."""
    import embinit
    from embinit.extending.distillation.distill import Distillation
    from embinit.extending.tokenizers import piece_ids

    new_tokenizer = None
    if case.tokenizer:
        import transformers

        new_tokenizer = transformers.AutoTokenizer.from_pretrained(case.tokenizer)
    peer = case.method == "deepfocus"
    old_rows = model.get_input_embeddings().weight.detach().numpy().copy()
    method = "pieces" if peer else case.method
    extension = embinit.extend(
        model, tokenizer, words or None, new_tokenizer=new_tokenizer, method=method, text=None if peer else text,
        distillation=Distillation(match=None if case.language else "mean", contexts=case.contexts),
    )  # fmt: skip
    if peer:
        put_focus_rows(model, tokenizer, extension, old_rows, text or [])
    pieces = None if case.tokenizer else dict(zip(extension.ids, piece_ids(tokenizer, extension.words), strict=True))
    return extension.tokenizer, list(extension.ids), pieces


def put_focus_rows(model: Any, tokenizer: Any, extension: Any, old_rows: np.ndarray, text: Sequence[str]) -> None:
    """Replace the new rows by the rows of deepfocus, which runs in its own environment."""
    import torch

    python = environment("deepfocus", *DEEPFOCUS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        tokenizer.save_pretrained(path / "old")
        extension.tokenizer.save_pretrained(path / "new")
        np.save(path / "rows.npy", old_rows[: len(tokenizer)])
        (path / "text.jsonl").write_text("\n".join(json.dumps({"text": line}) for line in text))
        peer = Path(__file__).with_name("peers_focus.py")
        subprocess.run([str(python), str(peer), folder], check=True, stdout=subprocess.DEVNULL)
        new_rows = torch.from_numpy(np.load(path / "made.npy"))
    with torch.no_grad():
        model.get_input_embeddings().weight[list(extension.ids)] = new_rows[list(extension.ids)]


def encode_changed(model: Any, lists: Sequence[Sequence[int]], before: np.ndarray, ids: set[int]) -> np.ndarray:
    """Return sentence vectors; only sentences with new tokens are encoded again."""
    changed = [place for place, row in enumerate(lists) if set(row) & ids]
    after = before.copy()
    if changed:
        after[changed] = encode_ids(model, [lists[place] for place in changed])
    return after


def chosen_half(ids: Sequence[int], turn: int) -> set[int]:
    """Return a random half of the new tokens."""
    return set(np.random.default_rng(turn).permutation(list(ids))[: len(ids) // 2].tolist())


def half_score(
    extended: ExtendedModel, lists: Sequence[Sequence[int]], pairs: Pairs, before: np.ndarray, turn: int
) -> float:
    """Return the rank correlation if only a random half of the words are tokens."""
    kept = chosen_half(extended.ids, turn)
    removed = {token_id: old for token_id, old in (extended.pieces or {}).items() if token_id not in kept}
    expanded = [[piece for token_id in row for piece in removed.get(token_id, (token_id,))] for row in lists]
    return pairs.spearman(encode_changed(extended.model, expanded, before, kept))


if __name__ == "__main__":
    print("\n" + json.dumps(asdict(measure(ExtendCase(**json.loads(sys.argv[1]))))))
