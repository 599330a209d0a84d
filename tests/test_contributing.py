"""The worked examples of CONTRIBUTING.md: each change applies to the package, and its check passes with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
#: title -> the change and the check of a worked example
EXAMPLES = {
    title: (change, check)
    for title, change, check in re.findall(
        r"^### (Add [^\n]+)\n(?:(?!^###).)*?^```diff\n(.*?)^```$(?:(?!^###).)*?^```python\n(.*?)^```$",
        PAGE,
        re.DOTALL | re.MULTILINE,
    )
}


def apply(change: str, root: Path) -> None:
    """Apply a change to the files below `root`; each hunk must fit one place of its file."""
    for part in re.split(r"^--- \S+\n", change, flags=re.MULTILINE)[1:]:
        name, *hunks = re.split(r"^@@\n", part, flags=re.MULTILINE)
        path = root / name.strip().removeprefix("+++ b/")
        text = path.read_text("utf-8") if path.exists() else ""
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            old = "".join(line[1:] or "\n" for line in lines if not line.startswith("+"))
            new = "".join(line[1:] or "\n" for line in lines if not line.startswith("-"))
            assert text.count(old) == 1 or not text, f"{name.strip()}: a hunk fits {text.count(old)} places:\n{old}"
            text = text.replace(old, new) if text else new
        path.write_text(text, "utf-8")


def test_there_are_four_worked_examples() -> None:
    assert list(EXAMPLES) == ["Add a data set", "Add a recipe step", "Add a position encoding", "Add a source"]


@pytest.mark.parametrize("title", EXAMPLES)
def test_the_change_applies_and_its_check_passes(title: str, tmp_path: Path) -> None:
    change, check = EXAMPLES[title]
    package = tmp_path / "src" / "embinit"
    shutil.copytree(ROOT / "src" / "embinit", package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}

    def done() -> subprocess.CompletedProcess[str]:
        folder = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        command = [sys.executable, "-c", check]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    assert done().returncode != 0, "the check passes without the change"
    apply(change, tmp_path)
    after = done()
    assert after.returncode == 0, after.stderr
