"""Runs the whole job on a Spark cluster: a barrier stage of Spark has the workers, and the coordinator runs beside the driver.

It needs PySpark, this package with the program on every node, and a run directory that all nodes see: a shared
folder or ``s3://bucket/prefix``.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from typing import Any

from pyspark import BarrierTaskContext
from pyspark.sql import DataFrame, SparkSession

from . import _frames, _launch
from ._command import Error, Progress
from ._graph import Graph
from ._run import Run

__all__ = ["from_dataframes", "run", "to_dataframe"]


def from_dataframes(edges: DataFrame, nodes: DataFrame | None = None, *, folder: str | os.PathLike[str], **columns: Any) -> Graph:
    """Has Spark write edges and nodes, which are DataFrames of Spark, as Parquet, and returns the graph for ``run``.

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
    return _frames.graph(folder, edges, nodes, lambda frame, path: frame.write.parquet(path), columns)


def to_dataframe(
    run: Run | str | os.PathLike[str],
    what: str = "predictions",
    *,
    folder: str | os.PathLike[str],
    session: SparkSession | None = None,
    parts: int = _frames.PARTS,
    **options: object,
) -> DataFrame:
    """Returns an artifact of a run as a DataFrame, from Parquet files below a folder.

    Args:
        run: A run, or the place of its directory.
        what: ``predictions``, ``smoothed``, ``soft-labels``, ``lsi``, ``features``, ``hops``, ``edges`` or ``nodes``.
        folder: A folder that all nodes see. The files stay there while the DataFrame is used.
        session: The present one by default.
        parts: The number of files, which Spark reads side by side.
        options: Further flags of ``ndls export``.

    Raises:
        FileExistsError: The folder has this artifact already.
        ValueError: The folder is in an object store.
    """
    return _session(session).read.parquet(_frames.export(run, what, folder, parts, options))


def _session(session: SparkSession | None) -> SparkSession:
    active = session or SparkSession.getActiveSession()
    if active is None:
        raise Error("there is no Spark session: give session=")
    return active


class _Tasks:
    """The workers of a barrier stage, which ends as a whole."""

    def __init__(self, session: SparkSession, place: _launch.Place, workers: int) -> None:
        self.session = session
        self.workers = workers
        self.tag = f"ndls-{uuid.uuid4().hex}"
        self.error: BaseException | None = None
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(place,))
        self.thread.start()

    def _run(self, place: _launch.Place) -> None:
        try:
            self.session.addTag(self.tag)
            tasks = self.session.range(0, self.workers, 1, self.workers)
            # Spark starts a barrier stage again only if its rows go to another stage, which counts them here.
            tasks.mapInArrow(lambda _: _work(place), "id long", barrier=True).count()
        except Exception as error:
            self.error = error
        finally:
            self.ended.set()

    def failed(self) -> tuple[int, BaseException | None]:
        return (self.workers, self.error) if self.ended.is_set() and self.error is not None else (0, None)

    def finish(self, patience: float) -> None:
        if not self.ended.wait(patience):
            self.session.interruptTag(self.tag)
        self.thread.join()


def _work(place: _launch.Place) -> Iterator[Any]:
    context = BarrierTaskContext.get()
    address = context.getTaskInfos()[context.partitionId()].address
    _launch.work(place, address.rsplit(":", 1)[0])
    return iter(())


def _host(session: SparkSession) -> str:
    """Returns the address of this host: that of the driver, or, with Spark Connect, the one towards the server."""
    if ".connect." in type(session).__module__:
        return _launch.address_towards(session.client.host, 443)
    return session.conf.get("spark.driver.host") or "127.0.0.1"


def run(
    graph: str | Graph,
    run: str | os.PathLike[str],
    *,
    workers: int,
    session: SparkSession | None = None,
    threads: int | None = None,
    memory: str | None = None,
    scratch: str | None = None,
    progress: Progress = None,
    **options: object,
) -> Run | None:
    """Runs the whole job on a graph with workers in a barrier stage of Spark.

    Spark starts all workers of a barrier stage at once, so it must have a slot for each. If one is
    lost, Spark starts the stage again, ``spark.task.maxFailures`` times at most, and the job goes on
    from what was saved; the bytes of the results are those of ``ndls.run``.

    Args:
        graph: As for ``ndls.run``. All nodes must see its files.
        run: The run directory, which all nodes see.
        workers: How many workers there are, and for how many the first task waits.
        session: The present one by default.
        threads: Threads of each worker; by default ``spark.task.cpus``.
        memory: The memory of each worker, such as ``"48GiB"``, which the executor must leave free:
            ``spark.executor.memoryOverhead``, or ``spark.executor.pyspark.memory``. By default it is
            what ``ndls worker`` takes on its node, which is too much where a node has several.
        scratch: A local folder of each node for temporary files.
        progress: As for ``ndls.run``.
        options: The flags of ``ndls coordinator``, with underscores.

    Returns:
        The run, or None where it is in an object store.

    Raises:
        Error: As for ``ndls.run``, or the stage has ended with an error.
    """
    active = _session(session)
    cpus = threads or int(active.conf.get("spark.task.cpus", "1") or 1)
    place = _launch.Place(os.fspath(run), memory, cpus, scratch)
    return _launch.run(graph, place, _host(active), workers, lambda: _Tasks(active, place, workers), progress, options)
