"""Runs docs/tutorial.md as it stands."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"


def test_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the blocks from top to bottom, in an empty folder: Python in one process, commands in a shell each."""
    pytest.importorskip("pandas")
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```$", TUTORIAL.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 7
    monkeypatch.chdir(tmp_path)
    folder = str(Path(os.environ["NDLS_BINARY"]).parent)
    environment = {**os.environ, "PATH": folder + os.pathsep + os.environ["PATH"]}
    names: dict[str, object] = {}
    for number, (kind, text) in enumerate(blocks):
        if kind == "python":
            exec(compile(text, f"block {number} of {TUTORIAL}", "exec"), names)
            continue
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"block {number}: {text}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "both.html").read_text().startswith("<!doctype html>")
