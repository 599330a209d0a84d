"""The package installed without extras in an empty environment: what it declares is what it needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def environment(folder: Path, *packages: object) -> Path:
    """Return the Python of a new environment with these packages."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", *packages]
    subprocess.run(install, check=True, cwd=folder)
    return python


def built(folder: Path) -> list[Path]:
    """Return the wheel and the source distribution, built from each other and checked by twine."""
    python = environment(folder / "build", "build", "twine")
    subprocess.run([python, "-m", "build", "-q", "--outdir", folder / "dist", ROOT], check=True)
    files = sorted((folder / "dist").iterdir())
    subprocess.run([python, "-m", "twine", "check", "--strict", *files], check=True)
    return files


@pytest.mark.long
def test_an_empty_environment_is_enough(tmp_path: Path, glove_file: Path) -> None:
    source, wheel = sorted(built(tmp_path), key=lambda path: path.suffix)
    assert (source.suffix, wheel.suffix) == (".gz", ".whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "embinit/experiments/demo.toml" in names
    assert not [name for name in names if name.startswith(("research", "tests", "benchmarks"))]
    python = environment(tmp_path / "venv", wheel)
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
    demo = run("demo")
    assert demo.returncode == 0
    assert "pip install 'embinit[train,spacy,glove]'" in demo.stdout
    for words, extra in (
        (("inspect", glove_file, "--text", glove_file, "--tokenizer", "spacy:en"), "spacy"),
        (("inspect", "org/name"), "hf"),
        (("inspect", glove_file, "--plot", "x.png"), "plot"),
        (("apply", "x.safetensors", tmp_path, "-o", "out"), "train"),
    ):
        done = run(*words)
        assert done.returncode == 2
        assert done.stderr.strip().endswith(f"pip install 'embinit[{extra}]'")
