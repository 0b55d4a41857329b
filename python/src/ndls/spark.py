"""Runs the whole job on a Spark cluster: a barrier stage of Spark has the workers, and the coordinator runs beside the driver.

It needs PySpark, this package with the program on every node, and a run directory that all nodes see: a shared
folder or ``s3://bucket/prefix``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

from pyspark import BarrierTaskContext, InheritableThread
from pyspark.sql import SparkSession

from . import _launch
from ._command import Error, Progress
from ._graph import Graph
from ._run import Run

__all__ = ["run"]

_GROUP = "ndls"


class _Tasks:
    """The workers of a barrier stage, which ends as a whole."""

    def __init__(self, session: SparkSession, place: _launch.Place, workers: int) -> None:
        self.context = session.sparkContext
        self.workers = workers
        self.error: BaseException | None = None
        self.ended = threading.Event()
        self.thread = InheritableThread(target=self._run, args=(place,))
        self.thread.start()

    def _run(self, place: _launch.Place) -> None:
        try:
            self.context.setJobGroup(_GROUP, f"workers of {place.run}", interruptOnCancel=True)
            rows = self.context.parallelize(range(self.workers), self.workers).barrier()
            rows.mapPartitions(lambda _: _work(place)).collect()
        except Exception as error:
            self.error = error
        finally:
            self.ended.set()

    def failed(self) -> tuple[int, BaseException | None]:
        return (self.workers, self.error) if self.ended.is_set() and self.error is not None else (0, None)

    def finish(self, patience: float) -> None:
        if not self.ended.wait(patience):
            self.context.cancelJobGroup(_GROUP)
        self.thread.join()


def _work(place: _launch.Place) -> Iterator[Any]:
    context = BarrierTaskContext.get()
    address = context.getTaskInfos()[context.partitionId()].address
    _launch.work(place, address.rsplit(":", 1)[0])
    return iter(())


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
    active = session or SparkSession.getActiveSession()
    if active is None:
        raise Error("there is no Spark session: give session=")
    context = active.sparkContext
    host = context.getConf().get("spark.driver.host") or "127.0.0.1"
    cpus = threads or int(context.getConf().get("spark.task.cpus", "1") or 1)
    place = _launch.Place(os.fspath(run), memory, cpus, scratch)
    return _launch.run(graph, place, host, workers, lambda: _Tasks(active, place, workers), progress, options)
