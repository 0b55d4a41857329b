"""What verbs find, as values, and rows as tables and tensors."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import FEATURES, NODES, TOPICS, Arrays

import ndls


def test_plan() -> None:
    stages = {s["name"]: s for s in ndls.plan(nodes=100_000, edges=1_000_000, features=64, classes=4, training=100, measure=False)}
    assert list(stages) == ["partition", "lsi", "smooth", "train", "predict", "label-depth", "smooth-labels", "evaluate"]
    assert stages["smooth"]["least_bytes"] > 0
    with pytest.raises(ndls.Error, match="memory") as failed:
        ndls.plan(nodes=10**9, edges=10**10, features=64, memory="256MiB", measure=False)
    assert failed.value.status == 3


def test_inspect(run: ndls.Run, arrays: Arrays) -> None:
    assert ndls.inspect("karate:")["graph"]["nodes"] == 34
    graph = ndls.from_arrays(arrays.src, arrays.dst)
    assert ndls.inspect(graph, memory="512MiB")["graph"]["nodes"] == NODES
    for source in (run, run.path, str(run.path)):
        assert ndls.inspect(source)["state"] == "COMPLETE"


def test_explain(run: ndls.Run) -> None:
    node = int(run.ids[5])
    found = ndls.explain(run, node, neighbours=2)
    assert found["degree"] == run.degrees[5]
    assert found["k"]["k"] == run.k[5]
    assert len(found["neighbours"]["first"]) == 2
    with pytest.raises(ndls.Error):
        ndls.explain(run.path, -4)


def test_diff_and_list(run: ndls.Run, tmp_path: Path) -> None:
    one, other = tmp_path / "a folder" / "one", tmp_path / "a folder" / "other"
    shutil.copytree(run.path, one)
    assert ndls.diff(run, one)["same"] is True
    ndls.command("partition", progress=False, dataset="karate:", run=other)
    found = ndls.diff(one, other)
    assert found["same"] is False
    assert "dataset" in [x["name"] for x in found["options"]]
    with pytest.raises(ndls.Error, match="nothing"):
        ndls.diff(one, tmp_path / "nothing")
    listed = {Path(x["run"]).name: x for x in ndls.list(tmp_path / "a folder")}
    assert set(listed) == {"one", "other"}
    assert listed["one"]["after_label_smoothing"]["test"]["mean"] == run.report["accuracy"]["smoothed"]["test"]["mean"]


def test_tables_of_nodes(run: ndls.Run) -> None:
    frame = run.to_pandas()
    assert frame.index.tolist() == run.ids.tolist()
    assert frame["k"].tolist() == run.k.tolist()
    assert frame["label"].tolist() == [run.classes[c] for c in run.labels]
    assert set(frame["split"].dropna()) == {"train", "valid", "test"}
    predicted = run.predictions.column("label").to_numpy()
    assert frame["prediction"].tolist() == [run.classes[c] for c in predicted]
    polars = run.to_polars()
    assert polars.columns == ["id", *frame.columns]
    assert polars["prediction"].to_list() == frame["prediction"].tolist()


def test_rows_as_tables(run: ndls.Run) -> None:
    for rows, name, width in ((run.features, "feature_0", FEATURES), (run.predictions, f"probability_{run.classes[0]}", TOPICS)):
        frame, polars = rows.to_pandas(), rows.to_polars()
        assert frame.index.tolist() == run.ids.tolist() == polars["id"].to_list()
        np.testing.assert_array_equal(frame[name].to_numpy(), np.asarray(rows)[:, 0])
        np.testing.assert_array_equal(polars[name].to_numpy(), np.asarray(rows)[:, 0])
        assert len([c for c in frame.columns if c.startswith(name.rpartition("_")[0])]) == width
    assert run.predictions.to_pandas()["label"].tolist() == run.predictions.column("label").to_pylist()


def test_notebooks_show_a_table(run: ndls.Run) -> None:
    html = run._repr_html_()
    assert html.count("<tr>") == len(str(run).splitlines())
    assert f"{run.report['lsi']['mean']:.2f} hops in the mean" in html
    assert "<script" not in html


def test_names_and_types_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The types refuse an option or a word that the program does not have."""
    api: Any = pytest.importorskip("mypy.api")
    monkeypatch.setenv("MYPYPATH", str(Path(ndls.__file__).parents[1]))
    for line, wrong in (
        ('ndls.run("karate:", "r", epsilom=0.1)', "epsilom"),
        ('ndls.plan(nodes=1, edges=1, features="some")', "features"),
        ('ndls.NodeSmoother(rule="sgd")', "rule"),
        ('ndls.NodeSmoother(options={"precisian": "float16"})', "options"),
        ('ndls.NodeSmoother(rule="sgc", options={"precision": "float16"})\nndls.plan("karate:", features=3)', ""),
    ):
        file = tmp_path / "call.py"
        file.write_text(f"import ndls\n{line}\n")
        out, _, status = api.run(["--strict", "--ignore-missing-imports", f"--cache-dir={tmp_path / 'cache'}", str(file)])
        assert (status != 0) == bool(wrong), out
        assert wrong in out
