"""One row of `benchmarks.extend` in a process of its own: `python -m benchmarks.extend_row JSON` prints JSON."""

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

HALVES = 3
#: The peer's version, and what its own environment needs.
DEEPFOCUS = (TORCH, ["numpy<2.4", "deepfocus==1.0.1"])


@dataclass(frozen=True)
class ExtendCase:
    """One row: a model, the words or the tokenizer that it gets, and the method."""

    method: str
    model: str
    data: str
    split: str
    #: a folder for sentence vectors that rows share
    work: str
    #: the folder of a new tokenizer; None: the split words of the split's sentences become tokens
    tokenizer: str | None = None
    text: bool = False
    #: pairs that are used; 0 for all
    pairs: int = 0
    contexts: int = 8


@dataclass(frozen=True)
class ExtendScores:
    """The numbers of a row."""

    words: int
    spearman: float
    #: of the original tokenizer
    original: float
    #: mean cosine to the original vectors: of all sentences, and of those that are segmented differently
    cosine: float
    affected: float
    #: the correlations with random halves of the words
    halves: tuple[float, ...]
    seconds: float
    cpu_seconds: float
    peak_mb: float


def load(folder: str) -> tuple[Any, Any]:
    """Return a model and its tokenizer."""
    import transformers

    return transformers.AutoModel.from_pretrained(folder).eval(), transformers.AutoTokenizer.from_pretrained(folder)


def original(case: ExtendCase, pairs: Pairs) -> np.ndarray:
    """Return the sentence vectors of the original model, computed once."""
    path = Path(case.work, f"{Path(case.model).name}-{case.split}-{case.pairs}.npy")
    if not path.is_file():
        vectors = encode_text(*load(case.model), pairs.sentences)
        part = path.with_suffix(".part.npy")
        np.save(part, vectors)
        part.replace(path)
    return np.load(path)  # type: ignore[no-any-return]


def measure(case: ExtendCase) -> ExtendScores:
    """Return the scores of a model that is extended by a method."""
    pairs = read_pairs(Path(case.data), case.split, case.pairs)
    before = original(case, pairs)
    model, tokenizer = load(case.model)
    words = [] if case.tokenizer else split_words(tokenizer, pairs.sentences)
    text = plain_text(Path(case.data)) if case.text else None
    started, started_cpu = time.perf_counter(), cpu()
    if case.method == "add_tokens":
        new, ids, pieces = added(model, tokenizer, words)
    else:
        new, ids, pieces = extended(case, model, tokenizer, words, text)
    seconds, cpu_seconds = time.perf_counter() - started, cpu() - started_cpu
    lists = [list(entry) for entry in new(pairs.sentences, truncation=True, max_length=128)["input_ids"]]
    after = encode_changed(model, lists, before, set(ids))
    cosines = (after * before).sum(axis=1)
    changed = [place for place, row in enumerate(lists) if set(row) & set(ids)]
    turns = range(0 if pieces is None else HALVES)
    return ExtendScores(
        words=len(words) or len(ids),
        spearman=pairs.spearman(after),
        original=pairs.spearman(before),
        cosine=float(cosines.mean()),
        affected=float(cosines[changed].mean()),
        halves=tuple(half(model, lists, pairs, before, ids, pieces or {}, turn) for turn in turns),
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    )  # fmt: skip


def cpu() -> float:
    """Return the CPU seconds of this process and of its finished children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def added(model: Any, tokenizer: Any, words: Sequence[str]) -> tuple[Any, list[int], None]:
    """Extend a model as transformers' documentation shows it."""
    import torch

    torch.manual_seed(0)
    before = len(tokenizer)
    tokenizer.add_tokens(list(words))
    model.resize_token_embeddings(len(tokenizer))
    return tokenizer, list(range(before, len(tokenizer))), None


def extended(
    case: ExtendCase, model: Any, tokenizer: Any, words: Sequence[str], text: list[str] | None
) -> tuple[Any, list[int], dict[int, tuple[int, ...]] | None]:
    """Extend a model with embinit; rows of a peer replace ours."""
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
        distillation=Distillation(match="mean", contexts=case.contexts),
    )  # fmt: skip
    if peer:
        put_focus_rows(model, tokenizer, extension, old_rows, text or [])
    pieces = None if case.tokenizer else dict(zip(extension.ids, piece_ids(tokenizer, extension.words), strict=True))
    return extension.tokenizer, list(extension.ids), pieces


def put_focus_rows(model: Any, tokenizer: Any, extension: Any, old_rows: np.ndarray, text: Sequence[str]) -> None:
    """Replace the new rows by those that deepfocus makes in an environment of its own."""
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
        made = torch.from_numpy(np.load(path / "made.npy"))
    with torch.no_grad():
        model.get_input_embeddings().weight[list(extension.ids)] = made[list(extension.ids)]


def encode_changed(model: Any, lists: Sequence[Sequence[int]], before: np.ndarray, ids: set[int]) -> np.ndarray:
    """Return sentence vectors; only sentences that hold new tokens are computed again."""
    changed = [place for place, row in enumerate(lists) if set(row) & ids]
    after = before.copy()
    if changed:
        after[changed] = encode_ids(model, [lists[place] for place in changed])
    return after


def half(
    model: Any,
    lists: Sequence[Sequence[int]],
    pairs: Pairs,
    before: np.ndarray,
    ids: Sequence[int],
    pieces: dict[int, tuple[int, ...]],
    turn: int,
) -> float:
    """Return the rank correlation if a random half of the words become tokens."""
    kept = set(np.random.default_rng(turn).permutation(list(ids))[: len(ids) // 2].tolist())
    gone = {token_id: row for token_id, row in pieces.items() if token_id not in kept}
    expanded = [[inner for token_id in row for inner in gone.get(token_id, (token_id,))] for row in lists]
    return pairs.spearman(encode_changed(model, expanded, before, kept))


if __name__ == "__main__":
    print("\n" + json.dumps(asdict(measure(ExtendCase(**json.loads(sys.argv[1]))))))
