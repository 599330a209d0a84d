"""Lay out the pages of the documentation site in a folder: `python tools/site_pages.py build/pages`.

README becomes the front page. RESULTS.md, its pages and figures, and the other documents of the root folder go beside the
pages of docs/. Links are adapted. A link to a file outside the site becomes plain text. A notebook becomes a page.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: A code block, a link or an image, or inline code, whichever begins first.
_CODE_OR_LINK = re.compile(
    r"^```.*?^```$|(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)|`[^`\n]*`", re.DOTALL | re.MULTILINE
)
_SUFFIXES = (".md", ".ipynb", ".svg", ".png", ".css", ".js")


def site_paths() -> dict[str, str]:
    """Return file of the repository -> path on the site, for all files of the site."""
    files = [
        *sorted(ROOT.glob("*.md")),
        *(path for name in ("docs", "results") for path in sorted((ROOT / name).rglob("*"))),
    ]
    names = [path.relative_to(ROOT).as_posix() for path in files if path.suffix in _SUFFIXES]
    paths = {name: re.sub(r"\.ipynb$", ".md", name.removeprefix("docs/")) for name in names}
    return paths | {"README.md": "index.md"}


def notebook_page(notebook: Path) -> str:
    """Return a notebook as Markdown: its text, its code and the outputs."""
    parts = []
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
        parts += [_output_text(output) for output in cell.get("outputs", [])]
    return "\n\n".join(parts) + "\n"


def _output_text(output: dict[str, Any]) -> str:
    """Return the output of a cell as HTML if it has any, otherwise as text."""
    data = output.get("data", {})
    if "text/html" in data:  # a blank line would end the HTML
        return "\n".join(line for line in "".join(data["text/html"]).splitlines() if line.strip())
    return f"```text\n{''.join(output.get('text') or data['text/plain']).rstrip()}\n```"


def relink(text: str, page: str, paths: dict[str, str]) -> str:
    """Return the text of a page with links for the site; code blocks stay unchanged."""
    source_folder, site_folder = Path(page).parent, Path(paths[page]).parent

    def relink_match(match: re.Match[str]) -> str:
        if match[0].startswith("`") and not match[0].startswith("```"):
            return match[0].replace("\\|", "|")  # tables on GitHub need the backslash, but the site prints it
        image, label, link = match.groups()
        target, hash_sign, anchor = (link or "").partition("#")
        if not target or ":" in target:
            return match[0]
        name = os.path.normpath(source_folder / target)
        if name not in paths:
            return label
        return f"{image}[{label}]({os.path.relpath(paths[name], site_folder)}{hash_sign}{anchor})"

    return _CODE_OR_LINK.sub(relink_match, text)


def lay_out(folder: Path) -> None:
    """Empty a folder, and write all pages and figures into it."""
    shutil.rmtree(folder, ignore_errors=True)
    paths = site_paths()
    for name, target in paths.items():
        source, page = ROOT / name, folder / target
        page.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix != ".md":
            shutil.copyfile(source, page)
            continue
        text = notebook_page(source) if source.suffix == ".ipynb" else source.read_text("utf-8")
        page.write_text(relink(text, name, paths), "utf-8")


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
