"""Runs jobs on real Ray, Dask and Spark clusters of this host, loses what works, and compares bytes: make test-engines."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pages
import pyarrow.parquet as pq
import pytest

import ndls

ENGINES = ("ray", "distributed", "pyspark")
if not any(importlib.util.find_spec(name) for name in ENGINES):
    pytest.skip("neither Ray nor Dask nor PySpark is installed: make test-engines", allow_module_level=True)

GRAPH = "synthetic:nodes=60000,edges=600000,features=64,classes=5,seed=3"
OPTIONS: dict[str, Any] = {"runs": 2, "epochs": 15, "probes": 32, "epsilon": 0.01, "lease": "3s", "checkpoint": "2s"}


def checksums(run: Path) -> dict[str, str]:
    """Returns the checksums of what a run has left, but for tables of other sizes that say how long something took."""
    table = pq.read_table(run / "catalog.parquet", columns=["path", "checksum"])
    return dict(zip(table["path"].to_pylist(), table["checksum"].to_pylist(), strict=True))


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The checksums of the run of one process."""
    run = tmp_path_factory.mktemp("one") / "run"
    options = {name: value for name, value in OPTIONS.items() if name not in ("lease", "checkpoint")}
    ndls.run(GRAPH, run, memory="1GiB", progress=False, **options)
    return checksums(run)


def stage(run: Path) -> str:
    """Returns the stage that the record of a run says is under way."""
    with contextlib.suppress(OSError, ValueError, ndls.Error):
        for x in json.loads((run / "run.json").read_text())["stages"] or []:
            if x["state"] == "RUNNING":
                return str(x["name"])
    return ""


@contextlib.contextmanager
def once(run: Path, name: str, do: Any) -> Iterator[list[float]]:
    """Calls do once, a moment after a stage has begun. The list gets when."""
    done: list[float] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.02):
            if stage(run) == name:
                time.sleep(0.3)
                do()
                done.append(time.time())
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


def test_dask(tmp_path: Path, wanted: dict[str, str]) -> None:
    """A process of Dask is killed while features are smoothed."""
    distributed = pytest.importorskip("distributed")
    import ndls.dask

    run = tmp_path / "run"
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(cluster.workers.values())).pid
        with once(run, "smooth", lambda: os.kill(victim, signal.SIGKILL)) as killed:
            opened = ndls.dask.run(GRAPH, run, client=client, memory="512MiB", progress=False, **OPTIONS)
    assert killed, "nothing was killed"
    assert opened is not None
    assert opened.state == "COMPLETE"
    assert checksums(run) == wanted


def test_dask_refuses(tmp_path: Path) -> None:
    """What every worker refuses ends the run with that message, and a wrong option ends it at once."""
    distributed = pytest.importorskip("distributed")
    import ndls.dask

    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        with pytest.raises(ndls.Error, match=r"no worker is left.*memory"):
            ndls.dask.run("karate:", tmp_path / "a", client=client, memory="1KiB", progress=False)
        with pytest.raises(ndls.Error, match="unknown flag") as caught:
            ndls.dask.run("karate:", tmp_path / "b", client=client, nonsense=1, progress=False)
        assert caught.value.status == 2


def workers_of(run: Path) -> list[int]:
    """Returns the processes that work on a run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"worker" in words and f"--run={run}".encode() in words:
                found.append(int(process.name))
    return found


def ancestors(pid: int) -> Iterator[int]:
    """Gives the parent of a process, and the parents of that."""
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        yield pid


def test_ray(tmp_path: Path, wanted: dict[str, str]) -> None:
    """A node of Ray is killed while features are smoothed, and another one is there."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    import ndls.ray

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        run = tmp_path / "run"

        def kill() -> None:
            """Kills a node beside the head that has a worker: of two workers, one is there."""
            above = {parent for pid in workers_of(run) for parent in ancestors(pid)}
            raylet = next(pid for pid in (node.all_processes["raylet"][0].process.pid for node in nodes) if pid in above)
            os.kill(raylet, signal.SIGKILL)

        with once(run, "smooth", kill) as killed:
            opened = ndls.ray.run(GRAPH, run, workers=2, memory="512MiB", progress=False, **OPTIONS)
        assert killed, "nothing was killed"
        assert opened is not None
        assert opened.state == "COMPLETE"
        assert checksums(run) == wanted
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_spark(tmp_path: Path, wanted: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A barrier stage of Spark has the workers."""
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    import ndls.spark

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        .config("spark.executorEnv.NDLS_BINARY", ndls.binary())
        .getOrCreate()
    )
    try:
        run = tmp_path / "run"
        opened = ndls.spark.run(GRAPH, run, session=session, workers=2, threads=1, memory="512MiB", progress=False, **OPTIONS)
        assert opened is not None
        assert opened.state == "COMPLETE"
        assert checksums(run) == wanted
    finally:
        session.stop()


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the blocks of engines.md whose engines are there, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    there = [name for name in ENGINES if importlib.util.find_spec(name)]
    pages.run("engines", without=set(ENGINES) - set(there))
    made = [checksums(run) for run in sorted((tmp_path / "runs").iterdir())]
    assert len(made) == len(there)
    assert all(x == made[0] for x in made)
