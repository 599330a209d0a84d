"""A tokenizer and a data set by their hub ids, from a loopback server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers

from tests.corpora.layouts import ENGLISH, GERMAN, lines
from tests.sources.servers import Served, serving


def prepared(served: Served, home: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    settings = {"HF_ENDPOINT": served.url, "HF_HOME": str(home / "hf"), "HF_HUB_DISABLE_XET": "1", **env}
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("HF_") and "proxy" not in name.lower()
    }
    command = [
        sys.executable,
        "-m",
        "embinit",
        "prepare",
        "multi30k",
        "-o",
        str(home / "out"),
        "--json",
        "--min-count",
        "1",
    ]
    return subprocess.run([*command, *words], capture_output=True, text=True, env={**kept, **settings}, check=False)


def test_data_set_and_tokenizer_come_by_id_and_then_from_the_cache(tmp_path: Path) -> None:
    words = ["<unk>", *sorted({word for text in (*GERMAN, *ENGLISH) for word in text.split()})]
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    rows = lines([json.dumps({"de": de, "en": en}) for de, en in zip(GERMAN, ENGLISH, strict=True)]).encode()
    files = {f"datasets/bentrevett/multi30k/{name}.jsonl": rows for name in ("train", "val", "test")}
    asked = ("--data", "bentrevett/multi30k", "--tokenizer", "org/words")
    with serving(Served(files={**files, "org/words/tokenizer.json": made.to_str().encode()})) as served:
        done = prepared(served, tmp_path, *asked)
        assert done.returncode == 0, done.stderr
        content = json.loads(done.stdout)
        assert content["splits"]["train"]["rows"] == 3
        assert content["splits"]["train"]["sides"]["source"]["unknown"] == 0
        missing = prepared(served, tmp_path, "--data", "hub", "--tokenizer", "org/absent")
        assert missing.returncode == 2
        assert "org/absent" in missing.stderr
        assert "Traceback" not in missing.stderr
    again = prepared(served, tmp_path, *asked, HF_HUB_OFFLINE="1")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["new"] is False


def test_a_model_with_sentencepiece_alone_comes_by_id_too(tmp_path: Path) -> None:
    import sentencepiece

    (tmp_path / "text").write_text(lines([*GERMAN, *ENGLISH] * 20))
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text"), model_prefix=str(tmp_path / "m"), vocab_size=200, hard_vocab_limit=False,
        minloglevel=2,
    )  # fmt: skip
    rows = lines([json.dumps({"de": de, "en": en}) for de, en in zip(GERMAN, ENGLISH, strict=True)]).encode()
    files = {f"datasets/bentrevett/multi30k/{name}.jsonl": rows for name in ("train", "val", "test")}
    files["org/pieces/spiece.model"] = (tmp_path / "m.model").read_bytes()
    files["org/other/config.json"] = b"{}"
    asked = ("--data", "bentrevett/multi30k", "--tokenizer", "org/pieces")
    with serving(Served(files=files)) as served:
        done = prepared(served, tmp_path, *asked)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["splits"]["train"]["sides"]["source"]["unknown"] == 0
        missing = prepared(served, tmp_path, "--data", "hub", "--tokenizer", "org/other")
        assert missing.returncode == 2
        assert "org/other has no file tokenizer.json on the hub" in missing.stderr
    again = prepared(served, tmp_path, *asked, HF_HUB_OFFLINE="1")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["new"] is False
