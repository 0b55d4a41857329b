"""Graphs and results of an engine's DataFrames, in folders of Parquet files that the engine and all nodes see."""

from __future__ import annotations

import os
import shutil
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
    paths = [f"{place}/{name}" if frame is not None else None for name, frame in (("edges", edges), ("nodes", nodes))]
    uri = table_uri(str(paths[0]), paths[1], **columns)  # a wrong column is an error before anything is written
    for path, frame in zip(paths, (edges, nodes), strict=True):
        if path is not None:
            if not place.startswith("s3://") and os.path.exists(path):
                raise FileExistsError(f"{path} is there: give another folder, or remove it")
            write(frame, path)
    return Graph(uri, Path(place), None)


def shared(folder: str | os.PathLike[str]) -> str:
    """Returns a folder by the name that all nodes know."""
    name = os.fspath(folder)
    return name.rstrip("/") if "://" in name else os.path.abspath(name)


def export(run: Run | str | os.PathLike[str], what: str, folder: str | os.PathLike[str], parts: int, options: dict[str, object]) -> str:
    """Writes an artifact of a run as Parquet files, and returns their folder, which appears when it is complete."""
    if parts < 1:
        raise Error(f"parts={parts}: give 1 or more", 2)
    out = Path(shared(folder)) / what
    if out.exists():
        raise FileExistsError(f"{out} is there: give another folder, or remove it")
    begun = out.with_name(f".{what}-begun")
    shutil.rmtree(begun, ignore_errors=True)
    begun.mkdir(parents=True)
    path = run.path if isinstance(run, Run) else os.fspath(run)
    for part in range(1, parts + 1):
        file = begun / f"part-{part:05d}.parquet"
        command("export", progress=False, run=path, what=what, out=file, format="parquet", part=f"{part}/{parts}", **options)
    begun.rename(out)
    return str(out)
