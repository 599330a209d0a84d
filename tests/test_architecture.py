"""Rooms import in one direction, and importing is free."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import embinit

ROOT = Path(embinit.__file__).parent
RESEARCH = Path(__file__).parents[1] / "research"

# A room may import rooms of earlier groups, not of its own group and not of later ones (docs/decisions/0001).
# Modules of one room import each other freely. `a.b` names a sub-room or a module that has a place of its own.
GROUPS = (
    ("errors", "moved"),
    ("records", "format"),
    ("html",),
    ("display",),
    ("types", "seeds", "files", "hub"),
    ("text", "positions"),
    ("sources", "corpora", "glove"),
    ("hosts",),
    ("alignment",),
    ("recipes",),
    ("diagnosis",),
    ("export", "prepared"),
    ("extending",),
    ("models.architecture", "models.dropout", "models.packing"),
    ("models.kernels",),
    ("models",),
    ("training",),
    ("statistics",),
    ("experiments.spec",),
    ("experiments.experiment",),
    ("experiments.definition",),
    ("experiments.inputs",),
    ("experiments.spec_reader",),
    ("experiments.jobs",),
    ("experiments.runs",),
    ("experiments.execution",),
    ("experiments.execution.ray",),
    ("experiments.plan", "experiments.execute"),
    ("experiments.starter_file",),
    ("experiments.measured", "experiments.starter"),
    ("experiments.status", "experiments.clean", "experiments.measurements", "experiments.conversion"),
    ("reports.scores",),
    ("reports.verdicts",),
    ("reports.model",),
    ("reports.metrics",),
    ("reports.sentences",),
    ("reports.analysis",),
    ("reports.legend", "reports.summarize"),
    ("reports.results_file", "reports.scores_file"),
    ("reports.results_reader",),
    ("reports.writers",),
    ("reports.writers.html",),
    ("cli",),
)
RANK = {room: rank for rank, group in enumerate(GROUPS) for room in group}
#: The command line has one file a command.
LARGEST, UNLIMITED = 14, "cli"


def room_of(parts: Sequence[str]) -> str | None:
    """Return the innermost room that a module belongs to."""
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in RANK), None)


def imports() -> Iterator[tuple[Path, list[str], list[str]]]:
    for path in sorted(ROOT.rglob("*.py")):
        inside = path.relative_to(ROOT)
        parts = list(inside.with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        if parts in ([], ["__main__"]):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                # `from a.b import c` may name the module a.b.c, or a thing inside of a.b.
                modules = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                names = module.split(".")
                if names[0] == "embinit" and len(names) > 1 and names[1] != "__version__":
                    yield inside, parts, names[1:]


def test_rooms_import_in_one_direction() -> None:
    found = list(imports())
    assert len(found) > 500
    wrong = []
    for path, parts, names in found:
        room, other = room_of(parts), room_of(names)
        assert room is not None, f"{path} has no place in the order"
        assert other is not None, f"{path} imports embinit.{'.'.join(names)}, which has no place in the order"
        if room != other and not RANK[other] < RANK[room]:
            wrong.append(f"{path} ({room}) imports embinit.{'.'.join(names)}")
    assert not wrong, "\n".join(wrong)


def test_every_room_of_the_order_exists() -> None:
    places = [ROOT.joinpath(*room.split(".")) for room in RANK]
    assert not [place for place in places if not place.is_dir() and not place.with_suffix(".py").is_file()]


def test_no_folder_is_too_large_to_survey() -> None:
    folders = {path.parent for path in ROOT.rglob("*.py")} - {ROOT / UNLIMITED}
    assert len(folders) > 15
    sizes = {
        str(folder): len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) for folder in folders
    }
    assert not {folder: size for folder, size in sizes.items() if size > LARGEST}


def test_no_two_classes_share_a_name() -> None:
    names = [
        node.name
        for folder in (ROOT, RESEARCH)
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert len(names) > 200
    assert not {name for name in names if names.count(name) > 1}


def test_shipped_text_names_no_path_of_the_repository() -> None:
    """Users have the package, not the repository. `docs: PAGE` names a page of the documentation."""
    path_of_repository = re.compile(
        r"(?<![\w./])(benchmarks|docs|experiments|research|results|tests|tools)/[\w*]|RESULTS\.md"
    )
    shipped = [path for path in ROOT.rglob("*") if path.suffix in (".py", ".toml", ".js", ".css")]
    assert len(shipped) > 300
    named = [
        f"{path.relative_to(ROOT)}, line {number}: {line.strip()}"
        for path in shipped
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if path_of_repository.search(line)
    ]
    assert not named, "\n".join(named)


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


def test_only_the_definition_of_experiments_imports_pydantic() -> None:
    users = [
        path.relative_to(ROOT).parent.as_posix()
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
        if name.partition(".")[0] in ("pydantic", "pydantic_core")
    ]
    assert set(users) == {"experiments/definition"}


def test_specs_reports_and_the_execution_of_jobs_need_no_pydantic() -> None:
    """A GPU machine has torch, numpy, safetensors and sacreBLEU alone."""
    blocked = BLOCKED.replace('("torch",', '("pydantic", "pydantic_core", "torch",')
    assert blocked != BLOCKED
    modules = ("experiments.spec", "experiments.execute", "experiments.runs.store", "reports.results_file", "diagnosis")
    lines = [f"import embinit.{name}" for name in modules]
    assert run("\n".join([blocked, *lines, "print('imported')"])).strip() == "imported"


def test_inspecting_vectors_imports_no_experiments(glove_file: Path) -> None:
    """typer reads options with pydantic, so only the modules of embinit can be checked."""
    printed = run(
        "import atexit, runpy, sys\n"
        "atexit.register(lambda: print('MODULES', *sys.modules))\n"
        f"sys.argv = ['embinit', 'inspect', {str(glove_file)!r}]\n"
        "runpy.run_module('embinit', run_name='__main__')"
    )
    modules = printed.partition("MODULES ")[2].split()
    assert "embinit.diagnosis" in modules
    assert not [name for name in modules if name.startswith("embinit.experiments")]
