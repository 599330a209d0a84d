"""Compare methods for new tokens and new tokenizers, embinit's and other tools', in one table.

    python -m benchmarks.extend --data DATA --vectors VECTORS --out results.jsonl

(a) Words of STS-B that the tokenizer of all-MiniLM-L6-v2 splits become tokens. (b) The same with all-mpnet-base-v2.
(c) MiniLM gets T5's tokenizer. (d) Words of WikiText-2 become tokens of a small language model, which embinit trains and
converts. No model is trained afterwards. The settings of `distill` were chosen on words of STS-B's training pairs.
Rows in the file of `--out` are printed and not measured again. Seconds depend on other programs on the machine; CPU
seconds depend less on them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.extend_data import download_mpnet
from benchmarks.extend_language import language_model
from benchmarks.extend_row import ExtendCase, ExtendScores

ROOT = Path(__file__).parents[1]
#: Name of a row -> its method, and whether the method gets the plain text.
ROWS = {
    "transformers: add_tokens, resize": ("add_tokens", False),
    "transformers' rows, our tokenizer": ("mean", False),
    "N(mean, covariance)": ("multivariate", False),
    "pieces": ("pieces", False),
    "first-piece": ("first-piece", False),
    "deepfocus, with text": ("deepfocus", True),
    "focus, with text": ("focus", True),
    "omp, with text": ("omp", True),
    "distill, no data": ("distill", False),
    "distill, with text": ("distill", True),
}
#: Case -> methods that cannot run in it.
EXCLUDED: dict[str, tuple[str, ...]] = {"a": (), "b": (), "c": ("add_tokens",), "d": ("deepfocus",)}
#: Peer that cannot run here -> the reason.
NOT_RUN = {
    "Token Distillation": "not on the package index",
    "mergekit-tokensurgeon 0.1.5": "rejects an encoder without an output layer ('NoneType' object has no attribute 'name')",
}
HEADERS = (
    "case", "rows", "words", "score", "original", "halves of the words", "affected", "original", "cosine", "s", "CPU s",
    "peak MB",
)  # fmt: skip


def main() -> None:
    """Run the rows of the chosen cases and print them as a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("EMBINIT_DATA"), help="data sets ($EMBINIT_DATA)")
    parser.add_argument(
        "--vectors", type=Path, default=os.environ.get("EMBINIT_VECTORS"), help="vectors ($EMBINIT_VECTORS)"
    )
    parser.add_argument("--work", type=Path, default=ROOT / ".cache/extend", help="files that rows share")
    parser.add_argument("--cases", nargs="+", default=list(EXCLUDED), choices=list(EXCLUDED))
    parser.add_argument("--splits", nargs="+", default=["dev", "test"], choices=["train", "dev", "test"])
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--pairs", type=int, default=0, help="use only this many random pairs (language models: lines)")
    parser.add_argument("--contexts", type=int, default=8, help="sentences for each new token in distill")
    parser.add_argument("--out", type=Path, help="append each row to this file as JSON, and skip rows that it holds")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    print("| " + " | ".join(HEADERS) + " |\n|" + "---|" * len(HEADERS))
    for name in options.cases:
        for split in options.splits:
            case = replace(base_case(name, options), split=split)
            for row in options.rows:
                method, text = ROWS[row]
                if method not in EXCLUDED[name]:
                    scores = measure_row(row, replace(case, method=method, text=text), options.out)
                    print("| " + " | ".join(cells(f"({name}) {split}", row, scores)) + " |", flush=True)
    print("\n" + "\n".join(f"not run: {peer}, {reason}" for peer, reason in NOT_RUN.items()) + "\n", flush=True)


def base_case(name: str, options: argparse.Namespace) -> ExtendCase:
    """Return a case without its split and method."""
    case = ExtendCase(
        "", str(options.vectors / "minilm"), str(options.data), "", str(options.work), pairs=options.pairs,
        contexts=options.contexts,
    )  # fmt: skip
    if name == "b":
        return replace(case, model=str(download_mpnet(options.work)))
    if name == "c":
        return replace(case, tokenizer=str(options.vectors / "flan-t5-small"))
    if name == "d":
        return replace(case, model=str(language_model(options.data, options.work)), language=True)
    return case


def measure_row(row: str, case: ExtendCase, out: Path | None) -> ExtendScores | str:
    """Return the scores of a row, from the file if it holds them; if the row fails, return the reason."""
    facts = {name: value for name, value in asdict(case).items() if name not in ("data", "work")}
    facts |= {name: Path(facts[name]).name for name in ("model", "tokenizer") if facts[name]}
    lines = out.read_text().splitlines() if out is not None and out.is_file() else []
    for record in map(json.loads, lines):
        if record["case"] == facts:
            return ExtendScores(**{**record["scores"], "halves": tuple(record["scores"]["halves"])})
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.extend_row", json.dumps(asdict(case))]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if process.returncode:
        return "not run: " + (process.stderr.strip().splitlines() or ["no error message"])[-1]
    scores = json.loads(process.stdout.strip().splitlines()[-1])
    if out is not None:
        with out.open("a") as file:
            file.write(json.dumps({"case": facts, "row": row, "scores": scores}) + "\n")
    return ExtendScores(**{**scores, "halves": tuple(scores["halves"])})


def cells(case: str, row: str, scores: ExtendScores | str) -> list[str]:
    """Return the texts of a table row."""
    if isinstance(scores, str):
        return [case, row, scores, *[""] * (len(HEADERS) - 3)]
    digits = 1 if scores.cosine is None else 4  # perplexities are large
    halves = (
        " to ".join(f"{edge:.{digits}f}" for edge in (min(scores.halves), max(scores.halves))) if scores.halves else ""
    )
    return [
        case, row, f"{scores.words:,}", f"{scores.score:.{digits}f}", f"{scores.original:.{digits}f}", halves,
        f"{scores.part:.{digits}f}", f"{scores.original_part:.{digits}f}",
        "" if scores.cosine is None else f"{scores.cosine:.4f}",
        f"{scores.seconds:,.0f}", f"{scores.cpu_seconds:,.0f}", f"{scores.peak_mb:,.0f}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
