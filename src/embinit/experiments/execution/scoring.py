"""Score the outputs of trained members on each split, with a signature for every score."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from embinit.experiments.execution.members import training_of
from embinit.experiments.runs.length_buckets import Lengths, by_length
from embinit.experiments.spec import Spec
from embinit.prepared.folder import Prepared
from embinit.text.markers import Scheme, from_byte_level, scheme_of
from embinit.training.scoring import bleu, chrf, confusion, macro_f1, matthews

#: Characters of tokens that would end a line.
_ONE_LINE = str.maketrans("\r\n", "  ")


@dataclass
class Scores:
    """One member's outputs and scores, split by split."""

    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, list[str]] = field(default_factory=dict)
    lengths: Lengths = field(default_factory=dict)


def scored_splits(prepared: Prepared) -> list[str]:
    """Return the scored splits: all except training, and validation only if there is no test split."""
    others = [split for split in prepared.splits if split not in ("train", "valid")]
    return others if "test" in others or "valid" not in prepared.splits else ["valid", *others]


def score_translations(member: Scores, split: str, decoded: Sequence[Sequence[str]], prepared: Prepared) -> None:
    """Add a split's scores: BLEU over the model's own tokens, sacreBLEU's and chrF over text."""
    scheme = scheme_of(prepared.vocabularies["target"].tokens)
    lower = bool(prepared.manifest["settings"]["lower"])
    own = [" ".join(tokens) for tokens in decoded]
    wanted = [" ".join(tokens) for tokens in prepared.reference_tokens(split)]
    texts = [text_of(tokens, scheme) for tokens in decoded]
    references = [text.lower() if lower else text for text in prepared.references(split)]
    how = f"|text:{'joined' if scheme == 'words' else 'detokenized'}{'|ref:lower' if lower else ''}"
    for name, score, end in (
        ("bleu", bleu(own, wanted, "none"), "|text:own tokens"),
        ("sacrebleu", bleu(texts, references), how),
        ("chrf", chrf(texts, references), how),
    ):
        member.scores.setdefault(split, {})[name] = score.value
        member.signatures[name] = score.signature + end
    member.outputs[split] = [line.translate(_ONE_LINE) for line in own]
    _add_lengths(
        member, split, "bleu", prepared,
        lambda places: bleu([own[i] for i in places], [wanted[i] for i in places], "none").value,
    )  # fmt: skip


def score_labels(member: Scores, split: str, answers: Sequence[int], prepared: Prepared) -> None:
    """Add a split's scores: accuracy, the mean F1 of the classes, Matthews' correlation."""
    labels, names = prepared.labels(split), prepared.manifest["labels"]
    table = confusion(np.asarray(answers, dtype=np.int64), np.asarray(labels, dtype=np.int64), len(names))
    member.scores[split] = {
        "accuracy": float(np.trace(table) / table.sum()), "macro_f1": macro_f1(table), "matthews": matthews(table)
    }  # fmt: skip
    member.signatures.update(
        {
            "accuracy": "share of right answers",
            "macro_f1": "mean F1 of the classes",
            "matthews": "Matthews' correlation",
        }
    )
    member.outputs[split] = [str(names[answer]) for answer in answers]
    right = np.asarray(answers) == labels
    _add_lengths(member, split, "accuracy", prepared, lambda places: float(right[places].mean()))


def score_text(
    member: Scores, split: str, loss: float, predicted: int, right: int, prepared: Prepared, spec: Spec
) -> None:
    """Add a split's scores: loss and perplexity per token and per word, bits per byte; of a masked model also accuracy.

    A masked model predicts only a sample of the tokens, so it has no loss per word or byte. The end of a line counts as a
    token, as a word and as a byte.
    """
    training = training_of(spec)
    length = int(dict(spec.model)["length"])
    if prepared.task == "masked_language_model":
        how = f"{training.mask_rate:.0%} of the tokens, one fixed mask|block:{length}"
        scores = {"loss": loss / predicted, "masked_accuracy": right / predicted}
        signatures = {"loss": f"nats a masked token|{how}", "masked_accuracy": f"share of masked tokens|{how}"}
    else:
        how = f"block:{length}|stride:{training.stride or length}|line ends:counted"
        sizes = prepared.sizes(split)
        scores = {
            "perplexity": _power(loss / predicted), "word_perplexity": _power(loss / sizes["words"]),
            "bits_per_byte": loss / math.log(2) / sizes["bytes"], "loss": loss / predicted,
        }  # fmt: skip
        each = {"perplexity": "a token", "word_perplexity": "a word", "bits_per_byte": "a byte", "loss": "a token"}
        signatures = {name: f"of {of}|{how}" for name, of in each.items()}
    member.scores[split] = {name: value for name, value in scores.items() if math.isfinite(value)}
    member.signatures.update(signatures)


def _power(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf


def _add_lengths(
    member: Scores, split: str, name: str, prepared: Prepared, score: Callable[[list[int]], float]
) -> None:
    read = np.diff(prepared.packed(split, prepared.sides[0]).offsets).tolist()
    by_bucket = by_length(read, score)
    if by_bucket:
        member.lengths.setdefault(split, {})[name] = by_bucket


def text_of(tokens: Sequence[str], scheme: Scheme) -> str:
    """Return tokens as text: pieces are put together by their marks, words are joined by spaces.

    >>> text_of(["▁ein", "▁Hund", "ehaus", "."], "sentencepiece")
    'ein Hundehaus.'
    """
    if scheme == "sentencepiece":
        return "".join(tokens).replace("▁", " ").strip()
    if scheme == "byte-level":
        return from_byte_level("".join(tokens)).strip()
    if scheme == "wordpiece":
        return " ".join(tokens).replace(" ##", "")
    if scheme == "end-of-word":
        return "".join(tokens).replace("</w>", " ").strip()
    if scheme == "subword-nmt":
        return " ".join(tokens).replace("@@ ", "")
    return " ".join(tokens)
