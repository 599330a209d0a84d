"""Rooms import in one direction, and importing is free."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import embinit

ROOT = Path(embinit.__file__).parent

# A room may import rooms of earlier groups, not of its own group and not of later ones (docs/decisions/0001).
GROUPS = (
    ("errors",),
    ("types", "seeds", "files", "hub"),
    ("text", "positions"),
    ("sources", "corpora"),
    ("hosts",),
    ("alignment",),
    ("recipes",),
    ("diagnosis",),
    ("export", "prepared"),
    ("models",),
    ("training",),
    ("statistics",),
    ("experiments",),
    ("reports",),
    ("cli",),
)
RANK = {room: rank for rank, group in enumerate(GROUPS) for room in group}


def imports() -> Iterator[tuple[Path, str, str]]:
    for path in sorted(ROOT.rglob("*.py")):
        inside = path.relative_to(ROOT)
        room = inside.parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                parts = module.split(".")
                if parts[0] == "embinit" and len(parts) > 1:
                    yield inside, room, parts[1]


def test_rooms_import_in_one_direction() -> None:
    found = list(imports())
    assert len(found) > 50
    wrong = [
        f"{path} imports embinit.{other}"
        for path, room, other in found
        if room != other and not RANK[other] < RANK[room]
    ]
    assert not wrong


def test_every_room_has_a_place_in_the_order() -> None:
    rooms = {path.stem if path.is_file() else path.name for path in ROOT.iterdir() if path.suffix in ("", ".py")}
    assert rooms - {"__init__", "__main__", "__pycache__"} <= RANK.keys()


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_and_its_command_line_brings_in_nothing_heavy() -> None:
    heavy = (
        "numpy torch spacy transformers tokenizers huggingface_hub matplotlib gensim pandas scipy numba rich.console"
    )
    printed = run(f"import sys, embinit, embinit.cli; print([m for m in {heavy.split()!r} if m in sys.modules])")
    assert printed.strip() == "[]"


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "spacy", "matplotlib", "tokenizers", "huggingface_hub"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def test_loading_recipes_diagnosis_and_export_work_without_any_extra(glove_file: Path) -> None:
    out = glove_file.with_name("out.safetensors")
    printed = run(
        BLOCKED
        + f"""
import embinit
aligned = embinit.align({str(glove_file)!r}, ["<pad>", "w1", "w2", *("w%d" % i for i in range(10, 99))])
matrix = embinit.recipe("pretrained_xavier")(aligned, embinit.stream(0, "matrix"))
from pathlib import Path
embinit.write(matrix, aligned.vocabulary, Path({str(out)!r}))
print(embinit.diagnose(aligned).verdict.advice, embinit.load({str(out)!r}).vectors.shape)
"""
    )
    assert printed.split() == ["standardize", "(92,", "24)"]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("from embinit.text.tokenizers import tokenizer; tokenizer('spacy:en')", "pip install 'embinit[spacy]'"),
        ("import embinit; embinit.load('org/model')", "pip install 'embinit[hf]'"),
        (
            "import embinit; from pathlib import Path; embinit.apply(None, Path('a'), Path('b'))",
            "pip install 'embinit[train]'",
        ),
    ],
)
def test_a_missing_extra_is_one_sentence_with_the_line_that_installs_it(code: str, line: str) -> None:
    printed = run(
        f"{BLOCKED}\nfrom embinit.errors import EmbinitError\ntry:\n    {code}\nexcept EmbinitError as e: print(e)"
    )
    assert printed.strip().endswith(line)
    assert printed.count("\n") == 1


def test_help_imports_no_heavy_library_and_few_modules_of_ours() -> None:
    printed = run(
        "import atexit, runpy, sys\n"
        "atexit.register(lambda: print('MODULES', *sys.modules))\n"
        "sys.argv = ['embinit', '--help']\n"
        "runpy.run_module('embinit', run_name='__main__')"
    )
    help_text, _, modules = printed.partition("MODULES ")
    loaded = modules.split()
    assert "inspect" in help_text
    assert not {"numpy", "torch", "pydantic", "spacy", "transformers"} & set(loaded)
    assert len([name for name in loaded if name.partition(".")[0] == "embinit"]) < 40
