"""Runs the blocks of a page of the documentation in the working folder, or the first of them: python pages.py PAGE [COUNT]."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of each block, from top to bottom."""
    return re.findall(r"^```(python|sh)\n(.*?)^```$", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)


def modules(text: str) -> set[str]:
    """The modules that a block of Python imports."""
    return set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE))


def block(number: int, kind: str, text: str, names: dict[str, object]) -> None:
    """Runs a block of Python in this process, among these names, or commands in a shell."""
    if kind == "python":
        exec(compile(text, f"block {number}", "exec"), names)
        return
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"block {number}: {text}\n{done.stdout}\n{done.stderr}"


def run(page: str, given: Mapping[str, object] | None = None, without: Collection[str] = (), count: int | None = None) -> None:
    """Runs the first ``count`` blocks of a page, or all, one after the other.

    ``given`` are names that the page leaves to the reader. Blocks that import a module of
    ``without`` are left out.
    """
    found = blocks(page)[:count]
    assert found, f"{page}.md has no blocks"
    names = dict(given or {})
    for number, (kind, text) in enumerate(found):
        if not (kind == "python" and modules(text) & set(without)):
            block(number, kind, text, names)


if __name__ == "__main__":
    run(sys.argv[1], count=int(sys.argv[2]) if sys.argv[2:] else None)
