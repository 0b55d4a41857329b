"""Rows of a run, mapped from its Arrow files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    import pandas
    import polars
    import torch


class Extent(NamedTuple):
    """Where the values of a record batch are: ``rows`` rows from byte ``offset`` of ``path`` on."""

    path: str
    offset: int
    rows: int


class File:
    """An Arrow IPC file of a run, mapped into memory."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        mapped = pa.memory_map(self.path)
        self.address: int = mapped.read_buffer().address
        mapped.seek(0)
        reader = pa.ipc.open_file(mapped)
        self.schema: pa.Schema = reader.schema
        self.batches: list[pa.RecordBatch] = [reader.get_batch(i) for i in range(reader.num_record_batches)]


class Rows:
    """A matrix whose rows are mapped from the Arrow files of a run: nothing is read before it is used.

    ``rows[i]`` is a row, ``rows[a:b]`` several rows, and ``rows[array]`` those with these numbers,
    or where a mask is True; ``rows[a:b, c:d]`` has some of their values. A row, and rows of one record batch, are views of the file; other rows
    are copied. ``numpy.asarray(rows)`` is the whole matrix, and a copy of it where the file has
    several record batches. Views cannot be written to.

    Attributes:
        shape: Number of rows, number of values of a row.
        dtype: ``float32`` or ``float16``.
        nodes: The node that each row belongs to, in ascending order: uint32 of shape (rows,).
    """

    ndim = 2

    def __init__(self, files: Sequence[File], column: str, nodes: Callable[[Rows], npt.NDArray[np.uint32]], names: Sequence[str] = ()) -> None:
        """Opens the lists in a column of files. ``nodes`` finds the nodes of rows; ``names`` are those of values, if they have any."""
        self._files = files
        self._names = names
        self._column = column
        self._nodes = nodes
        kind = files[0].schema.field(column).type
        self.dtype: np.dtype[Any] = np.dtype(np.float16 if pa.types.is_float16(kind.value_type) else np.float32)
        self.chunks: list[npt.NDArray[Any]] = []
        """The rows of each record batch, as views of the file: shape (rows of the batch, values)."""
        self.extents: list[Extent] = []
        """Where the values of each record batch are in its file."""
        for file in files:
            for batch in file.batches:
                lists = batch.column(column)
                values = lists.values.to_numpy(zero_copy_only=True).reshape(-1, kind.list_size)
                view = values[lists.offset : lists.offset + len(lists)]
                self.chunks.append(view)
                self.extents.append(Extent(file.path, view.__array_interface__["data"][0] - file.address, len(view)))
        self.starts: npt.NDArray[np.int64] = np.cumsum([0] + [len(c) for c in self.chunks], dtype=np.int64)
        """The number of the first row of each record batch, and the number of rows."""
        self.shape: tuple[int, int] = (int(self.starts[-1]), kind.list_size)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self._column}: {self.shape[0]} rows of {self.shape[1]} values, {self.dtype}, mapped from {len(self._files)} files>"

    @property
    def nbytes(self) -> int:
        """Size of the values in bytes."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @cached_property
    def nodes(self) -> npt.NDArray[np.uint32]:
        """The node that each row belongs to, in ascending order."""
        return self._nodes(self)

    def rows_of(self, nodes: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Returns the numbers of the rows that belong to nodes.

        Raises:
            KeyError: A node has no row, because the run has smoothed other nodes only
                (``--targets``).
        """
        wanted = np.asarray(nodes, dtype=np.int64)
        rows = np.searchsorted(self.nodes, wanted)
        rows = np.minimum(rows, max(len(self) - 1, 0))
        there = self.nodes[rows] == wanted if len(self) else np.zeros(wanted.shape, bool)
        if not np.all(there):
            missing = np.atleast_1d(wanted)[~np.atleast_1d(there)]
            raise KeyError(f"{len(missing)} nodes have no row, the first of them node {missing[0]}: the run has rows of {len(self)} nodes")
        return rows

    def table(self) -> pa.Table:
        """Returns an Arrow table with all columns of the files, without copies."""
        return pa.Table.from_batches([b for file in self._files for b in file.batches], self._files[0].schema)

    def column(self, name: str) -> pa.ChunkedArray:
        """Returns another column of the files, without copies: ``id``, or ``label`` of predictions."""
        return self.table().column(name)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a table of pandas with the ids of the input as its index, and a copy of the values.

        Columns are ``feature_0``, …; ``probability_NAME`` for each class; predictions have their ``label``, too.
        """
        import pandas

        table = self.table()
        frame = pandas.DataFrame(np.asarray(self), index=pandas.Index(table.column("id").to_pandas(), name="id"), columns=self._columns())
        if "label" in table.column_names:
            frame.insert(0, "label", table.column("label").to_numpy())
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Returns a table of polars with the column ``id`` and those of ``to_pandas``. Values are copied."""
        import polars

        table = self.table()
        held = table.select([name for name in ("id", "label") if name in table.column_names])
        return polars.DataFrame(polars.from_arrow(held)).hstack(polars.DataFrame(np.asarray(self), schema=self._columns()))

    def to_torch(self) -> torch.Tensor:
        """Returns a tensor with a copy of the values, in the order of nodes. ``ndls.torch.Batches`` reads batches instead."""
        import torch

        return torch.from_numpy(np.array(self))

    def _columns(self) -> list[str]:
        ends = self._names if len(self._names) == self.shape[1] else range(self.shape[1])
        return [f"{self._column}_{end}" for end in ends]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple):
            return self._values(index)
        if isinstance(index, slice):
            return self._slice(*index.indices(len(self)))
        at = np.asarray(index)
        if at.dtype == bool:
            if at.shape != (len(self),):
                raise IndexError(f"a mask of shape {at.shape} for {len(self)} rows")
            at = np.flatnonzero(at)
        if at.dtype.kind not in "iu" and at.size:
            raise TypeError(f"rows are found by numbers, a slice or a mask, not by {at.dtype}")
        at = at.astype(np.int64)
        at = np.where(at < 0, at + len(self), at)
        if at.size and (at.min() < 0 or at.max() >= len(self)):
            raise IndexError(f"there are {len(self)} rows")
        if at.ndim == 0:
            chunk = int(np.searchsorted(self.starts, at, side="right")) - 1
            row: npt.NDArray[Any] = self.chunks[chunk][int(at - self.starts[chunk])]
            return row
        return self._gather(at)

    def _values(self, index: tuple[Any, ...]) -> Any:
        """Returns values by rows and columns, as NumPy does."""
        if Ellipsis in [i for i in index if i is Ellipsis]:
            at = next(k for k, i in enumerate(index) if i is Ellipsis)
            index = index[:at] + (slice(None),) * (self.ndim - (len(index) - 1)) + index[at + 1 :]
        if not index:
            return self[:]
        if len(index) > self.ndim:
            raise IndexError(f"rows have {self.ndim} dimensions, and {len(index)} indices were given")
        if len(index) == 1:
            return self[index[0]]
        rows, columns = index
        if np.ndim(rows) > 0 and np.ndim(columns) > 0:  # pairs of a row and a column
            numbers = [np.flatnonzero(i) if np.asarray(i).dtype == bool else np.asarray(i) for i in index]
            row, column = np.broadcast_arrays(*numbers)
            return self[row.ravel()][np.arange(row.size), column.ravel()].reshape(row.shape)
        return self[rows][..., columns]

    @property
    def T(self) -> npt.NDArray[Any]:
        """The matrix with rows and columns exchanged: a view of ``numpy.asarray(rows)``."""
        return np.asarray(self).T

    def sum(self, axis: int | None = None, dtype: Any = None, out: Any = None, **others: Any) -> Any:
        """Adds all values, those of each column (0) or those of each row (1), as NumPy does, one record batch at a time."""
        if out is not None or others or axis not in (None, 0, 1, -1, -2) or not self.chunks:
            return np.asarray(self).sum(axis=axis, dtype=dtype, out=out, **others)
        if axis in (1, -1):
            return np.concatenate([c.sum(axis=1, dtype=dtype) for c in self.chunks])
        sums = np.sum([c.sum(axis=0, dtype=np.float64) for c in self.chunks], axis=0)
        total = sums.sum() if axis is None else sums
        return total.astype(dtype or self.dtype)

    def mean(self, axis: int | None = None, dtype: Any = None, out: Any = None, **others: Any) -> Any:
        """Returns the mean of all values, of each column (0) or of each row (1), as NumPy does, one record batch at a time."""
        if out is not None or others or axis not in (None, 0, 1, -1, -2) or not self.chunks:
            return np.asarray(self).mean(axis=axis, dtype=dtype, out=out, **others)
        if axis in (1, -1):
            return np.concatenate([c.mean(axis=1, dtype=dtype) for c in self.chunks])
        count = self.shape[0] * (self.shape[1] if axis is None else 1)
        return (self.sum(axis=axis, dtype=np.float64) / count).astype(dtype or self.dtype)

    def min(self, axis: int | None = None, **others: Any) -> Any:
        """Returns the least value, of all, of each column (0) or of each row (1)."""
        return np.asarray(self).min(axis=axis, **others)

    def max(self, axis: int | None = None, **others: Any) -> Any:
        """Returns the largest value, of all, of each column (0) or of each row (1)."""
        return np.asarray(self).max(axis=axis, **others)

    def std(self, axis: int | None = None, **others: Any) -> Any:
        """Returns the standard deviation of all values, of each column (0) or of each row (1)."""
        return np.asarray(self).std(axis=axis, **others)

    def _slice(self, start: int, stop: int, step: int) -> npt.NDArray[Any]:
        if step != 1:
            return self._gather(np.arange(start, stop, step))
        stop = max(start, stop)
        first = int(np.searchsorted(self.starts[1:], start, side="right"))
        parts = []
        for chunk in range(first, len(self.chunks)):
            lo = int(self.starts[chunk])
            if lo >= stop:
                break
            parts.append(self.chunks[chunk][max(start - lo, 0) : stop - lo])
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty((0, self.shape[1]), self.dtype)

    def _gather(self, at: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        out = np.empty((at.size, self.shape[1]), self.dtype)
        flat = at.ravel()
        chunk_of = np.searchsorted(self.starts, flat, side="right") - 1
        for chunk in np.unique(chunk_of):
            here = chunk_of == chunk
            out[here] = self.chunks[chunk][flat[here] - self.starts[chunk]]
        return out.reshape(*at.shape, self.shape[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if len(self.chunks) == 1 and not copy:
            whole = self.chunks[0]
        elif copy is False:
            raise ValueError(f"{len(self.chunks)} record batches are one array only as a copy")
        else:
            whole = np.concatenate(self.chunks) if self.chunks else np.empty(self.shape, self.dtype)
        if dtype is None or whole.dtype == dtype:
            return whole
        if copy is False:
            raise ValueError(f"{whole.dtype} becomes {np.dtype(dtype)} only as a copy")
        return whole.astype(dtype)
