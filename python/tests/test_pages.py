"""Runs pages of the documentation as they stand."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pytest
from conftest import TOPICS, Arrays

import ndls

PAGES = {
    "tutorial": "both.html",
    "determinism": "runs/two/report.html",
    "cluster": "runs/killed/report.html",
    "memory": "runs/papers/report.html",
    "new-nodes": "new/predictions",
    "models": "hops.npy",
    "options": "searches/first/tune.json",
}
# Blocks that import these are left out where they are missing: nothing after them needs what they do.
OPTIONAL = {"memory": ["torch"]}


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the blocks from top to bottom, in an empty folder."""
    without = [name for name in OPTIONAL.get(page, []) if importlib.util.find_spec(name) is None]
    for name in {name for kind, text in pages.blocks(page) if kind == "python" for name in pages.modules(text)}.difference(without):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(os.environ["NDLS_BINARY"]).parent), prepend=os.pathsep)
    pages.run(page, without=without)
    assert (tmp_path / PAGES[page]).exists()


class Model:
    """The reader's model on python.md: it tells classes by the first columns of rows."""

    def __call__(self, x: Any) -> Any:
        return x[:, :TOPICS]

    def partial_fit(self, x: Any, y: Any) -> None:
        assert len(x) == len(y)

    def predict_proba(self, x: Any) -> Any:
        e = np.exp(x[:, :TOPICS])
        return e / e.sum(1, keepdims=True)


def test_python(arrays: Arrays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the blocks of python.md. Arrays and the model are the reader's there."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", arrays.features)
    given = {"src": arrays.src, "dst": arrays.dst, "y": arrays.labels, "model": Model()}
    given |= {name: np.flatnonzero(arrays.splits[:, 0] == code) for code, name in enumerate(["train", "valid", "test"], 1)}
    pages.run("python", given, without=[name for name in ("torch",) if importlib.util.find_spec(name) is None])
    assert ndls.open("runs/mine-labels").state == "COMPLETE"
