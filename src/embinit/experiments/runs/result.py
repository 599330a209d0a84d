"""Run folders: what came out of one run, as plain files that are written once.

RUNS/KEY/ holds `spec.json`; `history.json`, one record an epoch; `scores.json`; `matrices.json`, what each embedding
matrix looked like at the start; `output.SPLIT.txt`, one decoded sentence (or label) a line; `run.json`, where, when and how
long. Everything but `run.json` is a function of the spec alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError
from embinit.experiments.runs import length_buckets
from embinit.experiments.runs.length_buckets import Lengths
from embinit.experiments.spec import Spec, from_json
from embinit.files import replacing_folder


@dataclass(frozen=True)
class Result:
    """One run's outcome."""

    spec: Spec
    #: one record an epoch: "train loss", "valid loss", "bleu" or "accuracy" (validation), "σ, source" ...
    history: list[dict[str, float | None]]
    #: the epoch, counted from 1, whose weights were scored; 0 where none was sound
    best_epoch: int
    diverged: bool
    #: split -> name of the score -> value: bleu (over the model's own tokens), sacrebleu, chrf; accuracy, macro_f1, matthews
    scores: dict[str, dict[str, float]]
    #: name of the score -> how it was computed
    signatures: dict[str, str]
    #: side -> mean, std, min, max, rows, dim, histogram (counts, edges), coverage (types, tokens), kinds
    matrices: dict[str, dict[str, Any]]
    #: split -> one line a sentence
    outputs: dict[str, list[str]]
    #: device, versions, seconds, members (how many trained side by side), commit, finished (ISO time)
    run: dict[str, Any]
    #: BLEU over the model's own tokens, or accuracy, by the length of what was read; runs of earlier versions have none
    lengths: Lengths = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return the run's name."""
        return self.spec.key

    def write(self, runs: Path) -> Path:
        """Write the run's folder, whole or not at all; one that is there stays as it is."""
        path = runs / self.key
        if (path / "run.json").is_file():
            return path
        contents: dict[str, Any] = {
            "spec.json": self.spec.as_json(),
            "history.json": self.history,
            "scores.json": {
                "best_epoch": self.best_epoch,
                "diverged": self.diverged,
                "scores": self.scores,
                "signatures": self.signatures,
                **({"lengths": length_buckets.as_json(self.lengths)} if self.lengths else {}),
            },
            "matrices.json": self.matrices,
            "run.json": self.run,
        }
        with replacing_folder(path) as folder:
            for name, content in contents.items():
                text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
                (folder / name).write_text(text + "\n", "utf-8")
            for split, lines in self.outputs.items():
                (folder / f"output.{split}.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return path


def read_result(path: Path) -> Result:
    """Return the outcome in a run's folder."""

    def content(name: str) -> Any:
        try:
            return json.loads((path / name).read_text("utf-8"))
        except FileNotFoundError:
            raise EmbinitError(f"{path} is no run's folder: it has no {name}") from None
        except ValueError:
            raise EmbinitError(f"{path / name} is damaged; remove the folder and run it again") from None

    scores = content("scores.json")
    return Result(
        spec=from_json(content("spec.json")),
        history=content("history.json"),
        best_epoch=scores["best_epoch"],
        diverged=scores["diverged"],
        scores=scores["scores"],
        signatures=scores["signatures"],
        matrices=content("matrices.json"),
        outputs={
            file.name.removeprefix("output.").removesuffix(".txt"): file.read_text("utf-8").split("\n")[:-1]
            for file in sorted(path.glob("output.*.txt"))
        },
        run=content("run.json"),
        lengths=length_buckets.from_json(scores.get("lengths", {})),
    )
