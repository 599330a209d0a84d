"""The documents: links lead somewhere, the site has every page, and examples in docstrings come out as written."""

from __future__ import annotations

import doctest
import importlib
import re
import sys
from pathlib import Path

import pytest
import typer

from embinit.cli import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
#: Pages that `make docs` writes from the code (tools/reference_pages.py) and from notebooks (tools/site_pages.py).
GENERATED = {
    *("reference/cli.md", "reference/recipes.md", "reference/experiment-file.md"),
    *(path.relative_to(ROOT / "docs").with_suffix(".md").as_posix() for path in ROOT.glob("docs/**/*.ipynb")),
}
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as sites and forges make them."""
    lines = _CODE.sub(lambda code: code[0].strip("`"), page.read_text("utf-8")).splitlines()
    titles = [line.lstrip("#").strip().lower() for line in lines if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = _LINK.findall(_CODE.sub("", page.read_text("utf-8")))
    for target, _, anchor in (link.partition("#") for link in links if "://" not in link):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{page.name} names {target}, which is not there"
        assert not anchor or anchor in headings(there), f"{page.name} names #{anchor} of {there.name}"


def test_no_page_has_a_conflict_marker_of_git() -> None:
    marked = [page.name for page in PAGES if re.search(r"^(<{7}|>{7}) ", page.read_text("utf-8"), re.MULTILINE)]
    assert marked == []


def test_the_readme_is_short_and_shows_its_figure() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) < 120
    assert re.findall(r"!\[[^\]]+\]\((\S+)\)", text) == ["results/figures/scale-1-sweep.svg"]


def test_there_are_links_to_follow() -> None:
    assert sum(len(_LINK.findall(page.read_text("utf-8"))) for page in PAGES) > 50


def test_the_site_has_every_page() -> None:
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    outside = {"CHANGELOG.md"}
    expected = {
        page.relative_to(ROOT).as_posix().removeprefix("docs/") for page in PAGES if "decisions" not in page.parts
    }
    pages = {"index.md" if name == "README.md" else name for name in expected - outside}
    assert listed == pages | GENERATED


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as `make docs` lays them out, without those that are generated."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import site_pages
    finally:
        sys.path.pop(0)
    site_pages.lay_out(folder)
    return folder


def test_links_and_figures_of_the_site_lead_somewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.md"))
    links = [(page, link) for page in pages for link in _LINK.findall(_CODE.sub("", page.read_text("utf-8")))]
    targets = [(page, link.partition("#")[0]) for page, link in links if "://" not in link and not link.startswith("#")]
    assert len(targets) > 100
    generated = {(site / name).resolve() for name in GENERATED}
    leads = [(page.name, link, (page.parent / link).resolve()) for page, link in targets]
    assert [(name, link) for name, link, path in leads if not path.exists() and path not in generated] == []
    assert "](explanation/findings.md" in (site / "index.md").read_text("utf-8")


def test_a_link_to_a_file_that_the_site_lacks_becomes_its_label(site: Path) -> None:
    import site_pages

    text = "See [the demo](../../experiments/demo.toml), [findings](../explanation/findings.md#x) and `[a](b.md)`."
    paths = {"docs/how-to/a.md": "how-to/a.md", "docs/explanation/findings.md": "explanation/findings.md"}
    relinked = site_pages.relink(text, "docs/how-to/a.md", paths)
    assert relinked == "See the demo, [findings](../explanation/findings.md#x) and `[a](b.md)`."


def test_the_reference_of_the_command_line_has_every_command_and_option(tmp_path: Path) -> None:
    import subprocess

    subprocess.run([sys.executable, ROOT / "tools" / "reference_pages.py", tmp_path], check=True)
    page = (tmp_path / "cli.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert set(commands) == set(sections)
    for name, command in commands.items():
        missing = [option for item in command.params for option in item.opts if f"`{option}`" not in sections[name]]
        assert [option for option in missing if option.startswith("--") and option != "--help"] == []
    assert "| `pretrained_xavier` | `pretrained | center | scale to=xavier` |" in (tmp_path / "recipes.md").read_text(
        "utf-8"
    )


SOURCES = ROOT / "src"
_EXAMPLE = re.compile(r"^ +>>> (?!.*\+SKIP)", re.MULTILINE)
WITH_EXAMPLES = sorted(path for path in SOURCES.rglob("*.py") if _EXAMPLE.search(path.read_text("utf-8")))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_examples_in_docstrings_come_out_as_written(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(SOURCES).with_suffix("").parts))
    found = doctest.testmod(module)
    assert found.failed == 0
    assert found.attempted > 0


def test_bounds_of_intervals_keep_their_sign_near_zero() -> None:
    """Rules turn on the sign of a bound, so that a bound of 0.0 gets more digits."""
    intervals = [
        one for page in PAGES for one in re.findall(r"\[[+−]?\d+\.\d+, [+−]?\d+\.\d+\]", page.read_text("utf-8"))
    ]
    assert len(intervals) > 50
    assert not [one for one in intervals if re.search(r"[\[ ][+−]?0\.0+[,\]]", one)]


def test_the_comments_of_fields_are_on_the_site() -> None:
    griffe = pytest.importorskip("griffe")
    extensions = griffe.load_extensions(str(ROOT / "tools" / "docstrings.py"))
    matching = griffe.load("embinit.alignment", search_paths=[SOURCES], extensions=extensions)["Matching"]
    sections = griffe.parse_numpy(matching.docstring)
    fields = {
        field.name: field for section in sections if section.kind.value == "attributes" for field in section.value
    }
    assert set(fields) == set(matching.attributes)
    assert "The" in fields["case"].description
