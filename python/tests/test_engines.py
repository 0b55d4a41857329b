"""Runs jobs on real Ray, Dask and Spark clusters of this host, loses what works, and compares bytes: make test-engines."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
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


def spark() -> Any:
    """Starts two executors on this host."""
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        .config("spark.executorEnv.NDLS_BINARY", ndls.binary())
        .getOrCreate()
    )


def test_spark(tmp_path: Path, wanted: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A barrier stage of Spark has the workers."""
    pytest.importorskip("pyspark")
    import ndls.spark

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    session = spark()
    try:
        run = tmp_path / "run"
        opened = ndls.spark.run(GRAPH, run, session=session, workers=2, threads=1, memory="512MiB", progress=False, **OPTIONS)
        assert opened is not None
        assert opened.state == "COMPLETE"
        assert checksums(run) == wanted
    finally:
        session.stop()


FRAMES: dict[str, Any] = {"runs": 1, "epochs": 5, "probes": 16, "epsilon": 0.01, "lease": "3s", "checkpoint": "2s", "progress": False}
COLUMNS = {"src": "src", "dst": "dst", "id": "id", "features": [f"x{i}" for i in range(16)], "label": "label", "split": "split"}


@pytest.fixture(scope="module")
def tables() -> tuple[Any, Any]:
    """A million edges and 50,000 nodes, as tables of pandas."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(5)
    nodes, edges = 50_000, 1_000_000
    topic = rng.integers(4, size=nodes)
    rows = (np.eye(4, 16)[topic] + rng.normal(0, 1, (nodes, 16))).astype(np.float32)
    frame = pd.DataFrame({"id": np.arange(nodes) * 3, "label": topic, "split": rng.choice(["train", "valid", "test"], nodes)})
    frame = pd.concat([frame, pd.DataFrame(rows, columns=[f"x{i}" for i in range(16)])], axis=1)
    ends = rng.integers(nodes, size=(2, edges)) * 3
    return pd.DataFrame({"src": ends[0], "dst": ends[1]}), frame


@pytest.fixture(scope="module")
def predicted(tables: tuple[Any, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The predictions of one process, from files, by id."""
    folder = tmp_path_factory.mktemp("frames")
    options = {name: value for name, value in FRAMES.items() if name not in ("lease", "checkpoint")}
    run = ndls.run(ndls.from_pandas(*tables, folder=folder / "graph", **COLUMNS), folder / "run", memory="1GiB", **options)
    return pq.read_table(run.export("predictions", folder / "predictions.parquet")).to_pandas().sort_values("id").reset_index(drop=True)


def same(frame: Any, predicted: Any) -> None:
    """Compares predictions of an engine with those of one process: the same bits."""
    import numpy as np

    frame = frame.sort_values("id").reset_index(drop=True)
    assert list(frame.columns) == list(predicted.columns)
    for name in predicted.columns:
        assert np.array_equal(np.stack(frame[name].to_list()), np.stack(predicted[name].to_list())), name


def test_dask_dataframes(tmp_path: Path, tables: tuple[Any, Any], predicted: Any) -> None:
    """DataFrames in and out, and a process of Dask is killed on the way."""
    distributed = pytest.importorskip("distributed")
    import dask.dataframe

    import ndls.dask

    edges, nodes = (dask.dataframe.from_pandas(table, npartitions=4) for table in tables)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        graph = ndls.dask.from_dataframes(edges, nodes, folder=tmp_path / "graph", **COLUMNS)
        victim = next(iter(cluster.workers.values())).pid
        with once(tmp_path / "run", "lsi", lambda: os.kill(victim, signal.SIGKILL)) as killed:
            run = ndls.dask.run(graph, tmp_path / "run", client=client, memory="512MiB", **FRAMES)
        assert killed, "nothing was killed"
        assert run is not None
        same(ndls.dask.to_dataframe(run, folder=tmp_path / "out", parts=3).compute(), predicted)
    with pytest.raises(FileExistsError, match="give another folder"):
        ndls.dask.from_dataframes(edges, nodes, folder=tmp_path / "graph", **COLUMNS)
    with pytest.raises(ValueError, match="table:s3://"):
        ndls.dask.from_dataframes(edges, nodes, folder="s3://bucket/tables", **COLUMNS)
    with pytest.raises(TypeError, match="sauce"):
        ndls.dask.from_dataframes(edges, nodes, folder=tmp_path / "other", sauce="src")


def test_ray_datasets(tmp_path: Path, tables: tuple[Any, Any], predicted: Any) -> None:
    """Datasets in and out, and a process of Ray is killed on the way."""
    ray = pytest.importorskip("ray")
    import ndls.ray

    ray.init(num_cpus=2, log_to_driver=False)
    try:
        edges, nodes = (ray.data.from_pandas(table) for table in tables)
        graph = ndls.ray.from_dataframes(edges, nodes, folder=tmp_path / "graph", **COLUMNS)

        def kill() -> None:
            pid = workers_of(tmp_path / "run")[0]
            os.kill(next(ancestors(pid)), signal.SIGKILL)

        with once(tmp_path / "run", "lsi", kill) as killed:
            run = ndls.ray.run(graph, tmp_path / "run", workers=2, memory="512MiB", **FRAMES)
        assert killed, "nothing was killed"
        assert run is not None
        same(ndls.ray.to_dataframe(run, folder=tmp_path / "out", parts=3).to_pandas(), predicted)
    finally:
        ray.shutdown()


def test_spark_dataframes(tmp_path: Path, tables: tuple[Any, Any], predicted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """DataFrames in and out, and an executor of Spark is killed on the way."""
    pytest.importorskip("pyspark")
    import ndls.spark

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    session = spark()
    try:
        edges, nodes = (session.createDataFrame(table) for table in tables)
        graph = ndls.spark.from_dataframes(edges, nodes, folder=tmp_path / "graph", **COLUMNS)

        def kill() -> None:
            pid = workers_of(tmp_path / "run")[0]
            executor = next(p for p in ancestors(pid) if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{p}/cmdline").read_bytes())
            os.kill(executor, signal.SIGKILL)

        with once(tmp_path / "run", "lsi", kill) as killed:
            run = ndls.spark.run(graph, tmp_path / "run", session=session, workers=2, threads=1, memory="512MiB", **FRAMES)
        assert killed, "nothing was killed"
        assert run is not None
        same(ndls.spark.to_dataframe(run, folder=tmp_path / "out", session=session, parts=3).toPandas(), predicted)
    finally:
        session.stop()


def test_spark_connect(tmp_path: Path, tables: tuple[Any, Any], predicted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of Spark Connect, whose server runs beside it."""
    pytest.importorskip("pyspark")
    pytest.importorskip("grpc_status")
    program = """
import sys, pandas, ndls.spark
from pyspark.sql import SparkSession
session = SparkSession.builder.remote("local[2]").getOrCreate()
edges, nodes = (session.read.parquet(sys.argv[1] + name) for name in ("/edges.parquet", "/nodes.parquet"))
columns = {"src": "src", "dst": "dst", "id": "id", "features": [f"x{i}" for i in range(16)], "label": "label", "split": "split"}
graph = ndls.spark.from_dataframes(edges, nodes, folder=sys.argv[2] + "/graph", **columns)
options = {"runs": 1, "epochs": 5, "probes": 16, "epsilon": 0.01, "progress": False}
run = ndls.spark.run(graph, sys.argv[2] + "/run", session=session, workers=2, threads=1, memory="512MiB", **options)
ndls.spark.to_dataframe(run, folder=sys.argv[2] + "/out", session=session, parts=2).toPandas().to_pickle(sys.argv[2] + "/predictions.pickle")
session.stop()
"""
    import pandas as pd

    ndls.from_pandas(*tables, folder=tmp_path / "files", **COLUMNS)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    # A process has a classic session or one of Connect, not both.
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "files"), str(tmp_path)], check=True, timeout=300)
    same(pd.read_pickle(tmp_path / "predictions.pickle"), predicted)


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the blocks of engines.md whose engines are there, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    there = [name for name in ENGINES if importlib.util.find_spec(name)]
    pages.run("engines", without=set(ENGINES) - set(there))
    made = [checksums(run) for run in sorted((tmp_path / "runs").iterdir())]
    assert len(made) == len(there)
    assert all(x == made[0] for x in made)
