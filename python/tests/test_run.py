from __future__ import annotations

import json
import pickle
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Arrays

import ndls


def test_nodes_are_those_of_the_input(run: ndls.Run, arrays: Arrays) -> None:
    assert run.state == "COMPLETE"
    np.testing.assert_array_equal(np.sort(run.ids), np.arange(len(arrays.labels)))
    np.testing.assert_array_equal(run.labels, arrays.labels[run.ids])
    assert run.classes == ["0", "1", "2"]
    assert len(run.splits) == 2
    for number, codes in enumerate(run.splits):
        np.testing.assert_array_equal(codes, arrays.splits[run.ids, number])
    for name, code in (("train", 1), ("valid", 2), ("val", 2), ("test", 3)):
        np.testing.assert_array_equal(np.sort(run.ids[run.split(name, 1)]), np.flatnonzero(arrays.splits[:, 1] == code))
    assert run.degrees.dtype == np.uint32
    assert (np.diff(run.degrees.astype(int)) <= 0).all()


def crc32c(data: bytes) -> int:
    """Returns the sum with which ndls seals its records."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ 0x82F63B78 * (value & 1)
    return value ^ 0xFFFFFFFF


def test_a_run_that_was_stopped_says_so(run: ndls.Run, tmp_path: Path) -> None:
    assert not run.stopped
    record = json.loads((run.path / "run.json").read_text()) | {"state": "FAILED", "stopped": True}
    text = json.dumps(record | {"seal": "crc32c:00000000"})
    shutil.copytree(run.path, tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text(text.replace("crc32c:00000000", f"crc32c:{crc32c(text.encode()):08x}", 1))
    stopped = ndls.open(tmp_path / "run")
    assert (stopped.state, stopped.stopped) == ("FAILED", True)
    assert repr(stopped).splitlines()[0].endswith(": STOPPED")


def test_index_finds_nodes(run: ndls.Run) -> None:
    wanted = [5, 0, 899]
    np.testing.assert_array_equal(run.ids[run.index(wanted)], wanted)
    assert run.index(5).shape == (1,)
    with pytest.raises(KeyError, match="900"):
        run.index([3, 900])


def test_rows_are_what_exports_say(run: ndls.Run, tmp_path: Path) -> None:
    order = np.argsort(run.ids)
    for what, rows in (("smoothed", run.features), ("soft-labels", run.soft_labels)):
        exported = np.load(run.export(what, tmp_path / f"{what}.npy"), mmap_mode="r")
        np.testing.assert_array_equal(np.asarray(rows)[order], exported)
        np.testing.assert_array_equal(rows.nodes, np.arange(len(order)))
    lsi = np.load(run.export("lsi", tmp_path / "lsi.npy"))
    parts = [np.load(run.export("lsi", tmp_path / f"lsi-{i}.npy", part=f"{i}/3")) for i in (1, 2, 3)]
    np.testing.assert_array_equal(np.concatenate(parts), lsi)
    np.testing.assert_array_equal(run.k[order], lsi["k"])
    np.testing.assert_array_equal(run.capped[order], lsi["capped"])
    assert run.k.dtype == np.uint16
    table = run.lsi()
    np.testing.assert_array_equal(table["k"], run.k)
    assert table.column_names[-2:] == ["k", "capped"]
    assert run.lsi(["id"]).column_names == ["id"]
    predicted = np.load(run.export("predictions", tmp_path / "predictions.npy"))
    np.testing.assert_array_equal(run.predictions.column("label").to_numpy()[order], predicted["label"])
    with pytest.raises(ndls.Error, match="force"):
        run.export("lsi", tmp_path / "lsi.npy")


def test_hops_are_products(run: ndls.Run, arrays: Arrays) -> None:
    assert list(run.hops) == ["hop_0", "hop_1", "hop_2"]
    x = np.asarray(run.hops["hop_0"])[np.argsort(run.ids)].astype(np.float64)
    for hop in ("hop_1", "hop_2"):
        x = arrays.hop(x)
        np.testing.assert_allclose(np.asarray(run.hops[hop])[np.argsort(run.ids)], x, rtol=1e-4, atol=1e-5)


def test_nothing_is_copied(run: ndls.Run) -> None:
    rows = run.features
    view = rows[10:20]
    assert not view.flags.owndata
    assert not view.flags.writeable
    assert np.shares_memory(view, rows[15])
    assert np.shares_memory(view, np.asarray(rows))
    column = rows.table().column("feature").chunk(0).values
    assert column.buffers()[1].address == rows.chunks[0].__array_interface__["data"][0]


def test_edges_are_those_of_the_input(run: ndls.Run, arrays: Arrays) -> None:
    table = run.edges().to_table()
    found = set(zip(run.ids[table["src"].to_numpy()].tolist(), run.ids[table["dst"].to_numpy()].tolist(), strict=True))
    given = {(a, b) for a, b in zip(arrays.src.tolist(), arrays.dst.tolist(), strict=True) if a != b}
    assert found == given | {(b, a) for a, b in given}
    assert len(found) == table.num_rows


def test_report_and_models(run: ndls.Run) -> None:
    assert run.report["dataset"]["nodes"] == len(run.ids)
    assert {(m["split"], m["run"]) for m in run.models} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    text = repr(run)
    for part in ("COMPLETE", "900 nodes", "3 classes", "features: 900 rows of 8 values", "test accuracy", "hop_0, hop_1, hop_2"):
        assert part in text


def test_what_is_missing_names_its_command(tmp_path: Path) -> None:
    ndls.command("partition", progress=False, dataset="karate:", run=tmp_path / "run", memory="512MiB")
    run = ndls.open(tmp_path / "run")
    for name, verb in (("features", "ndls smooth"), ("k", "ndls lsi"), ("predictions", "ndls smooth-labels"), ("hops", "--keep-hops")):
        with pytest.raises(ndls.Error, match=verb):
            getattr(run, name)
    assert "34 nodes" in repr(run)
    with pytest.raises(ndls.Error, match=r"run\.json"):
        ndls.open(tmp_path)
    with pytest.raises(ndls.Error, match="s3"):
        ndls.open("s3://bucket/run")


def test_a_run_can_be_pickled(run: ndls.Run) -> None:
    again = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(again.features[:5], run.features[:5])


def test_some_targets(arrays: Arrays, tmp_path: Path) -> None:
    labels = np.where(np.arange(len(arrays.labels)) % 3 == 0, arrays.labels, -1)
    splits = np.where(labels < 0, 0, arrays.splits[:, 0])
    graph = ndls.from_arrays(arrays.src, arrays.dst, features=arrays.features, labels=labels, splits=splits)
    run = ndls.run(graph, tmp_path / "run", progress=False, targets="labelled", runs=1, epochs=2, memory="512MiB")
    rows = run.features
    np.testing.assert_array_equal(rows.nodes, np.flatnonzero(run.labels >= 0))
    ids = rows.column("id").to_numpy()
    np.testing.assert_array_equal(ids, run.ids[rows.nodes])
    np.testing.assert_array_equal(rows.rows_of(rows.nodes[[7, 3]]), [7, 3])
    with pytest.raises(KeyError, match="has rows of 300 nodes"):
        rows.rows_of(np.flatnonzero(run.labels < 0))
    batches = list(ndls.NodeRows(run, split="train").batches(64, shuffle=1))
    nodes = np.concatenate([b.nodes for b in batches])
    np.testing.assert_array_equal(np.sort(nodes), np.flatnonzero((run.splits[0] == 1) & (run.labels >= 0)))
    np.testing.assert_array_equal(np.concatenate([b.x for b in batches]), rows[rows.rows_of(nodes)])


def test_soft_labels_of_another_model(run: ndls.Run, arrays: Arrays, tmp_path: Path) -> None:
    before = np.array(run.predictions)
    # A model that is right in three of four cases, and never sure.
    rng = np.random.default_rng(3)
    guess = np.where(rng.random(len(run.labels)) < 0.75, run.labels, rng.integers(3, size=len(run.labels)))
    soft = np.full((len(guess), 3), 0.2, np.float32)
    soft[np.arange(len(guess)), guess] = 0.6

    one_split = ndls.from_arrays(arrays.src, arrays.dst, features=arrays.features, labels=arrays.labels, splits=arrays.splits[:, 0])
    own = ndls.run(one_split, tmp_path / "own", progress=False, runs=1, epochs=2, memory="512MiB")
    soft_own = np.empty_like(soft)
    soft_own[own.index(run.ids)] = soft
    order = np.random.default_rng(4).permutation(len(guess))
    smoothed = own.smooth_labels(soft_own[order], nodes=order, label_depth=2, progress=False, memory="512MiB")
    assert smoothed.path == tmp_path / "own-labels"
    assert smoothed.state == "COMPLETE"
    accuracy = smoothed.report["accuracy"]
    test = own.split("test")
    assert accuracy["base"]["test"]["mean"] == pytest.approx(np.mean(soft_own.argmax(1)[test] == own.labels[test]))
    labels = smoothed.predictions.column("label").to_numpy()
    assert accuracy["smoothed"]["test"]["mean"] == pytest.approx(np.mean(labels[test] == own.labels[test]))
    assert accuracy["smoothed"]["test"]["mean"] > accuracy["base"]["test"]["mean"]
    # The run itself is as it was, and its model is still there.
    np.testing.assert_array_equal(np.array(run.predictions), before)
    ndls.command("verify", progress=False, run=own.path)
    ndls.command("verify", progress=False, run=smoothed.path)
    assert (own.path / "model" / "model.json").exists()
    # Other soft labels take the place of the first ones; without noise, all are right before smoothing.
    sure = own.smooth_labels(np.eye(3)[own.labels], label_depth=0, progress=False, memory="512MiB")
    assert sure.path == smoothed.path
    assert sure.report["accuracy"]["base"]["test"]["mean"] == 1


def test_soft_labels_are_refused(run: ndls.Run, tmp_path: Path) -> None:
    n = len(run.labels)
    with pytest.raises(ValueError, match="shape"):
        run.smooth_labels(np.ones((n, 2)))
    with pytest.raises(ValueError, match="each of the 900 nodes once"):
        run.smooth_labels(np.ones((n, 3)), nodes=np.zeros(n))
    (tmp_path / "other").mkdir()
    with pytest.raises(ndls.Error, match="does not share its graph"):
        run.smooth_labels(np.ones((n, 3)), run=tmp_path / "other")


def test_text_ids(tmp_path: Path) -> None:
    # More than 32,768 rows, so that there are several record batches.
    n = 70_000
    rng = np.random.default_rng(2)
    names = np.array([f"paper-{i:05d}" for i in range(n)])
    edges = pa.table({"from": names[rng.integers(n, size=2 * n)], "to": names[np.arange(2 * n) % n]})
    x = rng.normal(size=(n, 4)).astype(np.float32)
    nodes = pa.table({"doi": names, "x": pa.FixedSizeListArray.from_arrays(x.reshape(-1), 4)})
    graph = ndls.from_arrow(edges, nodes, id="doi", features="x")
    run = ndls.run(graph, tmp_path / "run", progress=False, keep_hops="0", normalize="none", memory="512MiB")
    rows = run.hops["hop_0"]
    assert len(rows.chunks) > 2
    at = run.index(["paper-00000", "paper-69999", "paper-12345"])
    np.testing.assert_array_equal(rows[at], x[[0, 69999, 12345]])
    with pytest.raises(KeyError, match="paper-x"):
        run.index(["paper-x"])
    order = np.array([int(name[6:]) for name in np.asarray(run.ids).tolist()])
    np.testing.assert_array_equal(np.asarray(rows), x[order])
    np.testing.assert_array_equal(rows[30_000:40_000], x[order[30_000:40_000]])
    np.testing.assert_array_equal(rows[::-7], x[order[::-7]])
    np.testing.assert_array_equal(rows[np.array([[69_999, 1], [40_000, -1]])], x[order[np.array([[69_999, 1], [40_000, -1]])]])
    mask = rng.random(n) < 0.5
    np.testing.assert_array_equal(rows[mask], x[order[mask]])
    with pytest.raises(IndexError):
        rows[n]
    with pytest.raises(ValueError, match="as a copy"):
        np.asarray(rows, copy=False)
    # Batches cross the borders of record batches.
    loader = ndls.NodeRows(run, "hop_0")
    assert loader.shape == (n, 4)
    for shuffle in (None, 5):
        seen = [b.nodes for b in loader.batches(1000, shuffle=shuffle, memory=1 << 20)]
        np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(n))
    for b in loader.batches(999, shuffle=5, memory=1 << 20):
        np.testing.assert_array_equal(b.x, x[order[b.nodes]])


def test_rows_are_indexed_as_arrays_are(run: ndls.Run) -> None:
    rows, array = run.features, np.asarray(run.features)
    mask = np.arange(len(rows)) % 7 == 0
    keys: list[Any] = [
        (slice(0, 5), slice(0, 3)), (slice(None), 0), (3, 2), (-1, -1), (slice(None, None, -50), slice(None, None, 2)), ([1, 5], slice(1, 3)),
        ([1, 5, 5], [0, 1, 2]), (mask, 1), (mask, slice(2, 4)), (..., 0), (3, ...), (..., slice(0, 2)), (), (4,), (np.array([[1], [2]]), [0, 3]),
    ]  # fmt: skip
    for key in keys:
        np.testing.assert_array_equal(rows[key], array[key], err_msg=repr(key))
    with pytest.raises(IndexError):
        rows[0, 0, 0]
    with pytest.raises(IndexError):
        rows[0, rows.shape[1]]


def test_rows_are_summed_as_arrays_are(run: ndls.Run, tmp_path: Path) -> None:
    rows, array = run.features, np.asarray(run.features)
    np.testing.assert_array_equal(rows.T, array.T)
    for axis in (None, 0, 1, -1):
        for name in ("sum", "mean", "min", "max", "std"):
            want = getattr(array.astype(np.float64), name)(axis=axis)
            for got in (getattr(rows, name)(axis=axis), getattr(np, name)(rows, axis=axis)):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=f"{name}, {axis}")
                assert np.shape(got) == np.shape(want)
                assert got.dtype == rows.dtype


def test_one_model_has_no_spread(arrays: Arrays, tmp_path: Path) -> None:
    graph = ndls.from_arrays(arrays.src, arrays.dst, features=arrays.features, labels=arrays.labels, splits=arrays.splits[:, 0])
    one = ndls.run(graph, tmp_path / "run", progress=False, runs=1, epochs=3, memory="512MiB")
    assert re.search(r"test accuracy before label smoothing: \d+\.\d\d %", repr(one))
    assert "±" not in repr(one)


def test_damaged_directory(run: ndls.Run, tmp_path: Path) -> None:
    """Says of a damaged run directory what the program says of it, and reads what can be read."""
    bad = tmp_path / "bad"

    def wreck(*gone: str) -> None:
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(run.path, bad)
        for name in gone:
            (shutil.rmtree if (bad / name).is_dir() else Path.unlink)(bad / name)

    wreck("catalog.parquet")
    with pytest.warns(UserWarning, match=r"catalog\.parquet is missing.*makes it again") as warned:
        again = ndls.open(bad)
    assert np.array_equal(again.k, run.k)
    assert again.features.shape == run.features.shape
    assert pickle.loads(pickle.dumps(again)).state == "COMPLETE"
    said = json.loads(ndls.command("inspect", progress=False, run=bad, json=True))["problem"]
    assert str(warned[0].message) == said

    wreck("catalog")
    with pytest.warns(UserWarning, match=r"catalog/\d+\.parquet is missing"):
        again = ndls.open(bad)
    assert np.array_equal(again.labels, run.labels)

    wreck("catalog", "catalog.parquet")
    with pytest.raises(ndls.Error, match="catalog") as failed:
        ndls.open(bad)
    assert failed.value.status == 4
