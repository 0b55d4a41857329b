"""Run directories: what ndls has written, opened without copies."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ndls._command import Error, Progress, command
from ndls._graph import SPLITS, Graph
from ndls._rows import File, Rows

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow.dataset as pads
    from typing_extensions import Unpack

    from ndls._options import RunOptions

# SOFT_BYTES is how large a row group of soft labels is that smooth_labels writes.
SOFT_BYTES = 32 << 20


def run(graph: str | Graph, run: str | os.PathLike[str], *, progress: Progress = None, **options: Unpack[RunOptions]) -> Run:
    """Runs the whole job on a graph, and opens the run directory.

    Args:
        graph: A dataset URI such as ``"planetoid:data/cora/cora"`` (``ndls help datasets`` has
            all kinds), or what ``from_arrays`` and its relatives return.
        run: The run directory. An interrupted run is continued by the same call.
        progress: Is called with each line of progress and log. ``None`` prints the lines to
            ``sys.stderr``, and ``False`` shows nothing.
        options: The flags of ``ndls run``, with underscores: ``epsilon=0.05``,
            ``memory="4GiB"``, ``split="random:20,30"``, ``keep_hops="0..3"``. ``resume=False``
            discards what is there.

    Ctrl-C lets the program stop at a state from which the same call continues.

    Raises:
        Error: The program has refused the options or the data, or could not go on. Its message is
            that of the program, and ``status`` its exit status.
    """
    command("run", progress=progress, dataset=str(graph), run=run, **options)
    return open(run)


def open(run: str | os.PathLike[str]) -> Run:
    """Opens a run directory for reading. Data are read when they are used.

    What is missing in the directory, while the rest can be read, is a warning in the words of ``ndls inspect``.

    Raises:
        Error: It is no run directory of this machine, or its catalogue does not list what was committed.
    """
    return Run(run)


class Run:
    """A run directory, as it was when it was opened.

    All arrays are in the order of nodes: entry ``i`` belongs to node ``i``. Nodes are numbered by
    descending degree. ``ids`` has their ids in the input, and ``index`` finds nodes by ids.
    Attributes raise ``Error`` where the stage that writes them has not been executed; the message
    names the command that does it.

    Attributes:
        path: The folder.
        plan: The options of the run, a dict, as ``run.json`` has them.
        state: ``"COMPLETE"``, ``"RUNNING"`` or ``"FAILED"``.
        stopped: Whether nothing has failed in a run that is ``"FAILED"``: somebody has stopped it, and the same
            command continues it.
    """

    def __init__(self, run: str | os.PathLike[str], *, _stands: bool = False) -> None:
        text = os.fspath(run)
        if text.startswith("s3://"):
            raise Error(f"{text}: ndls.open maps files of this machine; copy the run directory, or use ndls.command('export', …)")
        self.path = Path(text)
        try:
            record = json.loads((self.path / "run.json").read_text(encoding="utf-8"))
            self.plan: dict[str, Any] = record["plan"]
            self.state: str = record["state"]
            self.stopped: bool = record.get("stopped", False)
        except FileNotFoundError:
            if (self.path / "catalog").exists() or (self.path / "journal").exists():
                _problem(self.path)  # is an error in the words of the program
            raise Error(f"{text} is no run directory: it has no run.json") from None
        except (ValueError, KeyError, TypeError) as error:
            raise Error(f"{text}/run.json is damaged: {error}", 4) from error
        if not _stands and (problem := _problem(self.path)):
            warnings.warn(problem, stacklevel=3)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.path,)

    def __repr__(self) -> str:
        head, *lines = self._facts()
        return "\n".join([f"ndls run {str(self.path)!r}: {head[1]}", *(f"  {name}: {text}" for name, text in lines)])

    def _repr_html_(self) -> str:
        """What a notebook shows: a table of what the run holds."""
        left = "style='text-align:left'"
        rows = "".join(f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(text)}</td></tr>" for name, text in self._facts())
        return f"<table><caption>ndls run {escape(str(self.path))}</caption>{rows}</table>"

    def _facts(self) -> list[tuple[str, str]]:
        """What the run holds, a name and a text each; the first is its state."""
        lines = [("state", "STOPPED" if self.stopped else self.state)]
        try:
            g = self.graph
        except Error:
            return lines
        about = [f"{g['nodes']} nodes", f"{g['edges']} edges", f"{g['features']} features", f"{len(self.classes)} classes"]
        lines.append((g["name"], ", ".join(about)))
        report = self.report
        if lsi := report.get("lsi"):
            lines.append(("K", f"{lsi['mean']:.2f} hops in the mean, {lsi['max']} at most"))
        for name, kind in (("features", "smoothed"), ("soft_labels", "soft_labels"), ("predictions", "predictions")):
            if self._paths(kind):
                rows: Rows = getattr(self, name)
                lines.append((name, f"{rows.shape[0]} rows of {rows.shape[1]} values, {rows.dtype}"))
        if self._paths("kept-hops"):
            lines.append(("hops", ", ".join(self.hops)))
        accuracy = report.get("accuracy") or {}
        several = accuracy.get("runs", 1) * max(accuracy.get("splits") or 1, 1) > 1
        for key, when in (("base", "before"), ("smoothed", "after")):
            test = (accuracy.get(key) or {}).get("test")
            if test:
                spread = f" ± {100 * test['std']:.2f}" if several else ""
                lines.append((f"test accuracy {when} label smoothing", f"{100 * test['mean']:.2f}{spread} %"))
        return lines

    # What is there.

    @cached_property
    def _catalog(self) -> list[dict[str, Any]]:
        return sorted(_listed(self.path), key=lambda e: (e["interval"], e["path"]))

    def _paths(self, kind: str) -> list[Path]:
        return [self.path / e["path"] for e in self._catalog if e["kind"] == kind]

    def _need(self, kind: str, what: str, verb: str) -> list[Path]:
        paths = self._paths(kind)
        if not paths:
            raise Error(f"{self.path} has no {what}: ndls {verb} --run {self.path} makes them")
        for path in paths:
            if not path.exists():
                raise Error(f"{path} is not there, and the catalogue of the run names it: ndls {verb} with --resume=false makes it again", 4)
        return paths

    @cached_property
    def graph(self) -> dict[str, Any]:
        """The graph as it was imported: ``name``, ``nodes``, ``edges``, ``features``, ``classes`` and so on."""
        (path,) = self._need("summary", "graph", "partition")
        summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return summary

    @cached_property
    def report(self) -> dict[str, Any]:
        """``report.json``: what the stages found, and what they took. Empty before the first stage is done."""
        path = self.path / "report.json"
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return report

    @property
    def models(self) -> list[dict[str, Any]]:
        """The models: for each its ``split``, ``run`` and ``seed``, and accuracies.

        ``base`` has those before label smoothing, ``smoothed`` those after it.
        """
        models: list[dict[str, Any]] = (self.report.get("accuracy") or {}).get("models") or []
        return models

    # Nodes.

    def nodes(self, columns: list[str] | None = None) -> pa.Table:
        """Reads the table of nodes, or some of its columns, such as ``id``, ``degree`` and ``component``."""
        (path,) = self._need("nodes", "table of nodes", "partition")
        return pq.read_table(path, columns=columns, memory_map=True)

    def _column(self, name: str) -> npt.NDArray[Any]:
        values: npt.NDArray[Any] = self.nodes([name]).column(0).to_numpy()
        return values

    @cached_property
    def ids(self) -> npt.NDArray[Any] | pa.ChunkedArray:
        """The id of each node in the input: an int64 or uint64 array of shape (nodes,).

        Ids that are text are an Arrow array: ``pyarrow.compute.equal`` compares them, ``index`` finds nodes by them.
        """
        ids = self.nodes(["id"]).column(0)
        return ids if pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type) else ids.to_numpy()

    @cached_property
    def labels(self) -> npt.NDArray[np.int32]:
        """The class of each node, -1 where it has no label: int32 of shape (nodes,).

        With ``--task labels`` or ``regression`` it is 0 where some value of the node is known.
        """
        return self._column("label")

    @property
    def classes(self) -> list[str]:
        """The names of the classes: a label is the place of its class in this list."""
        return list(self.graph.get("classes") or [])

    @cached_property
    def degrees(self) -> npt.NDArray[np.uint32]:
        """The number of neighbours of each node: uint32 of shape (nodes,)."""
        return self._column("degree")

    @cached_property
    def splits(self) -> list[npt.NDArray[np.uint8]]:
        """A code for each node, for each split: uint8 of shape (nodes,), 1 train, 2 valid, 3 test, 0 none.

        Splits after the first are mapped from their files.
        """
        names = self.nodes(["split"]).column(0)
        codes = pc.index_in(names, pa.array(SPLITS, names.type)).to_numpy().astype(np.uint8)
        return [codes, *(np.memmap(p, np.uint8, "r") for p in self._paths("splits"))]

    def split(self, name: str, number: int = 0) -> npt.NDArray[np.int64]:
        """Returns the nodes for ``"train"``, ``"valid"`` (or ``"val"``) or ``"test"`` in a split, in ascending order."""
        part = "valid" if name == "val" else name
        if part not in SPLITS[1:]:
            raise ValueError(f"a split is for train, valid or test, not for {name!r}")
        if not 0 <= number < len(self.splits):
            raise IndexError(f"{self.path} has {len(self.splits)} splits, numbered from 0")
        return np.flatnonzero(self.splits[number] == SPLITS.index(part))

    @cached_property
    def k(self) -> npt.NDArray[np.uint16]:
        """The number of hops of each node, its local smoothing iteration: uint16 of shape (nodes,)."""
        return self._lsi_column("k").astype(np.uint16)

    @cached_property
    def capped(self) -> npt.NDArray[np.bool_]:
        """Whether a node was not within epsilon after ``--kmax`` hops: bool of shape (nodes,)."""
        return self._lsi_column("capped")

    def lsi(self, columns: list[str] | None = None) -> pa.Table:
        """Reads the table of K, or some of its columns: the id of each node, ``k`` and ``capped``."""
        return pa.concat_tables(pq.read_table(p, columns=columns, memory_map=True) for p in self._need("lsi", "K of nodes", "lsi"))

    def _lsi_column(self, name: str) -> npt.NDArray[Any]:
        values: npt.NDArray[Any] = self.lsi([name]).column(0).to_numpy()
        return values

    def index(self, ids: Any) -> npt.NDArray[np.int64]:
        """Returns the nodes that have these ids of the input.

        Raises:
            KeyError: The graph has no node with such an id.
        """
        if isinstance(self.ids, np.ndarray):
            numbers = np.atleast_1d(np.asarray(ids, dtype=self.ids.dtype))
            at = _find(self.ids, self._order, numbers)
            missing: Any = numbers[at < 0].tolist()
        else:
            text = pa.array(np.atleast_1d(np.asarray(ids, dtype=object)), self.ids.type)
            at = pc.fill_null(pc.index_in(text, self.ids), -1).to_numpy().astype(np.int64)
            missing = text.filter(pa.array(at < 0)).to_pylist()
        if len(missing):
            raise KeyError(f"the graph has no node {missing[0]!r}")
        return at

    @cached_property
    def _order(self) -> npt.NDArray[np.int64]:
        return np.argsort(self.ids, kind="stable")

    def _nodes_of(self, rows: Rows) -> npt.NDArray[np.uint32]:
        """Finds the nodes of rows, by the ids in their files, or by the numbers of ids that are no numbers."""
        if len(rows) == self.graph["nodes"]:
            return np.arange(len(rows), dtype=np.uint32)
        name = "number" if self.graph.get("ids") else "id"
        every, keys = self._column(name), rows.column(name).to_numpy()
        return _find(every, np.argsort(every, kind="stable"), keys).astype(np.uint32)

    # Rows.

    def _rows(self, kind: str, column: str, what: str, verb: str) -> Rows:
        return Rows([File(p) for p in self._need(kind, what, verb)], column, self._nodes_of, self.classes if column == "probability" else ())

    @cached_property
    def features(self) -> Rows:
        """The smoothed features: a row for each node, or for each target node (``--targets``)."""
        return self._rows("smoothed", "feature", "smoothed features", "smooth")

    @cached_property
    def hops(self) -> Mapping[str, Rows]:
        """The hops that were kept (``--keep-hops``, ``--rule sign``), by name, such as ``hop_0``.

        With ``--direction both`` the names are ``hop_0``, ``hop_1_in``, …, ``hop_1_out``, ….
        """
        files = [File(p) for p in self._need("kept-hops", "hops", "smooth --keep-hops")]
        names = [n for n in files[0].schema.names if n.startswith("hop_")]
        return {n: Rows(files, n, self._nodes_of) for n in names}

    @cached_property
    def soft_labels(self) -> Rows:
        """The probabilities before label smoothing: a row for each node, a column for each class.

        With ``--probabilities best`` there is one column, the probability of ``column("label")``. With
        ``--task labels`` there is a column for each label, with ``--task regression`` a column of numbers for each
        column that was learned; ``classes`` names them.
        """
        return self._rows("soft_labels", self._predicted, "soft labels", "train")

    @property
    def _predicted(self) -> str:
        return "value" if self.plan["partition"].get("task") == "regression" else "probability"

    @cached_property
    def predictions(self) -> Rows:
        """The probabilities, or numbers, after label smoothing. Of classes, ``column("label")`` has those that are predicted."""
        return self._rows("predictions", self._predicted, "predictions", "smooth-labels")

    def edges(self) -> pads.Dataset:
        """Opens the edges as an Arrow dataset with the columns ``src`` and ``dst``, node numbers.

        Both directions of each edge are there, unless the graph has directions. ``to_batches()``
        reads them a batch at a time, and ``to_table()`` all of them. With weights there is a
        column ``weight``.
        """
        import pyarrow.dataset as pads

        return pads.dataset([str(p) for p in self._need("edges", "edges", "partition")], format="parquet")

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a table of pandas with a row for each node, and the ids of the input as its index.

        Columns are ``degree``, ``component``, ``label`` and ``split`` (None: none), ``k`` and ``capped``, and the
        predicted class ``prediction``, as far as the run has them. ``features.to_pandas()`` has the smoothed rows.
        """
        return self._known().to_pandas().set_index("id")

    def to_polars(self) -> polars.DataFrame:
        """Returns a table of polars with the columns of ``to_pandas``, and ``id``."""
        import polars

        return polars.DataFrame(polars.from_arrow(self._known()))

    def _known(self) -> pa.Table:
        """What is known of each node, with the names of classes."""
        names = pa.array(self.classes, pa.string())

        def named(labels: npt.NDArray[Any]) -> pa.Array:
            return names.take(pa.array(labels, pa.int32(), mask=labels < 0))

        table = self.nodes(["id", "degree", "component"])
        split = self.nodes(["split"]).column(0).cast(pa.string())
        table = table.append_column("label", named(self.labels))
        table = table.append_column("split", pc.if_else(pc.equal(split, ""), pa.scalar(None, pa.string()), split))
        if self._paths("lsi"):
            table = table.append_column("k", pa.array(self.k)).append_column("capped", pa.array(self.capped))
        if self._paths("predictions"):
            predicted = np.full(len(table), -1, np.int32)
            predicted[self.predictions.nodes] = self.predictions.column("label").to_numpy()
            table = table.append_column("prediction", named(predicted))
        return table

    # What the program makes of a run.

    def export(self, what: str, out: str | os.PathLike[str], *, progress: Progress = False, **options: object) -> Path:
        """Writes an artifact as one file in ascending order of input id, and returns its path.

        Args:
            what: One of lsi, features, smoothed, hops, soft-labels, predictions, edges, nodes.
            out: The file. The end of its name tells the format: .csv, .npy, .parquet or .arrow, and
                .gz or .zst behind it compresses.
                ``numpy.load(out, mmap_mode="r")`` maps an .npy file into memory.
            progress: As for ``ndls.run``.
            options: Further flags of ``ndls export``, such as ``force=True``, or ``part="3/8"``
                for the third of eight files that together have all rows.
        """
        path = Path(out)
        form = Path(path.name.removesuffix(".gz").removesuffix(".zst")).suffix.removeprefix(".")
        command("export", progress=progress, run=self.path, what=what, out=path, **{"format": form, **options})
        return path

    def smooth_labels(
        self,
        probabilities: npt.ArrayLike,
        *,
        nodes: npt.ArrayLike | None = None,
        run: str | os.PathLike[str] | None = None,
        progress: Progress = None,
        **options: object,
    ) -> Run:
        """Smooths the soft labels of any model over the graph (NDLS-L).

        This run stays as it is. The result is a run directory of its own, which shares the files
        of the graph with this one as hard links, and so takes little disk. The next call makes it
        anew.

        Args:
            probabilities: Numbers of shape (nodes, classes), a row for each node of the graph.
            nodes: The node that each row belongs to. Without it row ``i`` belongs to node ``i``.
            run: The run directory of the result, by default the path of this one with ``-labels``
                behind it.
            progress: As for ``ndls.run``.
            options: Flags of ``ndls smooth-labels``, such as ``label_depth=3`` or
                ``label_rule="cs"``.

        Returns:
            The run directory of the result: ``predictions`` has the smoothed probabilities, and
            ``report["accuracy"]`` the accuracy before and after, if there are labels and splits.

        Raises:
            ValueError: The shape is another one, or a node has no row or two.
            Error: The folder of the result has another graph, or the program has refused the
                options.
        """
        values = np.ascontiguousarray(probabilities, dtype=np.float32)
        n = self.graph["nodes"]
        if values.shape != (n, len(self.classes)):
            raise ValueError(f"probabilities have shape {values.shape}: {n} nodes and {len(self.classes)} classes are needed")
        ids = pa.chunked_array([self.ids]) if isinstance(self.ids, np.ndarray) else self.ids
        if nodes is not None:
            order = np.asarray(nodes, dtype=np.int64)
            if order.shape != (n,) or not np.array_equal(np.sort(order), np.arange(n)):
                raise ValueError(f"nodes has to have each of the {n} nodes once")
            ids = ids.take(pa.array(order))
        out = Path(run) if run is not None else self.path.with_name(self.path.resolve().name + "-labels")
        self._share(out)
        with tempfile.TemporaryDirectory(prefix="ndls-") as folder:
            file = Path(folder, "soft-labels.parquet")
            lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
            table = pa.table({"id": ids, "probability": lists})
            group = max(SOFT_BYTES // (4 * values.shape[1]), 1)
            pq.write_table(table, file, row_group_size=group, use_dictionary=False, compression="none")
            command("smooth-labels", progress=progress, run=out, soft_labels=file, resume=False, **options)
            if any(split.any() for split in self.splits):
                command("evaluate", progress=progress, run=out)
        return open(out)

    def _share(self, out: Path) -> None:
        """Makes a run directory that has the files of this one as hard links, in place of an earlier one."""
        self._need("lsi", "K of nodes", "lsi")
        shared = [Path(e["path"]) for e in self._catalog]
        if out.exists():
            graph = [p for p in shared if p.parts[0] in ("graph", "lsi")]
            if not all((out / p).exists() and os.path.samefile(self.path / p, out / p) for p in graph):
                raise Error(f"{out} is there, and does not share its graph and K with {self.path}: give another run=, or remove it")
        # The folder appears when it is complete.
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.absolute().parent) as begun:
            copy = Path(begun, "new")
            for path in shared:
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                try:
                    os.link(self.path / path, copy / path)
                except OSError:  # another disk, or one without hard links
                    shutil.copy2(self.path / path, copy / path)
            for name in ("run.json", "report.json", "report.html", "catalog.parquet", "catalog", "journal"):
                if (self.path / name).is_dir():
                    shutil.copytree(self.path / name, copy / name)
                elif (self.path / name).exists():
                    shutil.copy2(self.path / name, copy / name)
            if out.exists():
                out.rename(Path(begun, "old"))
            copy.rename(out)


def _find(keys: npt.NDArray[Any], order: npt.NDArray[np.int64], wanted: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Returns the places of values in keys, and -1 for those that are not there; order sorts keys."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, np.int64)
    at = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return np.where(keys[at] == wanted, at, -1)


def _again(path: Path) -> Run:
    """Opens a run directory that another process has opened, without looking again what is missing in it."""
    return Run(path, _stands=True)


def _problem(path: Path) -> str:
    """Says what is missing or damaged in a run directory, as the program finds it, or ""."""
    found = json.loads(command("inspect", progress=False, run=path, json=True))
    return str(found.get("problem", ""))


def _listed(run: Path) -> list[dict[str, Any]]:
    """Reads what the catalogue lists: its last snapshot, or catalog.parquet, and the changes after that."""
    columns = ["kind", "path", "interval", "run"]
    base, number = run / "catalog.parquet", 0
    for path in sorted((run / "catalog").glob("*.parquet"), reverse=True):
        try:
            pq.read_metadata(path)
        except pa.ArrowInvalid:
            break  # catalog.parquet has the same rows
        base, number = path, int(path.stem)
        break
    if number == 0:
        mark = json.loads((run / "run.json").read_text(encoding="utf-8")).get("catalog") or {}
        number = (mark.get("published") or {}).get("number", 0)
    rows: list[dict[str, Any]] = pq.read_table(base, columns=columns).to_pylist() if base.exists() else []
    listed = {e["path"]: e for e in rows}
    for path in sorted((run / "catalog").glob("*.json")):
        if int(path.stem) > number:
            change = json.loads(path.read_text(encoding="utf-8"))
            for gone in change.get("removed") or []:
                listed.pop(gone, None)
            listed.update((e["path"], e) for e in change.get("added") or [])
    return list(listed.values())
