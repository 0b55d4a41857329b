"""Runs the whole job on a Dask cluster: Dask places the workers, and the coordinator runs beside the client.

It needs dask.distributed, this package with the program on every node, and a run directory that all nodes see: a
shared folder or ``s3://bucket/prefix``.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

import distributed

from . import _frames, _launch
from ._command import Error, Progress
from ._graph import Graph
from ._run import Run

__all__ = ["from_dataframes", "run", "to_dataframe"]


def from_dataframes(edges: Any, nodes: Any = None, *, folder: str | os.PathLike[str], **columns: Any) -> Graph:
    """Has Dask write edges and nodes, which are DataFrames of Dask, as Parquet, and returns the graph for ``run``.

    The files are written where the data is, side by side. The order of rows does not change a result.

    Args:
        edges: A row for each edge; an index is no column.
        nodes: A row for each node, or None: then the nodes are those that occur in edges.
        folder: A folder that all nodes see. It gets ``edges`` and ``nodes``, and has neither yet.
        columns: The names of columns and the options of ``ndls.from_arrow``: ``src``, ``dst``, ``weight``,
            ``id``, ``features``, ``categories``, ``plain``, ``label``, ``split``, ``directed``, ``repeated`` and ``missing``.

    Raises:
        FileExistsError: The folder has edges or nodes already.
        ValueError: The folder is in an object store.
    """
    return _frames.graph(folder, edges, nodes, lambda frame, path: frame.to_parquet(path, write_index=False), columns)


def to_dataframe(
    run: Run | str | os.PathLike[str],
    what: str = "predictions",
    *,
    folder: str | os.PathLike[str],
    parts: int = _frames.PARTS,
    **options: object,
) -> Any:
    """Returns an artifact of a run as a DataFrame, from Parquet files below a folder.

    Args:
        run: A run, or the place of its directory.
        what: ``predictions``, ``smoothed``, ``soft-labels``, ``lsi``, ``features``, ``hops``, ``edges`` or ``nodes``.
        folder: A folder that all nodes see. The files stay there while the DataFrame is used.
        parts: The number of files, which Dask reads side by side.
        options: Further flags of ``ndls export``.

    Raises:
        FileExistsError: The folder has this artifact already.
        ValueError: The folder is in an object store.
    """
    import dask.dataframe

    return dask.dataframe.read_parquet(_frames.export(run, what, folder, parts, options))


class _Tasks:
    """Workers that Dask has placed."""

    def __init__(self, futures: list[Any]) -> None:
        self.futures = futures

    def failed(self) -> tuple[int, BaseException | None]:
        return _launch.errors(f.exception() if f.done() and f.status == "error" else None for f in self.futures)

    def finish(self, patience: float) -> None:
        try:
            distributed.wait(self.futures, timeout=max(patience, 0.1))
        except (TimeoutError, distributed.TimeoutError):
            for future in self.futures:
                future.cancel()


def _work(place: _launch.Place) -> None:
    _launch.work(place, str(urlsplit(distributed.get_worker().address).hostname))


def run(
    graph: str | Graph,
    run: str | os.PathLike[str],
    *,
    client: distributed.Client | None = None,
    workers: int | None = None,
    threads: int | None = None,
    memory: str | None = None,
    scratch: str | None = None,
    progress: Progress = None,
    **options: object,
) -> Run | None:
    """Runs the whole job on a graph with a worker on each worker of a Dask cluster.

    Where a worker of Dask is lost, Dask starts the task on another one, and the job goes on from what
    was saved; the bytes of the results are those of ``ndls.run``.

    Args:
        graph: As for ``ndls.run``. All nodes must see its files.
        run: The run directory, which all nodes see.
        client: The client of the cluster; the present one by default.
        workers: How many workers there are, and for how many the first task waits; by default as
            many as the cluster has now.
        threads: Threads of each worker; by default those of the first worker of the cluster.
        memory: The memory of each worker, such as ``"48GiB"``. Dask's own limit does not count: it
            sees the process of Python alone. By default it is what ``ndls worker`` takes on its
            node, which is too much where a node has several.
        scratch: A local folder of each node for temporary files.
        progress: As for ``ndls.run``.
        options: The flags of ``ndls coordinator``, with underscores.

    Returns:
        The run, or None where it is in an object store.

    Raises:
        Error: As for ``ndls.run``, or every worker has ended with an error, or the cluster has no worker.
    """
    client = client or distributed.get_client()
    cluster: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    if not cluster:
        raise Error("the Dask cluster has no worker")
    number = len(cluster) if workers is None else workers
    place = _launch.Place(os.fspath(run), memory, threads or int(next(iter(cluster.values()))["nthreads"]), scratch)
    scheduler = urlsplit(client.scheduler.address)
    host = _launch.address_towards(str(scheduler.hostname), scheduler.port or 8786)
    addresses = list(cluster)

    def start() -> _Tasks:
        return _Tasks(
            [client.submit(_work, place, pure=False, workers=[addresses[i % len(addresses)]], allow_other_workers=True) for i in range(number)]
        )

    return _launch.run(graph, place, host, number, start, progress, options)
