"""Graphs and results of an engine's DataFrames, in folders of Parquet files that the engine and all nodes see."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._command import Error, command
from ._graph import Graph, table_uri
from ._run import Run

# PARTS is the number of files of a result by default, which an engine reads side by side.
PARTS = 8


def graph(folder: str | os.PathLike[str], edges: Any, nodes: Any, write: Callable[[Any, str], object], columns: dict[str, Any]) -> Graph:
    """Writes DataFrames of edges and nodes below a folder, each by write, and returns the graph.

    Raises:
        FileExistsError: The folder has edges or nodes already.
    """
    place = shared(folder)
    paths = [place / name if frame is not None else None for name, frame in (("edges", edges), ("nodes", nodes))]
    uri = table_uri(str(paths[0]), None if paths[1] is None else str(paths[1]), **columns)  # refuses a wrong option before anything is written
    for path in paths:
        if path is not None and path.exists():
            raise FileExistsError(f"{path} is there: give another folder, or remove it")
    for path, frame in zip(paths, (edges, nodes), strict=True):
        if path is not None:
            write(frame, str(path))
    return Graph(uri, place, None)


def shared(folder: str | os.PathLike[str]) -> Path:
    """Returns a folder by the name that all nodes know.

    Raises:
        ValueError: It is in an object store.
    """
    name = os.fspath(folder)
    if "://" in name:
        raise ValueError(
            f"{name} is in an object store, and a folder that all nodes see is needed. "
            "Where the engine has written tables to S3, give their URI: table:s3://bucket/edges?nodes=s3://bucket/nodes&id=…"
        )
    return Path(os.path.abspath(name))


def export(run: Run | str | os.PathLike[str], what: str, folder: str | os.PathLike[str], parts: int, options: dict[str, object]) -> str:
    """Writes an artifact of a run as Parquet files, and returns their folder, which appears when it is complete."""
    if parts < 1:
        raise Error(f"parts={parts}: give 1 or more", 2)
    out = shared(folder) / what
    if out.exists():
        raise FileExistsError(f"{out} is there: give another folder, or remove it")
    path = run.path if isinstance(run, Run) else os.fspath(run)
    out.parent.mkdir(parents=True, exist_ok=True)
    # The folder appears when it is complete.
    with tempfile.TemporaryDirectory(prefix=f".{what}-", dir=out.parent) as begun:
        files = Path(begun, "files")
        files.mkdir()
        for part in range(1, parts + 1):
            file = files / f"part-{part:05d}.parquet"
            command("export", progress=False, run=path, what=what, out=file, format="parquet", part=f"{part}/{parts}", **options)
        files.rename(out)
    return str(out)
