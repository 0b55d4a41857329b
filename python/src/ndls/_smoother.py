"""An estimator in the manner of scikit-learn. Importing this module imports scikit-learn."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import assert_all_finite

from ndls._command import command
from ndls._graph import _array, _vector, from_arrays, from_arrow
from ndls._rows import File, Rows
from ndls._run import run as run_job

if TYPE_CHECKING:
    from ndls._options import RunOptions

# ENDS are the names of columns with the two ends of edges, in the order in which they are looked for.
ENDS = (("src", "dst"), ("source", "target"), ("from", "to"))


class NodeSmoother(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg, misc]
    """Replaces the features of each node by an average over its neighbourhood, as a transformer of scikit-learn.

        smoother = ndls.NodeSmoother(epsilon=0.05)
        Z = smoother.fit_transform(edges, X)            # row i is node i, as in X
        model = LogisticRegression().fit(Z[train], y[train])
        Z_new = smoother.transform(new_edges, X_new)    # nodes that arrive later

    Parameters that are None have the default of ``ndls run``, and mean what its flags mean.

    Args:
        epsilon: How near to their limit the influences on a node must come. A smaller one gives more hops.
        rule: What a hop adds to the row of a node.
        hops: The number of hops of the other rules than ``ndls``.
        kmax: The largest number of hops.
        r: The exponent of degrees, from 0 to 1.
        normalize: Whether rows of features are divided by their sum first.
        directed: Whether an edge leads from its first end to its second one only. The rule has to be another one than
            ``ndls`` then.
        keep_hops: How many hops of the fitted nodes are kept, so that ``transform`` can compute new nodes, which get so many
            hops at most. They take (keep_hops + 1) · 4 · features bytes of disk a node. None keeps none, and ``transform``
            is refused.
        memory: The limit of memory, such as ``"4GiB"``.
        threads: The threads that compute.
        seed: The seed of what is drawn.
        run: The folder for files. It stays, and a later fit with the same edges and rows continues or opens what is there.
            Without it there is a temporary one, removed with this object.
        options: Further options of ``ndls run``, such as ``{"precision": "float16"}``.
        verbose: Whether the log of the program goes to ``sys.stderr``.

    Attributes:
        run_: The run directory, an ``ndls.Run``. Its arrays have the order of the run, not that of X.
        k_: The number of hops of each row of X: uint16 of shape (nodes,). It is None with directed edges.
        n_features_in_: The number of columns of X.
        feature_names_in_: The names of the columns of X, where it is a table.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        rule: Literal["ndls", "ndls-reference", "sgc", "s2gc", "gbp", "appnp", "nafs"] | None = None,
        hops: int | None = None,
        kmax: int | None = None,
        r: float | None = None,
        normalize: Literal["auto", "l1", "none"] | None = None,
        directed: bool = False,
        keep_hops: int | None = 16,
        memory: str | int | None = None,
        threads: int | None = None,
        seed: int | None = None,
        run: str | os.PathLike[str] | None = None,
        options: RunOptions | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.rule = rule
        self.hops = hops
        self.kmax = kmax
        self.r = r
        self.normalize = normalize
        self.directed = directed
        self.keep_hops = keep_hops
        self.memory = memory
        self.threads = threads
        self.seed = seed
        self.run = run
        self.options = options
        self.verbose = verbose

    def fit(self, edges: Any, X: Any) -> NodeSmoother:
        """Smooths the rows of a graph. ``fit_transform`` returns them.

        Args:
            edges: Each edge once, or in both directions. One of

                - integers of shape (2, edges), as ``edge_index`` of PyTorch Geometric, or a tuple ``(src, dst)`` or
                  ``(src, dst, weight)``: ends are numbers of rows of X
                - a sparse matrix of SciPy of shape (nodes, nodes); values other than 1 are weights
                - a table of pandas, Polars (also lazy) or Arrow with the columns ``src`` and ``dst``, or ``source`` and
                  ``target``, or ``from`` and ``to``, or else the first two, and perhaps ``weight``

                Where X is a table of pandas, the ends are labels of its index.
            X: A row for each node, of shape (nodes, features): an array, a tensor, a sparse matrix of SciPy, or a table of
                pandas, Polars or Arrow of numbers.

        Raises:
            ValueError: Shapes do not fit together, or an end is no node.
            ndls.Error: The program has refused the options or the data.
        """
        table = _Nodes(X)
        src, dst, weights = _edges(edges, table.count, table.count, table.positions)
        graph = from_arrays(src, dst, features=table.values, weights=weights, nodes=table.count, directed=self.directed)
        # What an earlier fit has found must not stay if this one fails.
        for name in ("run_", "k_", "n_features_in_", "feature_names_in_", "_folder", "_index"):
            self.__dict__.pop(name, None)
        folder = tempfile.TemporaryDirectory(prefix="ndls-smoother-") if self.run is None else None
        out = Path(self.run) if self.run is not None else Path(folder.name if folder else "", "run")
        keep = None if self.keep_hops is None or self.rule == "nafs" else f"0..{self.keep_hops}"
        given: dict[str, Any] = {
            "epsilon": self.epsilon,
            "rule": self.rule,
            "hops": self.hops,
            "kmax": self.kmax,
            "r": self.r,
            "normalize": self.normalize,
            "keep_hops": keep,
            "memory": self.memory,
            "threads": self.threads,
            "seed": self.seed,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if twice := sorted(given.keys() & (self.options or {}).keys()):
            raise ValueError(f"{', '.join(twice)}: given as a parameter and in options")
        self.run_ = run_job(graph, out, progress=None if self.verbose else False, **given, **(self.options or {}))
        self._folder = folder
        self._index = table.index
        self.n_features_in_ = table.width
        if table.names is not None:
            self.feature_names_in_ = np.asarray(table.names, dtype=object)
        self.k_ = None if self.directed else self.run_.k[self.run_.index(np.arange(table.count))]
        return self

    def fit_transform(self, edges: Any, X: Any) -> Any:
        """Smooths the rows of a graph, and returns them in the order of X.

        Returns:
            float32 of shape (nodes, features), float16 with that precision: an array, or a tensor or a table of the kind of X.
            ``run_.features`` has the same rows in another order, mapped from disk.
        """
        self.fit(edges, X)
        rows, nodes = self.run_.features, self.run_.index(np.arange(self.run_.graph["nodes"]))
        return _Nodes(X).like(rows[rows.rows_of(nodes)])

    def transform(self, edges: Any, X: Any) -> Any:
        """Computes the smoothed rows of nodes that arrive after ``fit``. The fitted nodes do not change.

        Args:
            edges: As for ``fit``: the edges of the new nodes, to fitted ones and to each other. Numbers below the
                number of fitted nodes n are fitted nodes, and n + i is row i of X. A sparse matrix has the shape
                (new nodes, n + new nodes). Where the X of ``fit`` was a table of pandas, ends are labels of its index and of
                that of X.
            X: A row for each new node, with the columns that ``fit`` had.

        Returns:
            Rows as ``fit_transform`` returns them, in the order of X.

        Raises:
            sklearn.exceptions.NotFittedError: ``fit`` was not called.
            ValueError: Shapes do not fit together, an end is no node, or ``keep_hops`` is None.
            ndls.Error: The program has refused the data, or the rule.
        """
        self._check_fitted()
        if self.keep_hops is None:
            raise ValueError("keep_hops is None: no hops are kept from which new nodes could be computed; fit with keep_hops=16")
        table = _Nodes(X)
        if table.width != self.n_features_in_:
            raise ValueError(f"X has {table.width} features, but NodeSmoother is expecting {self.n_features_in_} features as input")
        old = int(self.run_.graph["nodes"])

        def positions(labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
            if self._index is None:
                return labels.astype(np.int64)
            if table.index is None:
                raise ValueError("X was a table of pandas in fit, whose index has the labels of nodes: give one here, too")
            found = _labelled(self._index, labels)
            return np.where(found >= 0, found, np.where((late := _labelled(table.index, labels)) >= 0, late + old, -1))

        if self._index is not None and table.index is not None and len(both := table.index.intersection(self._index)):
            raise ValueError(f"{len(both)} rows of X are fitted nodes already, the first of them {both[0]!r}")
        src, dst, weights = _edges(edges, table.count, old + table.count, positions, shift=old)
        dense = table.values.toarray() if hasattr(table.values, "tocsr") else _array(table.values, "X")
        flat = pa.array(np.ascontiguousarray(dense, dtype=np.float32).reshape(-1))
        nodes = pa.table({"id": pa.array(np.arange(old, old + table.count)), "x": pa.FixedSizeListArray.from_arrays(flat, table.width)})
        columns = {"src": pa.array(src, pa.int64()), "dst": pa.array(dst, pa.int64())}
        if weights is not None:
            columns["weight"] = pa.array(weights)
        graph = from_arrow(pa.table(columns), nodes, src="src", dst="dst", id="id", features=["x"], weight=None if weights is None else "weight")
        with tempfile.TemporaryDirectory(prefix="ndls-new-") as folder:
            out = Path(folder, "new")
            command(
                "infer",
                progress=None if self.verbose else False,
                run=self.run_.path,
                dataset=graph,
                out=out,
                memory=self.memory,
                threads=self.threads,
            )
            rows = Rows([File(p) for p in sorted((out / "smoothed").glob("*.arrow"))], "feature", lambda _: np.arange(table.count, dtype=np.uint32))
            result = np.empty(rows.shape, rows.dtype)
            result[rows.column("id").to_numpy() - old] = np.asarray(rows)
        return table.like(result)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Returns the names of the columns: those of X, or x0, x1, …, or nodesmoother0, … where a rule makes more of them."""
        self._check_fitted()
        width = self.run_.features.shape[1]
        if width != self.n_features_in_:
            return np.asarray([f"nodesmoother{i}" for i in range(width)], dtype=object)
        names = input_features if input_features is not None else getattr(self, "feature_names_in_", None)
        if names is None:
            return np.asarray([f"x{i}" for i in range(width)], dtype=object)
        if len(names) != width:
            raise ValueError(f"input_features has {len(names)} names: {width} are needed")
        return np.asarray(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _check_fitted(self) -> None:
        if not hasattr(self, "run_"):
            raise NotFittedError("This NodeSmoother instance is not fitted yet. Call 'fit' with edges and rows first.")

    def __getstate__(self) -> dict[str, Any]:
        if self.__dict__.get("_folder") is not None:
            raise TypeError("what was fitted is in a temporary folder, which a copy of this object could not keep: fit with run=FOLDER")
        state: dict[str, Any] = super().__getstate__()
        return state


class _Nodes:
    """Rows of nodes as from_arrays takes them, and what makes results of their kind.

    ``values`` has the numbers, ``count`` rows of ``width``; ``names`` are names of columns, or None;
    ``index`` is the index of a table of pandas, or None; ``like`` makes a result of an array.
    """

    def __init__(self, x: Any) -> None:
        self.names: list[str] | None = None
        self.index: Any = None
        self.like: Callable[[npt.NDArray[Any]], Any] = lambda rows: rows
        kind = type(x).__module__.split(".")[0]
        if hasattr(x, "collect"):
            x = x.collect(engine="streaming")
        if kind == "pandas":
            self.names, self.index = [str(c) for c in x.columns], x.index
            if not x.index.is_unique:
                raise ValueError("the index of X has a label twice: nodes are found by it")
            table, names, index = type(x), x.columns, x.index
            self.like = lambda rows: table(rows, index=index, columns=names if rows.shape[1] == len(names) else None)
            x = x.to_numpy()
        elif kind == "polars":
            self.names = list(x.columns)
            frame, named = type(x), self.names
            self.like = lambda rows: frame(rows, schema=named if rows.shape[1] == len(named) else None)
            x = x.to_numpy()
        elif kind == "pyarrow":
            self.names = list(x.column_names)
            held = self.names
            self.like = lambda rows: pa.table(
                list(np.ascontiguousarray(rows.T)), names=held if rows.shape[1] == len(held) else [f"x{i}" for i in range(rows.shape[1])]
            )
            x = np.column_stack([c.to_numpy() for c in x.columns])
        elif kind == "torch":
            import torch

            self.like = torch.from_numpy
        x = x.tocsr() if hasattr(x, "tocsr") else _array(x, "X")
        if x.dtype.kind == "O":
            x = x.astype(np.float64)
        if x.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        if x.ndim != 2 or x.dtype.kind not in "iufb":
            raise ValueError(f"X: {x.dtype} of shape {x.shape} is no matrix of numbers with a row for each node. Reshape your data")
        self.count, self.width = (int(n) for n in x.shape)
        for n, what in ((self.count, "sample"), (self.width, "feature")):
            if n == 0:
                raise ValueError(f"Found array with 0 {what}(s) (shape={x.shape}) while a minimum of 1 is required.")
        assert_all_finite(x, input_name="X")
        self.values = x

    def positions(self, labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Returns the rows of ends: their numbers, or the places of labels in the index of pandas, -1 where there is none."""
        if self.index is None:
            return labels.astype(np.int64)
        return _labelled(self.index, labels)


def _labelled(index: Any, labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = index.get_indexer(labels).astype(np.int64)
    return found


def _edges(
    edges: Any, rows: int, nodes: int, positions: Callable[[npt.NDArray[Any]], npt.NDArray[np.int64]], shift: int = 0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[Any] | None]:
    """Returns both ends of each edge as numbers below nodes, and weights, if there are any.

    A sparse matrix has so many rows, which begin at the node shift; positions finds the numbers of other ends.
    """
    if hasattr(edges, "tocsr"):
        if edges.shape != (rows, nodes):
            raise ValueError(f"edges: a sparse matrix of shape {edges.shape} where {(rows, nodes)} is needed")
        matrix = edges.tocoo()
        there = matrix.data != 0
        row, column, values = matrix.row[there], matrix.col[there], matrix.data[there]
        weights = None if (values == 1).all() else values.astype(np.float64)
        return row.astype(np.int64) + shift, column.astype(np.int64), weights
    weight: Any = None
    if hasattr(edges, "collect") or hasattr(edges, "columns"):
        src, dst, weight = _of_table(edges)
    elif isinstance(edges, tuple):
        if len(edges) not in (2, 3):
            raise ValueError(f"edges: a tuple of {len(edges)}: (src, dst) or (src, dst, weight) is needed")
        src, dst, weight = (*edges, None)[:3]
    else:
        both = _array(edges, "edges")
        if both.ndim != 2 or both.shape[0] != 2:
            remedy = ""
            if both.ndim == 2 and both.shape[1] == 2:
                remedy = "; give edges.T" if hasattr(edges, "T") else "; give numpy.asarray(edges).T"
            elif type(edges).__module__.startswith("networkx"):
                remedy = "; give networkx.to_scipy_sparse_array(graph, nodelist=…), in the order of X"
            raise ValueError(f"edges have shape {both.shape}: (2, edges) is needed{remedy}")
        src, dst = both
    ends = []
    for name, given in (("src", src), ("dst", dst)):
        end = _vector(given, name)
        if end.dtype.kind == "f" and end.size:
            raise ValueError(f"edges: {name} is {end.dtype}: nodes are integers, or labels of the index of a table of pandas")
        at = positions(end)
        wrong = (at < 0) | (at >= nodes)
        if wrong.any():
            raise ValueError(f"edges: {name} has {end[wrong].tolist()[0]!r}, which is none of the {nodes} nodes")
        ends.append(at)
    return ends[0], ends[1], None if weight is None else _vector(weight, "weight")


def _of_table(edges: Any) -> tuple[Any, Any, Any]:
    """Returns the columns of a table of edges: two ends, and weights or None."""
    if hasattr(edges, "collect"):
        edges = edges.collect(engine="streaming")
    names = [str(n) for n in (edges.column_names if isinstance(edges, pa.Table) else edges.columns)]
    if len(names) < 2:
        raise ValueError(f"edges: a table with the columns {names}: two columns with the ends of edges are needed")
    ends = next((pair for pair in ENDS if set(pair) <= set(names)), (names[0], names[1]))
    columns = [edges[name] for name in (*ends, *(["weight"] if "weight" in names else []))]
    src, dst, *weight = (c.to_numpy() for c in columns)
    return src, dst, weight[0] if weight else None
