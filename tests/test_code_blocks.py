"""Code blocks of the documentation run as they are written, or say visibly why the tests do not run them.

A page is a session: its blocks run in order in one folder, which holds what a reader has (`workshop`), and its Python blocks
share their names. A block that cannot run here begins with the comment `# not run by the tests: REASON`. Its commands and
options are still checked against the real command line.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import embinit
from embinit.cli import app
from embinit.corpora import generated

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    if "decisions" not in page.parts
)
NOT_RUN = re.compile(r"# not run by the tests: \S+ \S+")
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"\s+# .*$|^# .*$")
#: Variables that a command is given: `NAME=value command`.
_ASSIGNMENTS = re.compile(r"^(?:[A-Z_]+=\S+ )+")
#: Languages of blocks that hold nothing to run: drawings, printed text, other programs' files.
_PLAIN = ("", "text", "json", "csv", "html", "diff")
_KNOWN = ("bash", "console", "python", "toml", *_PLAIN)
#: Programs besides embinit that a page may name; they are not run.
_OTHERS = (
    "pip",
    "make",
    "git",
    "cd",
    "mkdir",
    "export",
    "ray",
    "chmod",
    "cut",
    "python3",
    "python",
    "uv",
    "jupyter",
    "ls",
    "head",
)


@dataclass(frozen=True)
class CodeBlock:
    page: Path
    line: int
    language: str
    text: str

    @property
    def is_run(self) -> bool:
        return not NOT_RUN.match(self.text.lstrip())

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> Iterator[CodeBlock]:
    text = page.read_text("utf-8")
    for match in _FENCE.finditer(text):
        yield CodeBlock(page, text[: match.start()].count("\n") + 1, match[1], match[2])


def commands_of(block: CodeBlock) -> list[list[str]]:
    """Return the commands of a shell block as words; of a console block only the lines after a prompt."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    bare = [_COMMENT.sub("", line).strip() for line in lines]
    plain = [_ASSIGNMENTS.sub("", command) for line in bare if line for command in line.split(" && ")]
    return [shlex.split(command) for command in plain]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
SHELL = [block for block in BLOCKS if block.language in ("bash", "console")]


def known_commands() -> dict[str, Any]:
    """Return the commands of embinit by name."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_there_are_blocks_of_each_kind() -> None:
    assert {"bash", "python", "toml"} <= {block.language for block in BLOCKS}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_blocks_name_their_language(block: CodeBlock) -> None:
    assert block.language in _KNOWN
    if block.language == "":
        assert not re.search(r"^(\$ )?(embinit|pip|python) ", block.text, re.MULTILINE), "this is a shell block"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_opens_with_code(page: Path) -> None:
    first = next(blocks_of(page))
    opening = page.read_text("utf-8").splitlines()[: first.line]
    assert first.language in ("bash", "python")
    assert not [line for line in opening if line.startswith("## ")]


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.place)
def test_commands_exist_and_take_their_options(block: CodeBlock) -> None:
    commands = commands_of(block)
    assert commands, "a shell block without a command"
    for words in commands:
        if words[0] != "embinit":
            assert words[0] in _OTHERS, f"unknown program {words[0]!r}"
            continue
        check(words[1:])


def check(arguments: list[str]) -> None:
    """Raise an error for a command, an option or a value that does not exist."""
    if not arguments or arguments[0].startswith("-"):
        return
    command = known_commands().get(arguments[0])
    assert command is not None, f"there is no command {arguments[0]!r}"
    context = command.context_class(command, info_name=arguments[0])
    given, _, _ = command.make_parser(context).parse_args([word for word in arguments[1:] if word != "…"])
    for parameter in command.params:
        if parameter.param_type_name == "option" and parameter.name in given:
            parameter.process_value(context, given[parameter.name])


def test_an_option_that_does_not_exist_is_noticed() -> None:
    with pytest.raises(Exception, match="--sped"):
        check(["run", "FILE", "--sped"])
    with pytest.raises(typer.BadParameter):
        check(["run", "FILE", "--seeds", "three"])


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "toml"], ids=lambda block: block.place)
def test_toml_is_toml_and_experiments_are_experiments(block: CodeBlock, tmp_path: Path) -> None:
    content = tomllib.loads(block.text)
    assert content
    if "block" in content and block.is_run:
        from embinit.experiments.inputs.outline import read_experiment

        (tmp_path / "page.toml").write_text(block.text, "utf-8")
        assert read_experiment(tmp_path / "page.toml").blocks


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that a reader has: what `embinit demo` writes, a parallel text, vectors for it, a model, new words."""
    folder = tmp_path_factory.mktemp("workshop")
    result = CliRunner().invoke(app, ["demo", "--short", "--out", str(folder / "embinit-demo")])
    assert result.exit_code == 0, result.output
    pairs = generated.captions(400, 0, None).splits["train"].texts
    for language, lines in zip(("de", "en"), pairs, strict=True):
        (folder / f"train.{language}").write_text("\n".join(lines) + "\n", "utf-8")
    vectors = (folder / "embinit-demo" / "vectors.txt").read_text("utf-8")
    words = sorted({word for lines in pairs for line in lines for word in re.findall(r"\w+|[.,]", line)})
    rows = 0.4 * np.random.default_rng(0).standard_normal((len(words), len(vectors.partition("\n")[0].split()) - 1))
    added = [f"{word} {' '.join(f'{value:.4f}' for value in row)}\n" for word, row in zip(words, rows, strict=True)]
    (folder / "glove.txt").write_text(vectors + "".join(added), "utf-8")
    (folder / "words.txt").write_text("snowmobile\nskateboarder\n", "utf-8")
    scores = [
        f"{start},{seed},{30 + seed + lead}"
        for start, lead in (("random", 0), ("standardized", 1))
        for seed in (1, 2, 3)
    ]
    (folder / "scores.csv").write_text("\n".join(["start,seed,score", *scores]) + "\n", "utf-8")
    for part in (bert(folder), wordpiece(folder)):
        part.save_pretrained(folder / "my-model")
    return folder


def bert(folder: Path) -> Any:
    """Return a small model whose tokens are those of the demo's vocabulary."""
    import transformers

    rows = len((folder / "embinit-demo" / "vocabulary.txt").read_text("utf-8").split())
    config = transformers.BertConfig(
        vocab_size=rows,
        hidden_size=100,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        pad_token_id=1,
    )
    return transformers.BertModel(config)


def wordpiece(folder: Path) -> Any:
    """Return the tokenizer of `bert`."""
    import tokenizers
    import transformers

    words = (folder / "embinit-demo" / "vocabulary.txt").read_text("utf-8").split()
    model = tokenizers.models.WordPiece({word: row for row, word in enumerate(words)}, unk_token="<unk>")
    backend = tokenizers.Tokenizer(model)
    backend.normalizer = tokenizers.normalizers.BertNormalizer()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>")


@pytest.fixture
def workshop(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import shutil

    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def names_of(workshop: Path) -> dict[str, Any]:
    """Return what a page's Python may name without making it: the package, torch, a model, aligned vectors."""
    import torch

    tokens = (workshop / "embinit-demo" / "vocabulary.txt").read_text("utf-8").split()
    aligned = embinit.align(workshop / "embinit-demo" / "vectors.txt", tokens)
    names = {"embinit": embinit, "np": np, "torch": torch, "Path": Path, "aligned": aligned}
    return {**names, "model": bert(workshop), "tokenizer": wordpiece(workshop)}


#: Its Python blocks check changes of the package, and tests/test_contributing.py runs them.
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
RUN = [
    page
    for page in PAGES
    if page != CONTRIBUTING and any(b.is_run and b.language in ("bash", "python") for b in blocks_of(page))
]


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run_as_written(page: Path, workshop: Path) -> None:
    names: dict[str, Any] = {}
    for block in blocks_of(page):
        if not block.is_run or block.language not in ("bash", "python"):
            continue
        if block.language == "python":
            names = names or names_of(workshop)
            exec(compile(block.text, block.place, "exec"), names)
            continue
        for words in commands_of(block):
            assert words[0] == "embinit", f"{block.place}: {words[0]} is not run by the tests; say so"
            result = CliRunner().invoke(app, words[1:])
            assert result.exit_code == 0, f"{block.place}: {shlex.join(words)}\n{result.output}\n{result.exception!r}"
