"""Run the cells of a notebook without Jupyter and store their outputs: `python tools/run_notebook.py NOTEBOOK.ipynb`.

The output of a cell is its printed text and the value of its last line. The cells run in an empty folder.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def run_cells(notebook: dict[str, Any]) -> dict[str, Any]:
    """Run the code cells of a notebook, and return it with their outputs; an error in a cell is raised."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            outputs = _run("".join(cell["source"]), f"<cell {count}>", names)
            cell = {**cell, "execution_count": count, "outputs": outputs}
        cells.append(cell)
    return {**notebook, "cells": cells}


def _run(source: str, place: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    statements = ast.parse(source, place).body
    last = statements.pop() if statements and isinstance(statements[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(statements, []), place, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), place, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        content = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            content["text/html"] = _lines(value._repr_html_())
        outputs.append({"output_type": "display_data", "data": content, "metadata": {}})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main(path: Path) -> None:
    """Run a notebook in an empty folder and write the outputs into its file."""
    notebook = json.loads(path.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        before = Path.cwd()
        os.chdir(folder)
        try:
            executed = run_cells(notebook)
        finally:
            os.chdir(before)
    path.write_text(json.dumps(executed, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
