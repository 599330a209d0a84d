"""The oldest transformers that pyproject.toml allows: the tests on its models pass with it."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from own_environment import environment

from benchmarks import environments

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
#: The oldest version of each library that is allowed, and that can be installed with the oldest transformers.
OLDEST = ["transformers==4.57.1", "huggingface_hub==0.34.0", "tokenizers==0.22.0", "accelerate==1.3.0"]
OTHERS = ["sentencepiece", "safetensors", "typer", "rich", "pytest"]
#: What touches transformers or the hub's library.
TESTS = [
    "tests/export/test_apply_models.py",
    "tests/export/test_apply_sources.py",
    "tests/export/test_initialize.py",
    "tests/export/test_rates.py",
    "tests/extending",
    "tests/test_hosts.py",
    "tests/test_python_interface.py",
]


def test_the_tested_versions_are_the_oldest_that_are_allowed() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    allowed = {
        line.partition(">=")[0]: line.partition(">=")[2].partition(",")[0] for line in extras["train"] + extras["hf"]
    }
    for pinned in OLDEST:
        name, _, version = pinned.partition("==")
        assert version.removesuffix(".0") == allowed[name].removesuffix(".0")


def test_the_tests_on_models_pass_with_the_oldest_transformers() -> None:
    python = environment("transformers-4", environments.TORCH, [*OLDEST, *OTHERS])
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1"}
    tests = [str(ROOT / test) for test in TESTS]
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", *tests],
        cwd=ROOT, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout.splitlines()[-1]
