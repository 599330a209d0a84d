"""The package installed without extras in an empty environment: what it declares is what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.long
def test_an_empty_environment_is_enough(tmp_path: Path, glove_file: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", ROOT]
    subprocess.run(install, check=True, cwd=tmp_path)
    listed = subprocess.run([python, "-m", "pip", "list"], capture_output=True, text=True, check=True).stdout
    assert "torch" not in listed

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [tmp_path / "venv" / "bin" / "embinit", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )

    assert "inspect" in run("--help").stdout
    assert "Standardize these vectors" in run("inspect", glove_file).stdout
    assert run("make", glove_file, "-o", "x.safetensors").returncode == 0
    assert run("demo").returncode == 0
    for words, extra in (
        (("inspect", glove_file, "--text", glove_file, "--tokenizer", "spacy:en"), "spacy"),
        (("inspect", "org/name"), "hf"),
        (("inspect", glove_file, "--plot", "x.png"), "plot"),
        (("apply", "x.safetensors", tmp_path, "-o", "out"), "train"),
    ):
        done = run(*words)
        assert done.returncode == 2
        assert done.stderr.strip().endswith(f"pip install 'embinit[{extra}]'")
