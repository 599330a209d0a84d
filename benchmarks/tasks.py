"""Tasks of `benchmarks.vectors`, each run in its own interpreter: `python -m benchmarks.tasks TASK ARGUMENTS FOLDER`.

A task imports its tool, reads untimed inputs, and returns the timed work as a function. The function returns an answer (for
example tokens) and vectors or None.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Work = Callable[[], tuple[Any, np.ndarray | None]]


def peak_bytes() -> int:
    """Return the peak memory of this process in bytes.

    On Linux, `ru_maxrss` starts at the parent's value, but /proc counts this program alone.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def read_wanted(path: str | None) -> list[str] | None:
    """Return the words of a JSON file; None, for all words, without a file."""
    return None if path is None else json.loads(Path(path).read_text())


# ---------------------------------------------------------------- text


def embinit_load(path: str, wanted: str | None = None) -> Work:
    from embinit import load

    words = read_wanted(wanted)

    def work() -> tuple[Any, np.ndarray]:
        embeddings = load(path, words)
        return list(embeddings.tokens), embeddings.vectors

    return work


def gensim_text(path: str, wanted: str | None = None) -> Work:
    from gensim.models import KeyedVectors

    words = read_wanted(wanted)

    def work() -> tuple[Any, np.ndarray]:
        vectors = KeyedVectors.load_word2vec_format(path, no_header=True)
        if words is None:
            return vectors.index_to_key, vectors.vectors
        known = [word for word in words if word in vectors]
        return known, vectors[known]

    return work


def pandas_text(path: str, wanted: str | None = None) -> Work:
    import pandas

    words = read_wanted(wanted)

    def work() -> tuple[Any, np.ndarray]:
        # na_filter=False keeps the words `nan` and `null`.
        table = pandas.read_csv(path, sep=" ", quoting=3, header=None, index_col=0, na_filter=False)
        if words is not None:
            table = table.loc[[word for word in words if word in table.index]]
        return table.index.tolist(), table.to_numpy(dtype=np.float32)

    return work


def loop_text(path: str, wanted: str | None = None) -> Work:
    words = read_wanted(wanted)
    known = None if words is None else set(words)

    def work() -> tuple[Any, np.ndarray]:
        tokens, rows = [], []
        with Path(path).open(encoding="utf-8", newline="\n") as file:
            for line in file:
                token, _, numbers = line.partition(" ")
                if known is None or token in known:
                    tokens.append(token)
                    rows.append(np.array(numbers.split(" "), dtype=np.float32))
        return tokens, np.stack(rows)

    return work


# ---------------------------------------------------------------- fastText


def gensim_fasttext(path: str, wanted: str) -> Work:
    from gensim.models.fasttext import load_facebook_vectors

    words = read_wanted(wanted) or []

    def work() -> tuple[Any, np.ndarray]:
        vectors = load_facebook_vectors(path)
        return words, np.stack([vectors[word] for word in words])

    return work


# ---------------------------------------------------------------- checkpoints


def transformers_rows(path: str, ids: str) -> Work:
    import torch
    from transformers import AutoConfig, AutoModel

    AutoModel._model_mapping[type(AutoConfig.from_pretrained(path))]  # imports the model's module before the timed work
    rows = json.loads(Path(ids).read_text())

    def work() -> tuple[Any, np.ndarray]:
        layer = AutoModel.from_pretrained(path).get_input_embeddings()
        with torch.no_grad():
            return None, layer.weight[rows].numpy()

    return work


# ---------------------------------------------------------------- analogies


def embinit_analogies(path: str, questions: str, most: int) -> Work:
    from embinit import load
    from embinit.diagnosis.analogy import evaluate, read_questions

    vectors = load(path, most=most)
    sections = read_questions(Path(questions))

    def work() -> tuple[Any, None]:
        scores = evaluate(vectors.vectors, vectors.index, sections)
        return {section: [score.right, score.asked] for section, score in scores.items()}, None

    return work


def gensim_analogies(path: str, questions: str, most: int) -> Work:
    from gensim.models import KeyedVectors

    vectors = KeyedVectors.load_word2vec_format(path, no_header=True, limit=most)

    def work() -> tuple[Any, None]:
        _, sections = vectors.evaluate_word_analogies(questions, restrict_vocab=most, case_insensitive=False)
        return {
            part["section"]: [len(part["correct"]), len(part["correct"]) + len(part["incorrect"])]
            for part in sections
            if part["section"] != "Total accuracy"
        }, None

    return work


def main() -> None:
    name, arguments, folder = sys.argv[1:]
    task = globals()[name]
    before = peak_bytes()
    start = time.perf_counter()
    work = task(**json.loads(arguments))
    ready = time.perf_counter()
    answer, vectors = work()
    end = time.perf_counter()
    memory = peak_bytes() - before
    if vectors is not None:
        np.save(Path(folder, "vectors.npy"), vectors)
    measured = {
        "seconds": end - ready,
        "seconds_with_imports": end - start,
        "memory": memory / 1e6,
        "answer": answer,
    }
    Path(folder, "measured.json").write_text(json.dumps(measured))


if __name__ == "__main__":
    main()
