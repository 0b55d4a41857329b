"""Runs pages of the documentation as they stand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pages
import pytest

PAGES = {"tutorial": "both.html", "determinism": "runs/two/report.html", "failures": "runs/killed/report.html", "memory": "runs/little/report.html",
         "new-nodes": "new/predictions", "models": "hops.npy", "papers100m": "runs/papers/report.html"}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the blocks from top to bottom, in an empty folder."""
    for name in {name for kind, text in pages.blocks(page) if kind == "python" for name in re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)}:
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(os.environ["NDLS_BINARY"]).parent), prepend=os.pathsep)
    pages.run(page)
    assert (tmp_path / PAGES[page]).exists()
