"""Runs each example on a small graph, with the packages that it is for.

NDLS_BINARY names the program, PYTHONPATH has python/src, and NEXTFLOW the folder with the jars of
Nextflow. A test is skipped where its package is not installed, and fails there with NDLS_EXAMPLES=all.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ndls

EXAMPLES = Path(__file__).parent
GRAPH = "synthetic:nodes=3000,edges=15000,features=16,classes=4,seed=1"
# A graph that takes long enough to be interrupted.
LONGER = "synthetic:nodes=60000,edges=600000,features=64,classes=4,seed=1"


def needs(*modules: str) -> pytest.MarkDecorator:
    """Skips a test where a module is not installed."""
    # A folder of this name, such as that of an example, has no origin.
    missing = [name for name in modules if (spec := importlib.util.find_spec(name)) is None or spec.origin is None]
    everything = os.environ.get("NDLS_EXAMPLES") == "all"
    return pytest.mark.skipif(bool(missing) and not everything, reason=f"{', '.join(missing)}: make test-examples installs it")


def environment(folder: Path) -> dict[str, str]:
    """Returns the environment with the program as ndls on PATH."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    link = folder / "bin" / "ndls"
    if not link.exists():
        link.symlink_to(ndls.binary())
    return {**os.environ, "PATH": f"{link.parent}{os.pathsep}{os.environ['PATH']}"}


def python(script: str, *arguments: object, cwd: Path | None = None) -> str:
    """Runs an example. Returns what it prints."""
    command = [sys.executable, str(EXAMPLES / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    ndls.run(GRAPH, path, progress=False, runs=1, epochs=30, keep_hops="0..3", memory="512MiB")
    return path


def figures(text: str, words: str) -> list[float]:
    """Returns the last number of each line that has some words."""
    return [float(line.split()[-1]) for line in text.splitlines() if words in line]


@needs("torch")
def test_mlp(run: Path) -> None:
    text = python("mlp/mlp.py", run, "--epochs", 10, "--batch", 64, "--hidden", 32)
    before, after = figures(text, "label smoothing")
    assert before > 0.6, text
    assert after > before - 0.05, text
    made = ndls.open(f"{run}-labels")
    np.testing.assert_allclose(np.asarray(made.predictions).sum(1), 1, atol=1e-3)


@needs("torch")
def test_gamlp(tmp_path: Path) -> None:
    ndls.run(GRAPH, tmp_path / "hops", progress=False, rule="sign", hops=4, runs=1, epochs=30, label_depth=0, memory="512MiB")
    arguments = ("--ndls", ndls.binary(), "--runs", 1, "--tries", 1, "--epochs", 60, "--json", tmp_path / "figures.json")
    text = python("gamlp/gamlp.py", tmp_path / "hops", *arguments)
    found = json.loads((tmp_path / "figures.json").read_text())
    assert found["test"][0] > 0.6, text


@pytest.mark.parametrize("model", [pytest.param("forest", marks=needs("sklearn")), pytest.param("xgboost", marks=needs("xgboost"))])
def test_trees(run: Path, tmp_path: Path, model: str) -> None:
    opened = ndls.open(run)
    rows, nodes = (opened.export(what, tmp_path / f"{what}.npy") for what in ("smoothed", "nodes"))
    python("trees/trees.py", "--rows", rows, "--nodes", nodes, "--model", model, "--out", tmp_path / "soft", "--trials", 2, "--runs", 1)
    soft = tmp_path / "soft" / "model-1.parquet"
    again = ndls.run(GRAPH, tmp_path / "smoothed", progress=False, soft_labels=soft, label_depth=3, memory="512MiB")
    before, after = (again.report["accuracy"][key]["test"]["mean"] for key in ("base", "smoothed"))
    assert before > 0.6
    assert after > before


@needs("duckdb")
def test_sql(run: Path) -> None:
    sys.path.insert(0, str(EXAMPLES / "sql"))
    try:
        query = importlib.import_module("query")
    finally:
        sys.path.remove(str(EXAMPLES / "sql"))
    opened, connection = ndls.open(run), query.open_run(str(run))
    found = {title: connection.sql(text).fetchall() for title, text in query.QUERIES.items()}
    assert all(found.values())
    assert sum(row[1] for row in found["K by degree"]) == int((opened.degrees > 0).sum())
    assert max(row[3] for row in found["K by degree"]) == opened.k.max()
    test = opened.split("test")
    right = opened.predictions.column("label").to_numpy()[test] == opened.labels[test]
    for k, nodes, accuracy in found["Accuracy on test nodes by K"]:
        at = opened.k[test] == k
        assert (nodes, accuracy) == (at.sum(), pytest.approx(right[at].mean(), abs=1e-3))
    first = np.asarray(opened.features)[:, 0]
    for label, nodes, mean in found["Mean of the first smoothed column by class"]:
        of = opened.labels == label
        assert (nodes, mean) == (of.sum(), pytest.approx(first[of].mean(), abs=1e-4))
    assert "smoothed" in {row[0] for row in found["What takes the disk"]}
    assert "K by degree" in python("sql/query.py", run)


def shown(notebook: Any) -> tuple[list[str], int]:
    """Returns the texts that a notebook shows, and the number of its pictures."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["text"] for output in outputs if "text" in output], sum("image/png" in output.get("data", {}) for output in outputs)


@needs("nbclient", "ipykernel", "matplotlib")
def test_notebook(tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(EXAMPLES / "notebook" / "pictures.ipynb", as_version=4)
    kept = shown(notebook)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    texts, pictures = shown(notebook)
    assert (texts, pictures) == kept, "the notebook shows other outputs than it makes"
    assert pictures == 4
    assert (tmp_path / "runs" / "pictures" / "report.html").exists()


@needs("torch", "torch_geometric")
def test_pyg(tmp_path: Path) -> None:
    text = python("pyg/pyg.py", "--run", tmp_path / "run")
    raw, graph, smoothed = (figures(text, words)[0] for words in ("raw rows", "GCN", "smoothed rows"))
    assert min(graph, smoothed) > raw + 0.1, text
    assert figures(text, "predictions of ndls")[0] > raw + 0.1, text


class Interrupted:
    """Sends SIGTERM to the first ndls run on a run directory that has begun to compute."""

    def __init__(self, run: Path) -> None:
        self.run, self.pid = run, 0

    def look(self) -> None:
        """Sends the signal as soon as the graph is imported."""
        if self.pid or not (self.run / "graph" / "nodes.parquet").exists():
            return
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = process.read_bytes().split(b"\0")
            except OSError:  # it has ended
                continue
            if words[1:2] == [b"run"] and f"--run={self.run}".encode() in b"=".join(words):
                self.pid = int(process.parent.name)
                os.kill(self.pid, signal.SIGTERM)
                return


def interrupted(command: list[str], run: Path, **options: Any) -> tuple[int, str]:
    """Runs a command around ndls run, and interrupts that once. Returns the status and what was printed."""
    interrupt = Interrupted(run)
    log = run.parent / "log"
    with open(log, "w") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, **options) as process:
        while process.poll() is None:
            interrupt.look()
            time.sleep(0.005)
    text = log.read_text()
    assert interrupt.pid, f"there was nothing to interrupt:\n{text}"
    return process.returncode, text


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Returns the predictions of the longer job, exported."""
    folder = tmp_path_factory.mktemp("undisturbed")
    made = ndls.run(LONGER, folder / "run", progress=False, runs=1, memory="512MiB")
    return made.export("predictions", folder / "predictions.parquet").read_bytes()


@needs("airflow")
def test_airflow(tmp_path: Path, undisturbed: bytes) -> None:
    home = tmp_path / "airflow"
    variables = {
        **environment(tmp_path),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    airflow = [sys.executable, "-m", "airflow"]
    subprocess.run([*airflow, "db", "migrate"], env=variables, check=True, capture_output=True)
    job = {"dataset": LONGER, "run": str(tmp_path / "run"), "memory": "512MiB", "models": 1, "out": str(tmp_path / "out.parquet")}
    status, text = interrupted([*airflow, "dags", "test", "ndls_job", "--conf", json.dumps(job)], tmp_path / "run", env=variables, cwd=tmp_path)
    assert status == 0, text
    assert "status 75" in text, text
    assert (tmp_path / "out.parquet").read_bytes() == undisturbed
    # What another try does not mend fails at once.
    job |= {"run": str(tmp_path / "small"), "memory": "1KiB"}
    done = subprocess.run(
        [*airflow, "dags", "test", "ndls_job", "--conf", json.dumps(job)], env=variables, cwd=tmp_path, capture_output=True, text=True
    )
    assert "ended with status" in done.stdout + done.stderr
    assert not (tmp_path / "small").exists()


@pytest.mark.skipif("NEXTFLOW" not in os.environ, reason="NEXTFLOW names no folder with the jars of Nextflow")
def test_nextflow(tmp_path: Path, undisturbed: bytes) -> None:
    opens = [
        f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.io", "java.nio", "java.net", "java.util", "sun.nio.ch")
    ]
    nextflow = ["java", *opens, "-cp", f"{os.environ['NEXTFLOW']}/*", "nextflow.cli.Launcher"]
    variables = {
        **environment(tmp_path),
        "NXF_HOME": str(tmp_path / "home"),
        "NXF_OFFLINE": "true",
        "NXF_ANSI_LOG": "false",
        "NXF_DISABLE_CHECK_LATEST": "true",
    }
    options = ["--dataset", LONGER, "--run", str(tmp_path / "run"), "--out", str(tmp_path / "out"), "--models", "1"]
    status, text = interrupted([*nextflow, "run", str(EXAMPLES / "nextflow" / "main.nf"), *options], tmp_path / "run", env=variables, cwd=tmp_path)
    assert status == 0, text
    assert "terminated with an error exit status (75) -- Execution is retried" in text, text
    assert (tmp_path / "out" / "predictions.parquet").read_bytes() == undisturbed


@needs("hera", "yaml")
def test_argo(tmp_path: Path, undisturbed: bytes) -> None:
    """Compares the workflow with the types of Argo's API, and runs the commands of its templates one after the other."""
    import yaml
    from hera.workflows.models import Workflow

    document = yaml.safe_load((EXAMPLES / "argo" / "workflow.yaml").read_text())
    read = Workflow.model_validate(document).model_dump(by_alias=True, exclude_unset=True, mode="json")
    assert read == document, "a field is none of Argo's"
    templates = {template["name"]: template for template in document["spec"]["templates"]}
    steps = [step["template"] for group in templates["job"]["steps"] for step in group]
    assert set(steps) == set(templates) - {"job"}

    job = {"dataset": LONGER, "run": str(tmp_path / "run"), "out": str(tmp_path / "out.parquet"), "models": "1"}
    assert set(job) == {parameter["name"] for parameter in document["spec"]["arguments"]["parameters"]}

    def command(name: str) -> list[str]:
        words = [ndls.binary(), *templates[name]["container"]["args"]]
        for key, value in job.items():
            words = [word.replace(f"{{{{workflow.parameters.{key}}}}}", value) for word in words]
        assert not [word for word in words if "{{" in word]
        return words

    for name in steps:
        if name == "run":  # interrupted once: the next try of the same command goes on
            status, text = interrupted(command(name), tmp_path / "run")
            assert status == 75, text
            assert f'"{status}"' in templates[name]["retryStrategy"]["expression"]
        subprocess.run(command(name), check=True, capture_output=True)
    assert (tmp_path / "out.parquet").read_bytes() == undisturbed
