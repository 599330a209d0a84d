"""The hub's protocol over loopback: only the rows that are wanted travel, and failures are one sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .folders import float32, matrix, safetensors
from .servers import COMMIT, Served, serving

TOKENS = [f"w{i}" for i in range(5000)]
M = matrix(len(TOKENS), 32)
TENSORS = {"bert.embeddings.word_embeddings.weight": M, "bert.encoder.layer.0.weight": matrix(5, 32)}
WEIGHTS = safetensors(float32(**TENSORS))

# The hub's library reads its settings once, so each load has a process of its own; retries need not wait here.
PROGRAM = """
import json, sys, time
time.sleep = lambda seconds: None
from embinit.sources import repositories
repositories._STALL = 0.2
from embinit.errors import EmbinitError
from embinit.sources.load import load
name, wanted = json.loads(sys.argv[1])
try:
    found = load(name, wanted)
    print(json.dumps({"tokens": list(found.tokens), "vectors": found.vectors.tolist(), "source": found.origin.source}))
except EmbinitError as error:
    print(json.dumps({"error": str(error)}))
"""


def repository(**others: bytes) -> dict[str, bytes]:
    files = {
        "config.json": json.dumps({"model_type": "bert", "vocab_size": len(TOKENS)}).encode(),
        "vocab.txt": "\n".join(TOKENS).encode(),
        "model.safetensors": WEIGHTS,
        **others,
    }
    return {f"org/tiny/{name}": data for name, data in files.items()}


@pytest.fixture
def served():
    with serving(Served(repository())) as running:
        yield running


def run(command: list[str], url: str, home: Path, **env: str) -> str:
    settings = {"HF_ENDPOINT": url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("HF_") and "proxy" not in name.lower()
    }
    done = subprocess.run(command, capture_output=True, text=True, env={**kept, **settings, **env}, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(url: str, home: Path, name: str = "org/tiny", wanted: list[str] | None = None, **env: str) -> dict:
    answer: dict = json.loads(run([sys.executable, "-c", PROGRAM, json.dumps([name, wanted])], url, home, **env))
    assert "\n" not in answer.get("error", "")
    return answer


def test_all_rows(served, tmp_path):
    answer = ask(served.url, tmp_path)
    assert answer["tokens"] == TOKENS
    np.testing.assert_array_equal(np.float32(answer["vectors"]), M)
    assert answer["source"] == "org/tiny"


def test_of_the_weights_only_the_wanted_rows_travel(served, tmp_path):
    answer = ask(served.url, tmp_path, wanted=["w7", "w4321", "absent"])
    assert answer["tokens"] == ["w7", "w4321"]
    np.testing.assert_array_equal(np.float32(answer["vectors"]), M[[7, 4321]])
    header = len(WEIGHTS) - sum(array.nbytes for array in TENSORS.values())
    assert served.sent("model.safetensors") == header + 2 * 32 * 4


@pytest.mark.parametrize("revision", ["main", COMMIT])
def test_a_revision(revision, served, tmp_path):
    assert ask(served.url, tmp_path, f"org/tiny@{revision}", ["w1"])["tokens"] == ["w1"]
    assert any(f"/resolve/{revision}/model.safetensors" in path for _, path, _ in served.asked)


def test_a_tensor_by_name(served, tmp_path):
    answer = ask(served.url, tmp_path, "org/tiny::bert.embeddings.word_embedding.weight", ["w1"])
    assert "did you mean 'bert.embeddings.word_embeddings.weight'" in answer["error"]


def test_offline_the_missing_weights_are_named(served, tmp_path):
    ask(served.url, tmp_path, wanted=["w1"])
    asked = len(served.asked)
    answer = ask(served.url, tmp_path, wanted=["w1"], HF_HUB_OFFLINE="1")
    assert "weights of org/tiny are not in the hub's cache, and HF_HUB_OFFLINE is set" in answer["error"]
    assert len(served.asked) == asked


def test_offline_works_from_the_cache(served, tmp_path):
    ask(served.url, tmp_path, wanted=["w9"])
    program = "from huggingface_hub import hf_hub_download; hf_hub_download('org/tiny', 'model.safetensors')"
    run([sys.executable, "-c", program], served.url, tmp_path)
    asked = len(served.asked)
    answer = ask(served.url, tmp_path, wanted=["w9"], HF_HUB_OFFLINE="1")
    np.testing.assert_array_equal(np.float32(answer["vectors"]), M[[9]])
    assert len(served.asked) == asked


def test_an_unknown_repository(served, tmp_path):
    assert ask(served.url, tmp_path, "org/none")["error"].startswith("org/none is neither a file here nor a repository")


def test_a_name_that_no_repository_can_have(served, tmp_path):
    assert "is neither a file here nor a repository" in ask(served.url, tmp_path, "org/--tiny..")["error"]


def test_a_server_without_ranges(served, tmp_path):
    served.ranges = False
    assert "range requests" in ask(served.url, tmp_path)["error"]


def test_a_dead_server(served, tmp_path):
    with serving(Served()) as other:
        url = other.url
    error = ask(url, tmp_path)["error"]
    assert error.startswith("org/tiny is not a folder here, and the hub cannot be reached: ")
    assert "refused" in error


def test_a_dead_server_is_given_up_at_once_and_in_one_line(tmp_path):
    with serving(Served()) as other:
        url = other.url
    (tmp_path / "minilm").mkdir()
    settings = {**os.environ, "HF_ENDPOINT": url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}
    # The library's own retries would sleep 23 seconds in all.
    code = (
        "import atexit, time; slept = []; time.sleep = slept.append; atexit.register(lambda: print(sum(slept)))\n"
        "import sys; sys.argv = ['embinit', 'inspect', 'minilmm']\n"
        "from embinit.cli import main; main()"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=settings, cwd=tmp_path, timeout=60)
    assert float(done.stdout) < 1
    assert done.returncode == 2
    assert done.stderr.startswith("embinit: minilmm is not a folder here, and the hub cannot be reached: ")
    assert done.stderr.endswith("; did you mean 'minilm'?\n")
    assert done.stderr.count("\n") == 1


def test_a_dead_server_leaves_what_is_in_the_cache(served, tmp_path):
    program = "import sys; from embinit.hub import download; print(download('org/tiny', sys.argv[1], None, 'model'))"
    path = run([sys.executable, "-c", program, "vocab.txt"], served.url, tmp_path)
    with serving(Served()) as other:
        url = other.url
    assert run([sys.executable, "-c", program, "vocab.txt"], url, tmp_path) == path


def test_an_unknown_repository_with_a_close_name_here(served, tmp_path, monkeypatch):
    (tmp_path / "tiny-vectors").mkdir()
    monkeypatch.chdir(tmp_path)
    error = ask(served.url, tmp_path, "tiny-vector")["error"]
    assert error.startswith("tiny-vector is neither a file here nor a repository")
    assert error.endswith("; did you mean 'tiny-vectors'?")


def test_a_gated_repository(served, tmp_path):
    served.gated = True
    assert "is gated; accept its terms" in ask(served.url, tmp_path)["error"]


def test_only_torch_weights(tmp_path):
    files = repository(**{"pytorch_model.bin": b"x"})
    del files["org/tiny/model.safetensors"]
    with serving(Served(files)) as running:
        error = ask(running.url, tmp_path)["error"]
    assert "pytorch_model.bin cannot be read in parts; run `hf download org/tiny" in error


def test_shards(tmp_path):
    index = json.dumps({"weight_map": {next(iter(TENSORS)): "model-1.safetensors"}}).encode()
    files = repository(**{"model.safetensors.index.json": index, "model-1.safetensors": WEIGHTS})
    del files["org/tiny/model.safetensors"]
    with serving(Served(files)) as running:
        answer = ask(running.url, tmp_path, wanted=["w5"])
    np.testing.assert_array_equal(np.float32(answer["vectors"]), M[[5]])


def test_a_server_that_stalls_ends_the_read(served, tmp_path):
    served.stalls = True
    assert "org/tiny/model.safetensors: the connection broke" in ask(served.url, tmp_path)["error"]


def test_an_answer_longer_than_the_request_is_refused(served, tmp_path):
    served.added = 5
    assert "sent more than the 8 bytes" in ask(served.url, tmp_path)["error"]


@pytest.mark.parametrize("file", ["../secret.safetensors", "/secret.safetensors", "a/../../secret.safetensors"])
def test_files_outside_of_the_repository_are_not_read(file, tmp_path):
    files = repository(**{file: WEIGHTS})
    del files["org/tiny/model.safetensors"]
    with serving(Served(files)) as running:
        assert "org/tiny has no weights" in ask(running.url, tmp_path)["error"]
