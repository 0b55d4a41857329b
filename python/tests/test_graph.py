from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from conftest import Arrays, imported

import ndls
from ndls._graph import table_uri


def in_input_order(run: ndls.Run, rows: Any) -> Any:
    return np.asarray(rows)[np.argsort(run.ids)]


def test_arrays(arrays: Arrays, tmp_path: Path) -> None:
    graph = ndls.from_arrays(
        arrays.src.astype(np.int32), arrays.dst, features=arrays.features, labels=arrays.labels, splits=arrays.splits, folder=tmp_path / "graph"
    )
    assert graph.folder == tmp_path / "graph"
    run = imported(graph, tmp_path / "run")
    np.testing.assert_array_equal(in_input_order(run, run.hops["hop_0"]), arrays.features)
    np.testing.assert_allclose(in_input_order(run, run.hops["hop_1"]), arrays.hop(arrays.features), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(in_input_order(run, run.labels), arrays.labels)
    np.testing.assert_array_equal(in_input_order(run, run.splits[0]), arrays.splits[:, 0])
    assert len(run.edges().to_table()) == 2 * run.graph["edges"]


def test_features_in_a_file_are_not_copied(arrays: Arrays, tmp_path: Path) -> None:
    path = tmp_path / "x & y.npy"
    np.save(path, arrays.features)
    for given in (path, str(path), np.load(path, mmap_mode="r")):
        graph = ndls.from_arrays(arrays.src, arrays.dst, features=given)
        assert not (graph.folder / "features.npy").exists()
        assert "x %26 y.npy" in graph.uri
    run = imported(graph, tmp_path / "run")
    np.testing.assert_array_equal(in_input_order(run, run.hops["hop_0"]), arrays.features)
    # A part of the file is not the file.
    part = ndls.from_arrays(arrays.src[:5] % 100, arrays.dst[:5] % 100, features=np.load(path, mmap_mode="r")[100:200])
    np.testing.assert_array_equal(np.load(part.folder / "features.npy"), arrays.features[100:200])


def test_temporary_files_go_with_the_graph(arrays: Arrays) -> None:
    graph = ndls.from_arrays(arrays.src, arrays.dst)
    folder = graph.folder
    assert (folder / "edges.npy").exists()
    del graph
    assert not folder.exists()


def test_a_run_is_continued_from_other_files_with_the_same_bytes(arrays: Arrays, tmp_path: Path) -> None:
    for _ in range(2):
        graph = ndls.from_arrays(arrays.src, arrays.dst, features=arrays.features)
        run = ndls.run(graph, tmp_path / "run", progress=False, memory="512MiB")
        assert run.state == "COMPLETE"
    with pytest.raises(ndls.Error, match="other bytes") as caught:
        ndls.run(ndls.from_arrays(arrays.dst, arrays.src, features=arrays.features), tmp_path / "run", progress=False, memory="512MiB")
    assert caught.value.status == 5


def test_weights(arrays: Arrays, tmp_path: Path) -> None:
    src, dst = np.minimum(arrays.src, arrays.dst), np.maximum(arrays.src, arrays.dst)
    pairs = np.unique(np.stack([src, dst], 1)[src != dst], axis=0)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(pairs))
    graph = ndls.from_arrays(pairs[:, 0], pairs[:, 1], features=arrays.features, weights=weights)
    run = imported(graph, tmp_path / "run")
    hop = arrays._replace(src=pairs[:, 0], dst=pairs[:, 1]).hop(arrays.features, weights)
    np.testing.assert_allclose(in_input_order(run, run.hops["hop_1"]), hop, rtol=1e-4, atol=1e-5)


def test_directed(tmp_path: Path) -> None:
    graph = ndls.from_arrays([0, 1], [1, 2], features=np.eye(3), directed=True)
    run = imported(graph, tmp_path / "run", directed=True)
    # Each node has its own features, and those of the node whose edge leads to it.
    assert (in_input_order(run, run.hops["hop_1"]) > 0).tolist() == [[True, False, False], [True, True, False], [False, True, True]]


@pytest.mark.parametrize(
    ("labels", "classes", "codes"),
    [
        ([0, 1, -1, 1], ["0", "1"], [0, 1, -1, 1]),
        (np.array([[2.0], [np.nan], [0.0], [2.0]]), ["0", "2"], [1, -1, 0, 1]),
        (np.array(["b, c", None, 'say "a"', "b, c"], dtype=object), ["b, c", 'say "a"'], [0, -1, 1, 0]),
    ],
)
def test_labels(tmp_path: Path, labels: Any, classes: list[str], codes: list[int]) -> None:
    graph = ndls.from_arrays([0, 1, 2], [1, 2, 0], features=np.ones((4, 2)), labels=labels)
    run = imported(graph, tmp_path / "run")
    assert run.classes == classes
    assert in_input_order(run, run.labels).tolist() == codes


MASK = np.array([True, False, False, False])


@pytest.mark.parametrize(
    "splits",
    [
        [1, 2, 0, 3],
        ["train", "val", "", "test"],
        {"train": MASK, "val": np.roll(MASK, 1), "test": np.roll(MASK, 3)},
        {"train": MASK[:, None], "valid": np.roll(MASK, 1)[:, None], "test": np.roll(MASK, 3)[:, None]},
        {"train": [0], "valid": [1], "test": [3]},
    ],
)
def test_splits(tmp_path: Path, splits: Any) -> None:
    graph = ndls.from_arrays([0, 1, 2], [1, 2, 0], features=np.ones((4, 2)), labels=[0, 1, 0, 1], splits=splits)
    run = imported(graph, tmp_path / "run")
    assert in_input_order(run, run.splits[0]).tolist() == [1, 2, 0, 3]


def test_what_is_refused() -> None:
    for options, message in (
        ({"splits": {"train": MASK, "test": MASK}, "features": np.ones((4, 2))}, "in two of"),
        ({"splits": {"train": [4]}, "nodes": 4}, "not below"),
        ({"splits": {"training": [4]}, "nodes": 4}, "none of train"),
        ({"splits": {"train": [1]}}, "number of nodes"),
        ({"splits": [1, 4]}, "codes"),
        ({"labels": [0.5, 1]}, "fractions"),
        ({"labels": np.ones((2, 2))}, "no vector"),
        ({"features": np.ones(4)}, "no matrix"),
        ({"features": np.ones((4, 2)), "labels": [0, 1, 1]}, "4 rows of features and 3 labels"),
        ({"features": np.ones((4, 2)), "nodes": 5}, "5 nodes and 4 rows"),
        ({"weights": [1.0]}, "1 weights for 2 edges"),
    ):
        with pytest.raises(ValueError, match=message):
            ndls.from_arrays([0, 1], [1, 0], **options)
    with pytest.raises(ValueError, match="text"):
        ndls.from_arrays(["a"], ["b"])
    with pytest.raises(ValueError, match="two ends"):
        ndls.from_arrays([0, 1], [1])
    with pytest.raises(KeyError, match="no column 'weight'"):
        ndls.from_arrow(pa.table({"src": [1], "dst": [2]}), weight="weight")
    with pytest.raises(ValueError, match="table of nodes"):
        ndls.from_arrow(pa.table({"src": [1], "dst": [2]}), label="y")


def masked(values: Any, mask: Any) -> Any:
    return np.ma.masked_array(values, mask=np.array(mask, bool))


class OnMeta:
    """What _array looks at of a tensor of torch without values."""

    device = SimpleNamespace(type="meta")

    def detach(self) -> OnMeta:
        return self


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": masked(np.ones((4, 2)), [[0, 1]] * 4)}, r"features: 4 values are masked.*features\.filled"),
        ({"weights": masked([1.0, 2.0], [0, 1])}, r"weights: 1 values are masked"),
        ({"splits": {"train": masked([0, 1], [0, 1])}, "nodes": 4}, r"splits: train: 1 values are masked"),
        ({"features": np.ones((4, 2), complex)}, "complex128 of shape"),
        ({"features": np.ones((4, 2), "datetime64[s]")}, r"datetime64\[s\] of shape"),
        ({"features": np.array([["a", 1], ["b", 2]], object)}, "object of shape"),
        ({"features": np.zeros(4, [("a", "f4"), ("b", "f4")])}, "no matrix of numbers"),
        ({"features": np.float32(1)}, r"shape \(\) is no matrix"),
        ({"features": OnMeta()}, "meta has no values"),
        ({"weights": np.ones(2, complex)}, "weights are complex128"),
        ({"weights": np.ones(2, "timedelta64[s]")}, "weights are timedelta64"),
        ({"weights": ["a", "b"]}, "weights are <U1"),
        ({"labels": np.array(["2026-01-01"] * 4, "datetime64[D]")}, "labels are datetime64"),
        ({"labels": np.ones(4, complex)}, "labels are complex128"),
        ({"labels": np.int64(1)}, r"labels: shape \(\) is no vector"),
    ],
)
def test_arrays_of_other_kinds_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ndls.from_arrays([0, 1], [1, 0], **options)


def test_ends_that_are_missing() -> None:
    cases: list[tuple[Any, str]] = [
        (masked([0, 1], [0, 1]), "src and dst: 1 values are masked"),
        ([0.0, float("nan")], "src and dst are float64.*astype"),
        ([0, None], "src and dst are object"),
        (np.int64(1), r"shape \(\) is no vector"),
    ]
    for ends, message in cases:
        with pytest.raises(ValueError, match=message):
            ndls.from_arrays(ends, [1, 0])


def test_sparse_features(arrays: Arrays, tmp_path: Path) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    x = np.where(arrays.features > 0.5, arrays.features, 0).astype(np.float32)
    for i, features in enumerate((sparse.csr_matrix(x), sparse.coo_array(x.astype(np.float64)), sparse.csc_array(x))):
        run = imported(ndls.from_arrays(arrays.src, arrays.dst, features=features), tmp_path / f"run{i}")
        np.testing.assert_array_equal(in_input_order(run, run.hops["hop_0"]), x)
    path = tmp_path / "x.npz"
    sparse.save_npz(path, sparse.csr_matrix(x))
    assert ndls.from_arrays(arrays.src, arrays.dst, features=path, nodes=len(x)).uri.endswith("x.npz")

    twice = sparse.coo_array((np.array([1.0, 2.0]), (np.array([1, 1]), np.array([0, 0]))), shape=(2, 1))
    assert np.load(ndls.from_arrays([0, 1], [1, 0], features=twice, folder=tmp_path / "twice").folder / "features.npz")["data"].tolist() == [3]
    with pytest.raises(ValueError, match="sparse complex128"):
        ndls.from_arrays([0, 1], [1, 0], features=sparse.csr_matrix(np.eye(2, dtype=complex)))
    with pytest.raises(ValueError, match=r"labels: a sparse .*labels\.toarray"):
        ndls.from_arrays([0, 1], [1, 0], labels=sparse.csr_matrix(np.eye(2)))
    np.savez(tmp_path / "y.npz", y=x)
    with pytest.raises(ValueError, match="save_npz"):
        ndls.from_arrays([0, 1], [1, 0], features=tmp_path / "y.npz")


def test_arrays_of_many_forms(tmp_path: Path) -> None:
    plain = np.arange(8, dtype=np.float32).reshape(4, 2)
    readonly = plain.copy()
    readonly.flags.writeable = False
    forms: list[Any] = [
        plain.astype(np.float16),
        plain.astype(np.longdouble),
        plain.astype(">f4"),
        plain.astype(object).astype(np.float64),
        np.asfortranarray(plain),
        np.repeat(plain, 2, axis=1)[:, ::2],
        readonly,
        np.ma.masked_array(plain, mask=False),
        np.matrix(plain),
        plain.astype(int).tolist(),
    ]
    for form in forms:
        graph = ndls.from_arrays(np.array([0, 1], object), [1, 0], features=form)
        np.testing.assert_array_equal(np.load(graph.folder / "features.npy"), plain)


def test_masked_labels_are_none(tmp_path: Path) -> None:
    for labels, expected in (
        (masked([0, 1, 0, 1], [0, 0, 1, 0]), [0, 1, -1, 1]),
        (masked([0.0, 1.0, 0.0, 1.0], [0, 0, 1, 0]), [0, 1, -1, 1]),
        (np.array([0, 1, None, 1], object), [0, 1, -1, 1]),
    ):
        graph = ndls.from_arrays([0, 1], [1, 0], labels=labels)
        assert np.load(graph.folder / "labels.npy").tolist() == expected
    graph = ndls.from_arrays([0, 1], [1, 0], labels=masked(["a", "b"], [0, 1]))
    assert (graph.folder / "labels.csv").read_text().splitlines()[1:] == ['0,"a"', "1,"]


def test_columns_of_pandas(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series
    graph = ndls.from_arrays(series([0, 1], dtype="Int64"), series([1, 0]), labels=series([0, None], dtype="Int64"), nodes=2)
    assert np.load(graph.folder / "labels.npy").tolist() == [0, -1]
    graph = ndls.from_arrays([0, 1], [1, 0], labels=series(["a", None], dtype="category"))
    assert (graph.folder / "labels.csv").read_text().splitlines()[1:] == ['0,"a"', "1,"]
    graph = ndls.from_arrays([0, 1], [1, 0], labels=series(["a", pandas.NA], dtype="string"))
    assert (graph.folder / "labels.csv").read_text().splitlines()[1:] == ['0,"a"', "1,"]
    with pytest.raises(ValueError, match="src and dst are"):
        ndls.from_arrays(series([0, None], dtype="Int64"), series([1, 0]))
    with pytest.raises(ValueError, match="labels are datetime64"):
        ndls.from_arrays([0, 1], [1, 0], labels=series(pandas.to_datetime(["2026-01-01", None])))
    with pytest.raises(ValueError, match="of shape"):
        ndls.from_arrays([0, 1], [1, 0], features=pandas.DataFrame({"a": series([1, None], dtype="Int64"), "b": [1, 2]}))

    edges = pandas.DataFrame({"src": [0, 1], "dst": [1, 2]})
    nodes = pandas.DataFrame({"id": [0, 1, 2], "x": pandas.arrays.SparseArray([0.0, 1.0, 0.0])})
    run = imported(ndls.from_pandas(edges, nodes, features="x"), tmp_path / "run")
    assert in_input_order(run, run.hops["hop_0"]).tolist() == [[0], [1], [0]]
    with pytest.raises(ValueError, match="2 levels"):
        ndls.from_pandas(pandas.DataFrame({("e", "src"): [0], ("e", "dst"): [1]}))
    with pytest.raises(ValueError, match="name all of its levels"):
        ndls.from_pandas(edges.set_index(pandas.MultiIndex.from_tuples([(0, 0), (0, 1)], names=["a", None])))
    with pytest.raises(ndls.Error, match="1"):  # an id twice
        imported(ndls.from_pandas(edges, nodes.assign(id=[0, 1, 1]).set_index("id"), features="x"), tmp_path / "twice")


def test_lazy_frames_of_polars(arrays: Arrays, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    edges, nodes = (polars.LazyFrame(t) for t in tables(arrays))
    check_tables(imported(ndls.from_polars(edges, nodes, **COLUMNS), tmp_path / "run"), arrays)


def test_record_batches() -> None:
    graph = ndls.from_arrow(pa.record_batch({"src": [1, 2], "dst": [2, 3]}))
    assert pa.parquet.read_table(graph.folder / "edges.parquet").num_rows == 2


def tables(arrays: Arrays) -> tuple[dict[str, Any], dict[str, Any]]:
    """The graph as columns: ids are text, and some labels are missing."""
    name = [f"n{i:03d}" for i in range(len(arrays.labels))]
    topics = ["logic", "graphs", "sets"]
    edges = {"citing": [name[i] for i in arrays.src], "cited": [name[i] for i in arrays.dst], "year": [2000] * len(arrays.src)}
    nodes = {
        "paper": name,
        "topic": [topics[t] if i % 5 else None for i, t in enumerate(arrays.labels)],
        "part": [["", "train", "valid", "test"][s] for s in arrays.splits[:, 0]],
        "x": list(arrays.features.astype(np.float64)),
        "age": np.arange(len(name)) / 100,
    }
    return edges, nodes


COLUMNS: dict[str, Any] = {"src": "citing", "dst": "cited", "id": "paper", "features": ["x", "age"], "label": "topic", "split": "part"}


def check_tables(run: ndls.Run, arrays: Arrays) -> None:
    order = np.array([int(name[1:]) for name in np.asarray(run.ids).tolist()])
    x = np.concatenate([arrays.features, np.arange(len(order), dtype=np.float32)[:, None] / np.float32(100)], 1)
    np.testing.assert_allclose(np.asarray(run.hops["hop_0"]), x[order], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(run.hops["hop_1"]), arrays.hop(x)[order], rtol=1e-4, atol=1e-5)
    assert run.classes == ["graphs", "logic", "sets"]
    expected = np.where(order % 5 > 0, np.array([1, 0, 2])[arrays.labels[order]], -1)
    np.testing.assert_array_equal(run.labels, expected)
    np.testing.assert_array_equal(run.splits[0], arrays.splits[order, 0])


def test_pandas(arrays: Arrays, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    edges, nodes = (pandas.DataFrame(t) for t in tables(arrays))
    nodes["part"] = nodes["part"].astype("category")
    graph = ndls.from_pandas(edges, nodes.set_index("paper"), **COLUMNS)
    check_tables(imported(graph, tmp_path / "run"), arrays)


def test_polars(arrays: Arrays, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    edges, nodes = (polars.DataFrame(t) for t in tables(arrays))
    nodes = nodes.with_columns(polars.col("part").cast(polars.Categorical), polars.col("x").cast(polars.Array(polars.Float32, 8)))
    graph = ndls.from_polars(edges, nodes, **COLUMNS)
    check_tables(imported(graph, tmp_path / "run"), arrays)


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    edges = pa.table({"source": pa.array([2**40, 5], pa.int64()), "target": pa.array([5, 7], pa.int64())})
    nodes = pa.table({"id": pa.array([5, 7, 2**40, 1], pa.int64()), "x, y": [1.0, 2.0, 3.0, 4.0]})
    run = imported(ndls.from_arrow(edges, nodes, id="id", features="x, y"), tmp_path / "run")
    assert sorted(run.ids.tolist()) == [1, 5, 7, 2**40]
    assert run.hops["hop_0"][run.index([2**40, 7])].tolist() == [[3], [2]]


def test_categories_and_missing_numbers(tmp_path: Path) -> None:
    edges = pa.table({"src": [0, 1, 1], "dst": [1, 2, 3]})
    nodes = pa.table({"id": [0, 1, 2, 3], "kind": ["b", "a", None, "b"], "age": [3.0, None, 5.0, 0.0], "share": [0.5, 0.25, 0.5, 1.0]})
    columns: dict[str, Any] = {"id": "id", "features": ["age", "share"], "categories": "kind", "plain": "share"}
    run = imported(ndls.from_arrow(edges, nodes, **columns), tmp_path / "run", normalize="log", fill="neighbours")
    ages = [np.log1p(3), (np.log1p(3) + np.log1p(5)) / 3, np.log1p(5), 0]
    expected = np.array([[ages[0], 0.5, 0, 1, 0], [ages[1], 0.25, 1, 0, 1], [ages[2], 0.5, 0, 0, 0], [0, 1, 0, 1, 0]])
    np.testing.assert_allclose(run.hops["hop_0"][run.index(range(4))], expected, rtol=1e-6)
    with pytest.raises(KeyError, match="city"):
        ndls.from_arrow(edges, nodes, id="id", categories=["city"])
    with pytest.raises(ValueError, match="give it as nodes"):
        table_uri("edges.csv", plain="share")
    assert table_uri("e.csv", "n.csv", categories=["a", "b"], features="x") == "table:e.csv?nodes=n.csv&features=x&categories=a,b"


def test_attributes_of_pyg(arrays: Arrays, tmp_path: Path) -> None:
    # test_torch.py has the real class; what counts are the names of its attributes.
    data = SimpleNamespace(
        edge_index=np.stack([arrays.src, arrays.dst]),
        x=arrays.features,
        y=arrays.labels,
        num_nodes=len(arrays.labels),
        train_mask=arrays.splits == 1,
        val_mask=arrays.splits == 2,
        edge_weight=np.full(len(arrays.src), 0.5),
    )
    run = imported(ndls.from_pyg(data, weight="edge_weight"), tmp_path / "run")
    np.testing.assert_array_equal(run.splits[0], np.where(arrays.splits < 3, arrays.splits, 0)[run.ids, 0])
    np.testing.assert_array_equal(run.labels, arrays.labels[run.ids])
    hop = arrays.hop(arrays.features, data.edge_weight)
    np.testing.assert_allclose(in_input_order(run, run.hops["hop_1"]), hop, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="no tensor w"):
        ndls.from_pyg(data, weight="w")
    with pytest.raises(ValueError, match="no edge_index"):
        ndls.from_pyg(SimpleNamespace(x=arrays.features))


def check_dgl(graph: Any, arrays: Arrays, path: Path) -> None:
    run = imported(ndls.from_dgl(graph, weight="w"), path / "run")
    np.testing.assert_array_equal(run.splits[0], np.where(arrays.splits < 3, arrays.splits, 0)[run.ids, 0])
    np.testing.assert_array_equal(run.labels, arrays.labels[run.ids])
    hop = arrays.hop(arrays.features, np.full(len(arrays.src), 0.5))
    np.testing.assert_allclose(in_input_order(run, run.hops["hop_1"]), hop, rtol=1e-4, atol=1e-5)
    # As OGB gives them: classes and nodes of each part beside the graph.
    parts = {name: np.flatnonzero(arrays.splits[:, 0] == code) for code, name in enumerate(["train", "valid", "test"], 1)}
    graph = ndls.from_dgl(graph, features="halves", labels=arrays.labels[:, None] + 1, splits=parts)
    run = imported(graph, path / "ogb")
    np.testing.assert_array_equal(run.splits[0], arrays.splits[run.ids, 0])
    assert run.classes == ["1", "2", "3"]
    np.testing.assert_array_equal(in_input_order(run, run.hops["hop_0"]), arrays.features / 2)


def test_names_of_dgl(arrays: Arrays, tmp_path: Path) -> None:
    # What counts are the names of its attributes and tensors.
    graph = SimpleNamespace(
        ntypes=["_N"],
        etypes=["_E"],
        edges=lambda order: (arrays.src, arrays.dst),
        num_nodes=lambda: len(arrays.labels),
        ndata={
            "feat": arrays.features,
            "halves": arrays.features / 2,
            "label": arrays.labels,
            "train_mask": arrays.splits == 1,
            "val_mask": arrays.splits == 2,
        },
        edata={"w": np.full(len(arrays.src), 0.5)},
    )
    check_dgl(graph, arrays, tmp_path)
    assert ndls.from_dgl(graph, labels="label").uri.count("labels=") == 1
    for name in ("weight", "features", "labels"):
        missing: dict[str, Any] = {name: "x"}
        with pytest.raises(ValueError, match="no tensor x"):
            ndls.from_dgl(graph, **missing)
    graph.etypes = ["cites", "writes"]
    with pytest.raises(ValueError, match="to_homogeneous"):
        ndls.from_dgl(graph)


def test_dgl(arrays: Arrays, tmp_path: Path) -> None:
    dgl, torch = pytest.importorskip("dgl"), pytest.importorskip("torch")
    graph = dgl.graph((torch.from_numpy(arrays.src), torch.from_numpy(arrays.dst)), num_nodes=len(arrays.labels))
    x = torch.from_numpy(arrays.features)
    masks = {f"{name}_mask": torch.from_numpy(arrays.splits == code) for code, name in ((1, "train"), (2, "val"))}
    graph.ndata.update({"feat": x, "halves": x / 2, "label": torch.from_numpy(arrays.labels), **masks})
    graph.edata["w"] = torch.full((len(arrays.src),), 0.5)
    check_dgl(graph, arrays, tmp_path)


def test_networkx(arrays: Arrays, tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    g = networkx.Graph()
    for i, (x, label, split) in enumerate(zip(arrays.features, arrays.labels, arrays.splits[:, 0], strict=True)):
        g.add_node(i, x=x.tolist(), topic=int(label), part=["", "train", "valid", "test"][split])
    g.add_edges_from(zip(arrays.src.tolist(), arrays.dst.tolist(), strict=True))
    run = imported(ndls.from_networkx(g, features="x", label="topic", split="part"), tmp_path / "run")
    np.testing.assert_allclose(in_input_order(run, run.hops["hop_1"]), arrays.hop(arrays.features), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(in_input_order(run, run.labels), arrays.labels)
    np.testing.assert_array_equal(in_input_order(run, run.splits[0]), arrays.splits[:, 0])
    club = networkx.karate_club_graph()
    run = ndls.run(ndls.from_networkx(club, weight="weight", label="club"), tmp_path / "club", progress=False, memory="512MiB")
    assert (run.graph["edges"], run.classes) == (78, ["Mr. Hi", "Officer"])
    strength = run.nodes(["strength"])["strength"].to_numpy()
    np.testing.assert_allclose(strength, [club.degree(int(i), weight="weight") for i in run.ids])
    with pytest.raises(ValueError, match="convert_node_labels_to_integers"):
        ndls.from_networkx(networkx.Graph([(1, "a")]))
    with pytest.raises(ValueError, match="have no attribute 'x'"):
        ndls.from_networkx(networkx.path_graph(3), features="x")
