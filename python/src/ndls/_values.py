"""What verbs of the program find, as values."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from ndls._command import execute
from ndls._graph import Graph
from ndls._run import Run

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ndls._options import InspectOptions, PlanOptions

Directory = str | os.PathLike[str] | Run


def _path(run: Directory) -> str:
    return str(run.path if isinstance(run, Run) else os.fspath(run))


def plan(graph: str | Graph | None = None, **options: Unpack[PlanOptions]) -> list[dict[str, Any]]:
    """Estimates what a run takes, without making one, as ``ndls plan`` does.

    Args:
        graph: A dataset URI or what ``from_arrays`` returns. Without it give ``nodes=``, ``edges=``, ``features=`` and
            ``classes=``.
        options: The flags of ``ndls plan``, such as ``memory="16GiB"``.

    Returns:
        A dict for each stage: its ``name``, ``seconds``, ``passes``, and in bytes ``peak_bytes`` and ``least_bytes`` of memory,
        ``disk_bytes`` that stay, ``peak_disk_bytes`` with temporary files, ``bytes_read`` and ``bytes_written``.

    Raises:
        Error: With status 3, it does not fit ``memory``; the message names a limit that is enough.
    """
    dataset = None if graph is None else str(graph)
    return _lines(execute("plan", {"dataset": dataset, **options, "json": True}, False))


def inspect(source: Directory | Graph, **options: Unpack[InspectOptions]) -> dict[str, Any]:
    """Describes a run directory, or what an import of a dataset would find, as ``ndls inspect`` does.

    Args:
        source: A run directory, or a graph or dataset URI. Text is a dataset URI where it has a colon behind a word and
            is no folder.
        options: The flags of ``ndls inspect``.

    Raises:
        Error: It is none of them, or an import would refuse the dataset; the message is the same.
    """
    given = str(source) if isinstance(source, Graph) else _path(source)
    is_run = isinstance(source, (Run, os.PathLike)) or (not isinstance(source, Graph) and (os.path.isdir(given) or ":" not in given))
    found: dict[str, Any] = json.loads(execute("inspect", {"run" if is_run else "dataset": given, **options, "json": True}, False))
    return found


def explain(run: Directory, node: int | str, *, hops: int | None = None, neighbours: int | None = None) -> dict[str, Any]:
    """Finds out why a node has its K and its prediction, as ``ndls explain`` does.

    Args:
        run: The run directory.
        node: The id of the node in the input.
        hops: The hop up to which distances are computed, by default as far as K.
        neighbours: How many neighbours are listed, by default 10.

    Returns:
        ``degree``, ``component``, ``label``, ``k``, ``distances`` from the stationary state by hop, ``neighbours``, and
        the classes ``before`` and ``after`` label smoothing, as far as the run has them.

    Raises:
        Error: The graph has no such node, or K was not found yet.
    """
    options = {"run": _path(run), "node": node, "hops": hops, "neighbours": neighbours, "json": True}
    found: dict[str, Any] = json.loads(execute("explain", options, False))
    return found


def diff(a: Directory, b: Directory) -> dict[str, Any]:
    """Says what two runs have not in common, as ``ndls diff`` does.

    Returns:
        ``same``, whether all results have the same bytes, and the differences in ``options``, ``versions``, ``inputs``,
        ``stages``, ``k``, ``accuracy`` and ``files``.

    Raises:
        Error: One of them is no run directory.
    """
    found: dict[str, Any] = json.loads(execute("diff", {"json": True}, False, words=[_path(a), _path(b)], accept=1))
    return found


def list_runs(*folders: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Finds the run directories below folders, by default the present one, as ``ndls list`` does.

    Returns:
        A dict for each: ``run``, ``dataset``, ``state``, ``bytes``, ``changed``, and accuracies ``before_label_smoothing`` and
        ``after_label_smoothing``, as far as there are any.

    Raises:
        Error: A folder is not there.
    """
    return _lines(execute("list", {"json": True}, False, words=[os.fspath(f) for f in folders]))


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]
