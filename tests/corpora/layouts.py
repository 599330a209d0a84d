"""Small data sets in the layouts that people have, written for tests."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

GERMAN = ["Ein Mann läuft.", "Zwei Hunde spielen im Schnee.", "Eine Frau liest ein Buch."]
ENGLISH = ["A man runs.", "Two dogs play in the snow.", "A woman reads a book."]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode("utf-8")))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def lines(texts: list[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def multi30k_raw(folder: Path, ending: str = ".gz") -> Path:
    for split in ("train", "val", "test_2016_flickr"):
        write(folder / f"{split}.de{ending}", lines(GERMAN))
        write(folder / f"{split}.en{ending}", lines(ENGLISH))
    return folder


def multi30k_jsonl(folder: Path) -> Path:
    rows = [{"de": de, "en": en} for de, en in zip(GERMAN, ENGLISH, strict=True)]
    for split in ("train", "val", "test"):
        write(folder / f"{split}.jsonl", lines([json.dumps(row) for row in rows]))
    return folder


def iwslt_tsv(folder: Path) -> Path:
    rows = lines(["de\ten", *(f"{de}\t{en}" for de, en in zip(GERMAN, ENGLISH, strict=True))])
    for split in ("train", "valid", "test"):
        write(folder / f"{split}.de-en.tsv", rows)
    return folder


def iwslt_official(folder: Path) -> Path:
    head = ["<url>x</url>", "<title>Talk &amp; more</title>"]
    for language, texts in (("de", GERMAN), ("en", ENGLISH)):
        write(folder / f"train.tags.de-en.{language}", lines([*head, *texts, "<reviewer>r</reviewer>"]))
        segments = "\n".join(f'<seg id="{i}"> {text} &amp; so on </seg>' for i, text in enumerate(texts, 1))
        xml = f'<?xml version="1.0" encoding="UTF-8"?>\n<mteval><doc docid="1">\n{segments}\n</doc></mteval>\n'
        for year in ("dev2010", "tst2010", "tst2011"):
            write(folder / f"IWSLT17.TED.{year}.de-en.{language}.xml", xml)
    return folder


def sst2_tsv(folder: Path) -> Path:
    write(folder / "train.tsv", "sentence\tlabel\na fine film \t1\ndull and long\t0\n")
    write(folder / "dev.tsv", "sentence\tlabel\nfine\t1\n")
    return folder


def mnli_glue(folder: Path) -> Path:
    header = "index\tpromptID\tsentence1\tsentence2\tgold_label\n"
    write(
        folder / "train.tsv",
        header + "0\t1\tA man runs.\tA man moves.\tentailment\n1\t2\tHe sits.\tHe stands.\tcontradiction\n",
    )
    for name in ("dev_matched", "dev_mismatched"):
        write(folder / f"{name}.tsv", header + "0\t1\tShe eats.\tShe eats fish.\tneutral\n1\t2\tA b.\tC d.\t-\n")
    return folder


def mnli_jsonl(folder: Path) -> Path:
    row = {"sentence1": "A man runs.", "sentence2": "A man moves.", "gold_label": "entailment"}
    for name in ("train", "dev_matched", "dev_mismatched"):
        write(folder / f"multinli_1.0_{name}.jsonl", json.dumps(row) + "\n")
    return folder


def mnli_parts(folder: Path) -> Path:
    header = "label\tpremise\thypothesis\tsrc\tgenre\n"
    write(folder / "train_subset.tsv.gz", header + "entailment\tA man runs.\tA man moves.\tx\tfiction\n")
    write(folder / "train_more.tsv.gz", header + "neutral\tHe sits.\tHe reads.\ty\ttravel\n")
    for name in ("dev_matched", "dev_mismatched"):
        write(folder / f"{name}.tsv.gz", "label\tpremise\thypothesis\nneutral\tShe eats.\tShe eats fish.\n")
    return folder


def ted_tsv(folder: Path) -> Path:
    rows = lines(["de\ten\tsrc", *(f"{de}\t{en}\tx" for de, en in zip(GERMAN, ENGLISH, strict=True))])
    for split in ("train", "valid", "test"):
        write(folder / f"{split}.de-en.tsv.gz", rows)
    return folder


#: rows of GLUE's tasks as some releases have them: a header line, the label first
LABEL_FIRST = {
    "cola": "label\tsentence\n1\tThe book is fine.\n0\tBook the fine.\n",
    "rte": "label\tsentence1\tsentence2\nentailment\tA.\tB.\nnot_entailment\tC.\tD.\n",
    "wnli": "label\tsentence1\tsentence2\n1\tA.\tB.\n0\tC.\tD.\n",
    "mrpc": 'label\tsentence1\tsentence2\n1\tSay "a.\tSay b.\n0\tC.\tD.\n',
}


def label_first(name: str, folder: Path) -> Path:
    files = ("train", "dev", "test_labeled") if name == "mrpc" else ("train", "dev")
    for file in files:
        write(folder / f"{file}.tsv.gz", LABEL_FIRST[name])
    return folder


#: name of the data set, what writes it, rows of each split
LAYOUTS: dict[str, tuple[str, Callable[[Path], Path], dict[str, int]]] = {
    "multi30k, raw, gz": ("multi30k", multi30k_raw, {"train": 3, "valid": 3, "test": 3}),
    "multi30k, raw, plain": ("multi30k", lambda folder: multi30k_raw(folder, ""), {"train": 3, "valid": 3, "test": 3}),
    "multi30k, jsonl": ("multi30k", multi30k_jsonl, {"train": 3, "valid": 3, "test": 3}),
    "iwslt2017, tsv": ("iwslt2017", iwslt_tsv, {"train": 3, "valid": 3, "test": 3}),
    "iwslt2017, official": ("iwslt2017", iwslt_official, {"train": 3, "valid": 3, "test": 6}),
    "sst2, tsv": ("sst2", sst2_tsv, {"train": 2, "valid": 1}),
    "mnli, glue": ("mnli", mnli_glue, {"train": 2, "valid": 1, "valid_mismatched": 1}),
    "mnli, subset": ("mnli", mnli_parts, {"train": 1, "valid": 1, "valid_mismatched": 1}),
    "mnli-98k": ("mnli-98k", mnli_parts, {"train": 2, "valid": 1, "valid_mismatched": 1}),
    "ted, tsv": ("ted", ted_tsv, {"train": 3, "valid": 3, "test": 3}),
    **{
        f"{name}, label first": (name, partial(label_first, name), {"train": 2, "valid": 2, **tests})
        for name, tests in (("cola", {}), ("rte", {}), ("wnli", {}), ("mrpc", {"test": 2}))
    },
    "mnli, jsonl": ("mnli", mnli_jsonl, {"train": 1, "valid": 1, "valid_mismatched": 1}),
}
