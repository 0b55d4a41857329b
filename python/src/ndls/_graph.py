"""Graphs of other packages, as files that ndls reads."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

if TYPE_CHECKING:
    import networkx
    import pandas
    import polars

Folder = str | os.PathLike[str] | None

# SPLITS are the names of the codes of splits: code 1 is train.
SPLITS = ("", "train", "valid", "test")

# ROW_GROUP is the size of a row group of the tables that are written.
ROW_GROUP = 32 << 20


class Graph:
    """A graph in files, as ``ndls.run`` takes it.

    Attributes:
        uri: The dataset URI; ``str(graph)`` is the same.
        folder: The folder with the files that were written.

    Where no folder was given, it is a temporary one that is removed with this object: keep the
    object until the run is done. A later run from other files with the same bytes continues the
    same run directory.
    """

    def __init__(self, uri: str, folder: Path, temporary: tempfile.TemporaryDirectory[str] | None) -> None:
        self.uri = uri
        self.folder = folder
        self._temporary = temporary

    def __str__(self) -> str:
        return self.uri

    def __repr__(self) -> str:
        return f"<ndls graph {self.uri}>"


def from_arrays(
    src: npt.ArrayLike,
    dst: npt.ArrayLike,
    *,
    features: Any = None,
    labels: Any = None,
    splits: Any = None,
    weights: npt.ArrayLike | None = None,
    nodes: int | None = None,
    directed: bool = False,
    repeated: str | None = None,
    folder: Folder = None,
) -> Graph:
    """Writes a graph that is in arrays, tensors or lists.

    Args:
        src: The first node of each edge: integers of shape (edges,), from 0.
        dst: The second node of each edge. Edges count in both directions, and repeated ones once.
        features: Numbers of shape (nodes, features), also as a sparse matrix of SciPy. A path of an
            .npy file or of one by ``scipy.sparse.save_npz``, or an array that
            ``numpy.load(path, mmap_mode="r")`` returned, is used as it is, without a copy.
        labels: A class for each node: integers (-1: none), floats (NaN: none) or names (None or
            "": none), of shape (nodes,) or (nodes, 1).
        splits: Which nodes are for training, validation and test. Either a dict with ``train``,
            ``valid`` (or ``val``) and ``test``, whose values are masks of shape (nodes,) or
            (nodes, splits), or arrays of nodes; or codes 0 none, 1 train, 2 valid, 3 test, or the
            names, of shape (nodes,) or (nodes, splits).
        weights: A positive number for each edge.
        nodes: The number of nodes, where neither features nor labels tell it. Without any of
            them, the nodes are those that occur in edges.
        directed: Whether an edge leads from ``src`` to ``dst`` only. The rule ``ndls`` needs edges
            without directions.
        repeated: ``"sum"`` adds up the weights of repeated edges. Without it they have to be equal.
        folder: The folder for the files, by default a temporary one.

    Raises:
        ValueError: Shapes do not fit together, or a value is none of the above.
    """
    ends = [_vector(e, "src and dst") for e in (src, dst)]
    if len(ends[0]) != len(ends[1]):
        raise ValueError(f"src has {len(ends[0])} nodes and dst {len(ends[1])}: each edge has two ends")
    for end in ends:
        if end.dtype.kind in "fc":
            raise ValueError(f"src and dst are {end.dtype}: nodes are integers; none may be missing, and src.astype(int) makes integers")
        if end.dtype.kind not in "iu":
            raise ValueError(f"src and dst are {end.dtype}: nodes are integers; use from_pandas, from_polars or from_arrow for ids that are text")
    out, temporary = _folder(folder)
    keys: dict[str, Any] = {}
    if weights is None:
        name = "edges.npy"
        kind = np.promote_types(ends[0].dtype, ends[1].dtype)
        kind = kind if kind.kind in "iu" else np.dtype(np.int64)
        both = np.lib.format.open_memmap(out / name, mode="w+", dtype=kind.newbyteorder("<"), shape=(2, len(ends[0])))
        both[0], both[1] = ends
        both.flush()
        del both
    else:
        name, weight = "edges.parquet", _vector(weights, "weights")
        if weight.dtype.kind not in "iuf":
            raise ValueError(f"weights are {weight.dtype}: a weight is a positive number")
        if len(weight) != len(ends[0]):
            raise ValueError(f"there are {len(weight)} weights for {len(ends[0])} edges")
        _write(pa.table({"src": pa.array(ends[0]), "dst": pa.array(ends[1]), "weight": pa.array(weight)}), out / name)
        keys = {"src": "src", "dst": "dst", "weight": "weight", "repeated": repeated}
    keys |= {"nodes": nodes, "directed": "true" if directed else None}
    counts = {} if nodes is None else {"nodes": nodes}
    if features is not None:
        keys["features"], counts["rows of features"] = _features(features, out)
    if labels is not None:
        file, counts["labels"] = _labels(labels, out)
        keys["labels"] = file
        if file.suffix == ".csv":  # its rows do not tell the number of nodes
            keys["nodes"] = counts["labels"]
    if len(set(counts.values())) > 1:
        raise ValueError(f"there are {' and '.join(f'{n} {what}' for what, n in counts.items())}: each node has one of each")
    rows = next(iter(counts.values()), None)
    if splits is not None:
        np.save(out / "splits.npy", _splits(splits, rows))
        keys["splits"] = out / "splits.npy"
    return Graph(_uri("edges", out / name, keys), out, temporary)


def from_pyg(
    data: Any, *, splits: Any = None, weight: str | None = None, directed: bool = False, repeated: str | None = None, folder: Folder = None
) -> Graph:
    """Writes a ``torch_geometric.data.Data``.

    It takes ``edge_index``, ``x``, ``y``, ``train_mask``, ``val_mask`` and ``test_mask``, as far as
    they are there, and ``num_nodes``.

    Args:
        data: The graph, with one type of nodes and of edges.
        splits: Nodes in place of the masks, as for ``from_arrays``, such as what
            ``PygNodePropPredDataset.get_idx_split()`` returns.
        weight: The name of a tensor with a weight for each edge, such as ``"edge_weight"``.
        directed: As for ``from_arrays``, and so are the next two.
        repeated: ``"sum"`` or None.
        folder: The folder for the files.

    Raises:
        ValueError: ``data`` has no ``edge_index``, or tensors do not fit together.
    """
    edges = getattr(data, "edge_index", None)
    if edges is None:
        raise ValueError(f"{type(data).__name__} has no edge_index: a torch_geometric.data.Data with one type of nodes and of edges is needed")
    src, dst = _array(edges, "edge_index")
    if splits is None:
        masks = {name: getattr(data, f"{key}_mask", None) for name, key in (("train", "train"), ("valid", "val"), ("test", "test"))}
        splits = {name: mask for name, mask in masks.items() if mask is not None} or None
    weights = None
    if weight is not None:
        weights = getattr(data, weight, None)
        if weights is None:
            raise ValueError(f"the graph has no tensor {weight}")
    return from_arrays(
        src,
        dst,
        features=getattr(data, "x", None),
        labels=getattr(data, "y", None),
        splits=splits,
        weights=weights,
        nodes=data.num_nodes,
        directed=directed,
        repeated=repeated,
        folder=folder,
    )


def from_dgl(
    graph: Any,
    *,
    features: str | None = None,
    labels: Any = None,
    splits: Any = None,
    weight: str | None = None,
    directed: bool = False,
    repeated: str | None = None,
    folder: Folder = None,
) -> Graph:
    """Writes a ``dgl.DGLGraph`` with one type of nodes and of edges.

    It takes ``feat``, ``label``, ``train_mask``, ``val_mask`` and ``test_mask`` of ``graph.ndata``,
    as far as they are there.

    Args:
        graph: The graph.
        features: The name of another tensor of ``graph.ndata`` that has the features.
        labels: The name of another tensor that has the classes, or classes as for ``from_arrays``,
            such as those that ``DglNodePropPredDataset`` has beside the graph.
        splits: Nodes in place of the masks, as for ``from_arrays``, such as what
            ``DglNodePropPredDataset.get_idx_split()`` returns.
        weight: The name of a tensor of ``graph.edata`` with a weight for each edge.
        directed: As for ``from_arrays``, and so are the next two.
        repeated: ``"sum"`` or None.
        folder: The folder for the files.

    Raises:
        ValueError: There are several types, or no tensor of a name, or tensors do not fit together.
    """
    if len(graph.ntypes) != 1 or len(graph.etypes) != 1:
        raise ValueError(f"the graph has nodes of {graph.ntypes} and edges of {graph.etypes}: dgl.to_homogeneous(graph) makes one type of each")

    def named(tensors: Mapping[str, Any], name: str) -> Any:
        if name not in tensors:
            raise ValueError(f"the graph has no tensor {name}: it has {sorted(tensors)}")
        return tensors[name]

    src, dst = graph.edges(order="eid")
    if splits is None:
        masks = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}
        splits = {name: graph.ndata[mask] for name, mask in masks.items() if mask in graph.ndata} or None
    if labels is None:
        labels = graph.ndata.get("label")
    elif isinstance(labels, str):
        labels = named(graph.ndata, labels)
    return from_arrays(
        src,
        dst,
        features=graph.ndata.get("feat") if features is None else named(graph.ndata, features),
        labels=labels,
        splits=splits,
        weights=None if weight is None else named(graph.edata, weight),
        nodes=graph.num_nodes(),
        directed=directed,
        repeated=repeated,
        folder=folder,
    )


def from_networkx(
    graph: networkx.Graph[Any],
    *,
    features: str | None = None,
    label: str | None = None,
    split: str | None = None,
    weight: str | None = None,
    directed: bool = False,
    repeated: str | None = None,
    folder: Folder = None,
) -> Graph:
    """Writes a NetworkX graph. Its nodes are integers or text, and keep these as ids.

    Args:
        graph: A graph of any class. Edges of a ``DiGraph`` count in both directions, too.
        features: The attribute of nodes that has a list of numbers; all nodes have it.
        label: The attribute of nodes that has the class; nodes without it have no label.
        split: The attribute that has ``"train"``, ``"valid"`` or ``"test"``.
        weight: The attribute of edges that has the weight; edges without it have weight 1, as in
            NetworkX.
        directed: As for ``from_arrays``, and so are the next two.
        repeated: ``"sum"`` or None.
        folder: The folder for the files.

    Raises:
        ValueError: Nodes are of other types, or of both; or a node has no features.
    """
    ids = list(graph.nodes())
    kinds = {str if isinstance(i, str) else int if isinstance(i, (int, np.integer)) and not isinstance(i, bool) else None for i in ids}
    if len(kinds) > 1 or None in kinds:
        raise ValueError("nodes have to be all integers or all text: networkx.convert_node_labels_to_integers(graph) makes integers")
    kind = pa.string() if kinds == {str} else pa.int64()
    table: dict[str, Any] = {"id": pa.array(ids, kind)}
    if features is not None:
        rows = [graph.nodes[i].get(features) for i in ids]
        if missing := [i for i, row in zip(ids, rows, strict=True) if row is None]:
            raise ValueError(f"{len(missing)} nodes have no attribute {features!r}, the first of them {missing[0]!r}")
        try:
            matrix = np.asarray(rows, dtype=np.float32).reshape(len(ids), -1)
        except ValueError as error:
            raise ValueError(f"the attributes {features!r} are no lists of numbers of equal length: {error}") from error
        table["features"] = pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), matrix.shape[1])
    for name, attribute in (("label", label), ("split", split)):
        if attribute is not None:
            values = [graph.nodes[i].get(attribute) for i in ids]
            table[name] = pa.array([None if v is None else str(v) for v in values], pa.string())
    links = list(graph.edges(data=weight, default=1)) if weight is not None else [(*e[:2], 1) for e in graph.edges()]
    edges: dict[str, Any] = {"src": pa.array([e[0] for e in links], kind), "dst": pa.array([e[1] for e in links], kind)}
    if weight is not None:
        edges["weight"] = pa.array([e[2] for e in links], pa.float64())
    return from_arrow(
        pa.table(edges),
        pa.table(table),
        src="src",
        dst="dst",
        weight=None if weight is None else "weight",
        id="id",
        features=None if features is None else ["features"],
        label=None if label is None else "label",
        split=None if split is None else "split",
        directed=directed,
        repeated=repeated,
        folder=folder,
    )


def from_arrow(
    edges: pa.Table,
    nodes: pa.Table | None = None,
    *,
    src: str | None = None,
    dst: str | None = None,
    weight: str | None = None,
    id: str | None = None,
    features: Sequence[str] | str | None = None,
    categories: Sequence[str] | str | None = None,
    plain: Sequence[str] | str | None = None,
    label: str | None = None,
    split: str | None = None,
    directed: bool = False,
    repeated: str | None = None,
    missing: Sequence[str] | str | None = None,
    folder: Folder = None,
) -> Graph:
    """Writes a graph that is in tables. Ids are integers or text, and keep their type in a run.

    Args:
        edges: A row for each edge. Whatever ``pyarrow.table`` takes will do, such as a record batch.
        nodes: A row for each node. Without it the nodes are those that occur in edges.
        src: The column of ``edges`` with the id of one end. Without it both columns are found by
            names such as ``src`` and ``dst``, or ``source`` and ``target``.
        dst: The column with the id of the other end.
        weight: The column with the weight of each edge.
        id: The column of ``nodes`` with the id. It is found by the name ``id`` or ``node``.
        features: Columns of ``nodes``: numbers, or lists of numbers of equal length.
        categories: Columns of ``nodes`` with text or whole numbers, each value of which becomes a feature of 0 and 1.
        plain: Those of ``features`` that ``normalize="log"`` and ``"quantile"`` leave as they are.
        label: The column of ``nodes`` with the class; null is none.
        split: The column of ``nodes`` with ``"train"``, ``"valid"`` or ``"test"``.
        directed: As for ``from_arrays``, and so are the next two.
        repeated: ``"sum"`` or None.
        missing: Words in columns of text that stand for no value, such as ``["NA", "NULL"]``. Without it
            they are ids and classes like others, and an import warns of them.
        folder: The folder for the files.

    Raises:
        KeyError: A table has no such column.
    """
    edges = edges if isinstance(edges, pa.Table) else pa.table(edges)
    nodes = nodes if nodes is None or isinstance(nodes, pa.Table) else pa.table(nodes)
    names, coded = _names(features), _names(categories)
    edges = _columns(edges, "edges", [src, dst, weight], src is not None and dst is not None)
    if nodes is not None:
        nodes = _columns(nodes, "nodes", [id, *names, *coded, label, split], id is not None)
    out, temporary = _folder(folder)
    _write(edges, out / "edges.parquet")
    if nodes is not None:
        _write(nodes, out / "nodes.parquet")
    uri = table_uri(
        str(out / "edges.parquet"),
        None if nodes is None else str(out / "nodes.parquet"),
        src=src,
        dst=dst,
        weight=weight,
        id=id,
        features=names,
        categories=coded,
        plain=plain,
        label=label,
        split=split,
        directed=directed,
        repeated=repeated,
        missing=missing,
    )
    return Graph(uri, out, temporary)


def table_uri(
    edges: str,
    nodes: str | None = None,
    *,
    src: str | None = None,
    dst: str | None = None,
    weight: str | None = None,
    id: str | None = None,
    features: Sequence[str] | str | None = None,
    categories: Sequence[str] | str | None = None,
    plain: Sequence[str] | str | None = None,
    label: str | None = None,
    split: str | None = None,
    directed: bool = False,
    repeated: str | None = None,
    missing: Sequence[str] | str | None = None,
) -> str:
    """Spells the dataset URI of tables that are written already; the names of columns are those of ``from_arrow``."""
    columns = {"id": id, "features": _names(features), "categories": _names(categories), "plain": _names(plain), "label": label, "split": split}
    if nodes is None and any(columns.values()):
        raise ValueError(f"{', '.join(columns)} name columns of a table of nodes: give it as nodes")
    keys: dict[str, Any] = {"src": src, "dst": dst, "weight": weight, "repeated": repeated, "directed": "true" if directed else None}
    keys["missing"] = _names(missing)
    if nodes is not None:
        keys |= {"nodes": nodes} | columns
    return _uri("table", edges, keys)


def from_pandas(edges: pandas.DataFrame, nodes: pandas.DataFrame | None = None, **columns: Any) -> Graph:
    """Writes a graph that is in pandas tables; ``columns`` are those of ``from_arrow``.

    An index with a name is a column of that name.
    """

    def table(frame: pandas.DataFrame) -> pa.Table:
        named = all(name is not None for name in frame.index.names)
        if not named and any(name is not None for name in frame.index.names):
            raise ValueError(f"the index has the names {list(frame.index.names)}: name all of its levels, or none")
        if frame.columns.nlevels > 1:
            raise ValueError(f"columns have {frame.columns.nlevels} levels: frame.columns = ['_'.join(c) for c in frame.columns] makes one of them")
        dense = {name: frame[name].sparse.to_dense() for name, kind in frame.dtypes.items() if str(kind).startswith("Sparse")}
        frame = frame.assign(**dense) if dense else frame
        return pa.Table.from_pandas(frame.reset_index() if named else frame, preserve_index=False)

    return from_arrow(table(edges), None if nodes is None else table(nodes), **columns)


def from_polars(edges: polars.DataFrame | polars.LazyFrame, nodes: polars.DataFrame | polars.LazyFrame | None = None, **columns: Any) -> Graph:
    """Writes a graph that is in polars tables; ``columns`` are those of ``from_arrow``.

    A LazyFrame is collected by the streaming engine of polars: its result has to fit in memory.
    """

    def table(frame: Any) -> pa.Table:
        return (frame.collect(engine="streaming") if hasattr(frame, "collect") else frame).to_arrow()

    return from_arrow(table(edges), None if nodes is None else table(nodes), **columns)


def _names(names: Sequence[str] | str | None) -> list[str]:
    """Returns a list of names, of which one may stand alone."""
    return [names] if isinstance(names, str) else list(names or [])


def _folder(folder: Folder) -> tuple[Path, tempfile.TemporaryDirectory[str] | None]:
    """Makes the folder for the files of a graph."""
    if folder is None:
        temporary = tempfile.TemporaryDirectory(prefix="ndls-graph-")
        return Path(temporary.name), temporary
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return path, None


def _uri(kind: str, path: Path | str, keys: Mapping[str, Any]) -> str:
    """Spells a dataset URI."""

    def escape(value: Any) -> str:
        if isinstance(value, list):
            return ",".join(escape(v) for v in value)
        return re.sub("[%?&#,]", lambda found: f"%{ord(found[0]):02X}", str(value))

    given = "&".join(f"{key}={escape(value)}" for key, value in keys.items() if value is not None and value != [])
    return f"{kind}:{escape(path)}" + (f"?{given}" if given else "")


def _array(values: Any, what: str) -> npt.NDArray[Any]:
    """Returns an array or a tensor as NumPy array, without a copy where that is possible."""
    if hasattr(values, "detach"):  # a tensor of torch
        values = _tensor(values, what)
    if hasattr(values, "tocsr"):  # of scipy.sparse
        raise ValueError(f"{what}: a sparse {type(values).__name__} of shape {values.shape}; give {what}.toarray()")
    if np.ma.isMaskedArray(values):
        if hidden := int(np.ma.getmaskarray(values).sum()):
            raise ValueError(f"{what}: {hidden} values are masked, and what is below a mask is no value; give {what}.filled(…)")
        values = values.data
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{what}: a {type(values).__name__} is no array: {error}") from error
    if array.dtype.kind == "O" and array.ndim == 1:  # of pandas with a type of its own, or of numbers one by one
        inferred = _inferred(array)
        array = inferred if inferred.shape == array.shape and inferred.dtype.kind in "iufbc" else array
    elif array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    elif array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    return array


def _inferred(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns an array of objects as one of the type that its values have."""
    try:
        return np.array(array.tolist())
    except (TypeError, ValueError, OverflowError):  # lists of unequal lengths, or values without a type in common
        return array


def _tensor(tensor: Any, what: str) -> Any:
    """Returns a tensor of torch as NumPy array."""
    if tensor.device.type == "meta":
        raise ValueError(f"{what}: a tensor on the device meta has no values")
    tensor = tensor.detach().cpu()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if str(tensor.layout) != "torch.strided":
        tensor = tensor.to_dense()
    if tensor.dtype.is_floating_point and str(tensor.dtype) not in ("torch.float16", "torch.float32", "torch.float64"):
        tensor = tensor.float()  # NumPy has no bfloat16 and no float8
    return tensor.resolve_conj().resolve_neg().numpy()


def _vector(values: Any, what: str) -> npt.NDArray[Any]:
    array = _array(values, what)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{what}: shape {array.shape} is no vector")
    return array


def _features(features: Any, out: Path) -> tuple[Path, int]:
    """Returns the file of features, which is written unless they are one, and the number of rows."""
    if isinstance(features, (str, os.PathLike)):
        path = Path(os.fspath(features)).absolute()
        if path.suffix != ".npz":
            return path, len(np.load(path, mmap_mode="r"))
        with np.load(path) as held:
            if "shape" not in held:
                raise ValueError(f"{path}: a matrix that scipy.sparse.save_npz has written is needed; it has {list(held)}")
            return path, int(held["shape"][0])
    if hasattr(features, "tocsr"):  # of scipy.sparse
        return _sparse(features, out)
    if isinstance(features, np.memmap) and (whole := _file_of(features)):
        return whole, len(features)
    array = _array(features, "features")
    if array.ndim != 2 or array.dtype.kind not in "iufb":
        raise ValueError(f"features: {array.dtype} of shape {array.shape} is no matrix of numbers with a row for each node")
    if array.dtype == bool:
        array = array.view(np.uint8)
    np.save(out / "features.npy", np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)))
    return out / "features.npy", len(array)


def _sparse(features: Any, out: Path) -> tuple[Path, int]:
    """Writes a sparse matrix of SciPy as one in CSR form, without making it dense."""
    if features.ndim != 2 or features.dtype.kind not in "iufb":
        raise ValueError(f"features: a sparse {features.dtype} of shape {features.shape} is no matrix of numbers with a row for each node")
    rows = features.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if rows.dtype.kind == "b":
        rows = rows.astype(np.uint8)
    # As scipy.sparse.save_npz writes it.
    np.savez(out / "features.npz", format=b"csr", shape=rows.shape, data=rows.data, indices=rows.indices, indptr=rows.indptr)
    return out / "features.npz", int(rows.shape[0])


def _file_of(array: np.memmap[Any, Any]) -> Path | None:
    """Returns the .npy file of which an array is the whole content, or None."""
    name = getattr(array, "filename", None)
    if name is None or Path(name).suffix != ".npy":
        return None
    whole = np.load(name, mmap_mode="r")
    # What has the shape and the strides of all that the file holds is no view of a part.
    alike = whole.shape == array.shape and whole.dtype == array.dtype and whole.strides == array.strides
    return Path(name).absolute() if alike and whole.flags.c_contiguous and array.mode != "c" else None


def _labels(labels: Any, out: Path) -> tuple[Path, int]:
    """Writes the labels."""
    if np.ma.isMaskedArray(labels):  # what is masked is none
        values = np.ma.getdata(labels).astype(object)
        values[np.ma.getmaskarray(labels)] = None
        labels = values
    array = _vector(labels, "labels")
    if array.dtype.kind in "mMcV":
        raise ValueError(f"labels are {array.dtype}: a label is a whole number or a name")
    if array.dtype.kind == "O":
        array = _whole(array)
    if array.dtype.kind == "f":
        none = np.isnan(array)
        whole = np.where(none, -1, array)
        if (whole != np.floor(whole)).any():
            raise ValueError("labels are numbers with fractions: a label is a class")
        array = whole.astype(np.int64)
    if array.dtype.kind in "iub":
        np.save(out / "labels.npy", array.astype(np.int32 if array.dtype.kind == "b" else array.dtype.newbyteorder("<"), copy=False))
        return out / "labels.npy", len(array)
    names = pa.array([None if _none(v) or v == "" else str(v) for v in array.tolist()], pa.string())
    pyarrow.csv.write_csv(pa.table({"id": pa.array(np.arange(len(array))), "label": names}), out / "labels.csv")
    return out / "labels.csv", len(array)


def _none(value: Any) -> bool:
    """Says whether a value is None, NaN, or the NA of pandas, which is neither equal to itself nor different."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _whole(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns numbers among which some are missing as integers, -1 for those, or floats, NaN; other objects as they are."""
    values = array.tolist()
    if all(_none(v) or isinstance(v, (int, np.integer)) for v in values):
        return np.array([-1 if _none(v) else int(v) for v in values], np.int64)
    if all(_none(v) or isinstance(v, (int, float, np.number)) for v in values):
        return np.array([np.nan if _none(v) else float(v) for v in values])
    return array


def _splits(splits: Any, nodes: int | None) -> npt.NDArray[np.uint8]:
    """Returns a code for each node, and for each split where there are several."""
    if not isinstance(splits, Mapping):
        codes = _array(splits, "splits")
        if codes.dtype.kind in "UOS":
            names = {name: code for code, name in enumerate(SPLITS)} | {"val": 2, "validation": 2, "none": 0, None: 0}
            try:
                codes = np.vectorize(lambda v: names[v.decode() if isinstance(v, bytes) else v], otypes=[np.uint8])(codes)
            except KeyError as error:
                raise ValueError(f"splits: {error} is none of train, valid, test") from None
        if codes.dtype.kind not in "iu" or (codes.size and (codes.min() < 0 or codes.max() > 3)):
            raise ValueError("splits: codes are 0 none, 1 train, 2 valid, 3 test")
        return _one_column(codes.astype(np.uint8))
    known = {"train": 1, "valid": 2, "val": 2, "validation": 2, "test": 3}
    parts = {}
    for name, value in splits.items():
        if name not in known:
            raise ValueError(f"splits: {name!r} is none of train, valid, test")
        parts[known[name]] = _one_column(_array(value, f"splits: {name}"))
    masks = [p for p in parts.values() if p.dtype == bool]
    if masks and len(masks) < len(parts):
        raise ValueError("splits: give masks for all of them, or arrays of nodes for all")
    if not masks and nodes is None:
        raise ValueError("splits: arrays of nodes need the number of nodes: give nodes")
    codes = np.zeros(masks[0].shape if masks else (nodes or 0,), np.uint8)
    for code, part in parts.items():
        at = part if masks else part.astype(np.int64)
        if masks and part.shape != codes.shape:
            raise ValueError(f"splits: masks have the shapes {codes.shape} and {part.shape}")
        if not masks and part.size and (at.min() < 0 or at.max() >= len(codes)):
            raise ValueError(f"splits: node {at.max()} is not below the number of nodes, {len(codes)}")
        if codes[at].any():
            raise ValueError("splits: a node is in two of train, valid and test")
        codes[at] = code
    return codes


def _one_column(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _columns(table: pa.Table, what: str, names: Sequence[str | None], complete: bool) -> pa.Table:
    """Returns the named columns of a table, or all of them where the names are not complete."""
    wanted = [name for name in names if name is not None]
    for name in wanted:
        if name not in table.column_names:
            raise KeyError(f"{what} has no column {name!r}: it has {table.column_names}")
    return table.select(list(dict.fromkeys(wanted))) if complete else table


def _write(table: pa.Table, path: Path) -> None:
    """Writes a table as Parquet that ndls reads: plain text and lists, row groups that fit in memory."""
    for i, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.large_string()))
        elif pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    rows = max(ROW_GROUP * table.num_rows // max(table.nbytes, 1), 1)
    text = [f.name for f in table.schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    pq.write_table(table, path, row_group_size=rows, compression="snappy", use_dictionary=text or False)
