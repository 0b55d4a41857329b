"""Runs the whole job on a Ray cluster: Ray places the workers, and the coordinator runs beside the driver.

It needs Ray, this package with the program on every node, and a run directory that all nodes see: a shared
folder or ``s3://bucket/prefix``.
"""

from __future__ import annotations

import os
from typing import Any

import ray
import ray.data

from . import _frames, _launch
from ._command import Progress
from ._graph import Graph
from ._run import Run

__all__ = ["from_dataframes", "run", "to_dataframe"]


def from_dataframes(edges: ray.data.Dataset, nodes: ray.data.Dataset | None = None, *, folder: str | os.PathLike[str], **columns: Any) -> Graph:
    """Has Ray write edges and nodes, which are Datasets of Ray, as Parquet, and returns the graph for ``run``.

    The files are written where the data is, side by side. The order of rows does not change a result.

    Args:
        edges: A row for each edge.
        nodes: A row for each node, or None: then the nodes are those that occur in edges.
        folder: A folder that all nodes see. It gets ``edges`` and ``nodes``, and has neither yet.
        columns: The names of columns and the options of ``ndls.from_arrow``: ``src``, ``dst``, ``weight``,
            ``id``, ``features``, ``categories``, ``plain``, ``label``, ``split``, ``directed``, ``repeated`` and ``missing``.

    Raises:
        FileExistsError: The folder has edges or nodes already.
        ValueError: The folder is in an object store.
    """
    return _frames.graph(folder, edges, nodes, lambda data, path: data.write_parquet(path), columns)


def to_dataframe(
    run: Run | str | os.PathLike[str],
    what: str = "predictions",
    *,
    folder: str | os.PathLike[str],
    parts: int = _frames.PARTS,
    **options: object,
) -> ray.data.Dataset:
    """Returns an artifact of a run as a Dataset, from Parquet files below a folder.

    Args:
        run: A run, or the place of its directory.
        what: ``predictions``, ``smoothed``, ``soft-labels``, ``lsi``, ``features``, ``hops``, ``edges`` or ``nodes``.
        folder: A folder that all nodes see. The files stay there while the Dataset is used.
        parts: The number of files, which Ray reads side by side.
        options: Further flags of ``ndls export``.

    Raises:
        FileExistsError: The folder has this artifact already.
        ValueError: The folder is in an object store.
    """
    return ray.data.read_parquet(_frames.export(run, what, folder, parts, options))


class _Tasks:
    """Workers that Ray has placed."""

    def __init__(self, references: list[Any]) -> None:
        self.references = references

    def failed(self) -> tuple[int, BaseException | None]:
        done, _ = ray.wait(self.references, num_returns=len(self.references), timeout=0)
        return _launch.errors(_error(reference) for reference in done)

    def finish(self, patience: float) -> None:
        _, running = ray.wait(self.references, num_returns=len(self.references), timeout=patience)
        for reference in running:
            ray.cancel(reference, force=True)


def _error(reference: Any) -> BaseException | None:
    try:
        ray.get(reference)
    except Exception as error:
        return error
    return None


def _work(place: _launch.Place) -> None:
    _launch.work(place, ray.util.get_node_ip_address())


def run(
    graph: str | Graph,
    run: str | os.PathLike[str],
    *,
    workers: int,
    threads: int = 1,
    memory: str | None = None,
    scratch: str | None = None,
    resources: dict[str, float] | None = None,
    progress: Progress = None,
    **options: object,
) -> Run | None:
    """Runs the whole job on a graph with workers on the nodes of a Ray cluster.

    Each worker is a Ray task of ``threads`` CPUs. Where a node or a worker is lost, Ray starts the
    task elsewhere, and the job goes on from what was saved; the bytes of the results are those of
    ``ndls.run``.

    Args:
        graph: As for ``ndls.run``. All nodes must see its files.
        run: The run directory, which all nodes see.
        workers: How many workers there are, and for how many the first task waits.
        threads: CPUs of each worker.
        memory: The memory of each worker, such as ``"48GiB"``; by default what ``ndls worker``
            takes on its node, which is too much where a node has several.
        scratch: A local folder of each node for temporary files.
        resources: Further resources of each task, such as ``{"bignode": 1}``.
        progress: As for ``ndls.run``.
        options: The flags of ``ndls coordinator``, with underscores.

    Returns:
        The run, or None where it is in an object store.

    Raises:
        Error: As for ``ndls.run``, or every worker has ended with an error.
    """
    if not ray.is_initialized():
        ray.init()
    place = _launch.Place(os.fspath(run), memory, threads, scratch)
    # Ray starts a task again if its node or its process is lost, and not if the worker has ended with an error.
    task = ray.remote(_work).options(num_cpus=threads, resources=resources, max_retries=-1, scheduling_strategy="SPREAD")

    def start() -> _Tasks:
        return _Tasks([task.remote(place) for _ in range(workers)])

    return _launch.run(graph, place, ray.util.get_node_ip_address(), workers, start, progress, options)
