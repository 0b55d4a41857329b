"""Runs pages of the documentation as they stand."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"tutorial": "both.html", "determinism": "runs/two/report.html", "failures": "runs/killed/report.html", "memory": "runs/little/report.html",
         "new-nodes": "new/predictions", "models": "hops.npy", "papers100m": "runs/papers/report.html"}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the blocks from top to bottom, in an empty folder: Python in one process, commands in a shell each."""
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```$", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    for name in {name for kind, text in blocks if kind == "python" for name in re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)}:
        pytest.importorskip(name)
    assert blocks
    monkeypatch.chdir(tmp_path)
    folder = str(Path(os.environ["NDLS_BINARY"]).parent)
    environment = {**os.environ, "PATH": folder + os.pathsep + os.environ["PATH"]}
    names: dict[str, object] = {}
    for number, (kind, text) in enumerate(blocks):
        if kind == "python":
            exec(compile(text, f"block {number} of {page}", "exec"), names)
            continue
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"block {number}: {text}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / PAGES[page]).exists()
