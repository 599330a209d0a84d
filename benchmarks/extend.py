"""New tokens and new tokenizers: our methods and the peers' in one table.

    python -m benchmarks.extend --data DATA --vectors VECTORS

Words of STS-B that the tokenizer of a sentence encoder splits become tokens, or the encoder gets T5's tokenizer. No task
is trained. The settings of `distill` were chosen on words of STS-B's training pairs. Seconds depend on who else uses the
machine; CPU seconds less so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.extend_data import mpnet
from benchmarks.extend_row import ExtendCase, ExtendScores

ROOT = Path(__file__).parents[1]
#: From a row's name to its method and whether it gets the plain text.
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
#: Peers that cannot be run here, and why.
NOT_RUN = {
    "Token Distillation": "not on the package index",
    "mergekit-tokensurgeon": "needs a complete donor model; only the embedding of flan-t5-small is here",
}
HEADERS = (
    "rows", "words", "Spearman", "original", "halves of the words", "cosine", "cosine, affected", "s", "CPU s", "peak MB",
)  # fmt: skip


def main() -> None:
    """Run the rows of the chosen cases, and print one table for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("EMBINIT_DATA"), help="the folder of data sets")
    parser.add_argument("--vectors", type=Path, default=os.environ.get("EMBINIT_VECTORS"), help="the folder of vectors")
    parser.add_argument("--work", type=Path, default=ROOT / ".cache/extend", help="a folder for what rows share")
    parser.add_argument("--cases", nargs="+", default=list("abc"), choices=list("abc"))
    parser.add_argument("--split", default="dev", choices=["train", "dev", "test"])
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--pairs", type=int, default=0, help="use this many random pairs")
    parser.add_argument("--contexts", type=int, default=8, help="sentences for each new token in distill")
    parser.add_argument("--out", type=Path, help="also write the numbers as JSON, row by row")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    for name in options.cases:
        title, case = case_of(name, options)
        print(f"({name}) {title}, STS-B {options.split}\n\n| " + " | ".join(HEADERS) + " |\n|" + "---|" * len(HEADERS))
        for row, scores in measured(case, options.rows):
            print("| " + " | ".join(cells(row, scores)) + " |", flush=True)
            if options.out is not None:
                with options.out.open("a") as file:
                    numbers = scores if isinstance(scores, str) else asdict(scores)
                    file.write(json.dumps({"case": asdict(case), "row": row, "scores": numbers}) + "\n")
        print("\n" + "\n".join(f"not run: {peer}, {reason}" for peer, reason in NOT_RUN.items()) + "\n", flush=True)


def case_of(name: str, options: argparse.Namespace) -> tuple[str, ExtendCase]:
    """Return the title of a case, and its first row without a method."""
    minilm = options.vectors / "minilm"
    case = ExtendCase(
        "",
        str(minilm),
        str(options.data),
        options.split,
        str(options.work),
        pairs=options.pairs,
        contexts=options.contexts,
    )
    if name == "b":
        return "all-mpnet-base-v2, words", replace(case, model=str(mpnet(options.work)))
    if name == "c":
        tokenizer = str(options.vectors / "flan-t5-small")
        return "all-MiniLM-L6-v2, T5's tokenizer", replace(case, tokenizer=tokenizer)
    return "all-MiniLM-L6-v2, words", case


def measured(case: ExtendCase, rows: list[str]) -> Iterator[tuple[str, ExtendScores | str]]:
    """Yield the scores of each row, or the reason why it was not run."""
    for row in rows:
        method, text = ROWS[row]
        if method == "add_tokens" and case.tokenizer:
            continue
        task = json.dumps(asdict(replace(case, method=method, text=text)))
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.extend_row", task]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode:
            yield row, "not run: " + (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        else:
            record = json.loads(done.stdout.strip().splitlines()[-1])
            yield row, ExtendScores(**{**record, "halves": tuple(record["halves"])})


def cells(row: str, scores: ExtendScores | str) -> list[str]:
    """Return the texts of a table row."""
    if isinstance(scores, str):
        return [row, scores, *[""] * (len(HEADERS) - 2)]
    halves = f"{min(scores.halves):.3f} to {max(scores.halves):.3f}" if scores.halves else ""
    return [
        row, f"{scores.words:,}", f"{scores.spearman:.4f}", f"{scores.original:.4f}", halves, f"{scores.cosine:.4f}",
        f"{scores.affected:.4f}", f"{scores.seconds:,.0f}", f"{scores.cpu_seconds:,.0f}", f"{scores.peak_mb:,.0f}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
