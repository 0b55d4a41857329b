"""Batches of rows, read a chunk at a time, in an order that is nearly random."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndls._rows import Rows
from ndls._run import Run

# CHUNK is the size of a chunk in bytes, if a window holds at least CHUNKS of them.
CHUNK = 1 << 20
CHUNKS = 16
# GAP is the largest number of bytes between two wanted rows that are read to spare a read.
GAP = 64 << 10
# SPAN is the largest number of bytes that are read at a time where not all of them are wanted.
SPAN = 4 << 20
# THREADS is how many chunks are read side by side.
THREADS = 4
# GROUP is how many bytes of rows are mixed at a time, for one batch or for several.
GROUP = 8 << 20
# AHEAD is how many times GROUP bytes are put together before the caller asks for them.
AHEAD = 2


class Batch(NamedTuple):
    """Some rows, their labels and their nodes."""

    x: Any
    """The values: shape (rows, values), or (rows, hops, values) of several hops."""
    y: Any
    """The labels, -1 for none: int64 of shape (rows,)."""
    nodes: Any
    """The nodes: int64 of shape (rows,)."""


class NodeRows:
    """Rows of a run with their labels, for training.

    ``len(rows)``, ``rows[i]`` and ``rows.take(numbers)`` read single rows, which is what a
    ``torch.utils.data.DataLoader`` calls. ``batches`` reads large parts of the files one after
    the other instead, and mixes them in memory, which is many times as fast where the rows are
    not in memory. ``ndls.torch.Batches`` does the same for PyTorch.

    Args:
        run: A run, or the path of one.
        what: ``"features"`` (smoothed ones), ``"soft_labels"``, ``"predictions"``, a hop such as
            ``"hop_2"``, a list of hops, or ``"hops"`` for all that were kept.
        split: ``"train"``, ``"valid"`` or ``"test"``: the rows of these nodes. None takes all rows.
        number: The split, from 0, of a run that has several.
        labelled: Leaves nodes without label out. By default they are left out where ``split`` is
            given.
        dtype: The type of ``x``. None takes that of the files.

    Raises:
        Error: The run has no such rows.
        KeyError: A node of the split has no row, because the run has smoothed other nodes.
    """

    def __init__(
        self,
        run: Run | str | os.PathLike[str],
        what: str | Sequence[str] = "features",
        split: str | None = None,
        *,
        number: int = 0,
        labelled: bool | None = None,
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        self.run = run if isinstance(run, Run) else Run(run)
        self._arguments = (what, split, number, labelled, dtype)
        self._lists, self._stacked = _lists(self.run, what)
        first = self._lists[0]
        self.dtype: np.dtype[Any] = first.dtype if dtype is None else np.dtype(dtype)
        nodes = first.nodes if split is None else self.run.split(split, number).astype(np.uint32)
        if labelled if labelled is not None else split is not None:
            nodes = nodes[self.run.labels[nodes] >= 0]
        self.nodes: npt.NDArray[np.uint32] = nodes
        """The node of each row, in ascending order."""
        # Where all rows are taken there are no numbers of rows to remember.
        every = len(nodes) == len(first) and np.array_equal(nodes, first.nodes)
        self._rows = None if every else first.rows_of(nodes)
        self._row_shape = (len(self._lists), first.shape[1]) if self._stacked else (first.shape[1],)

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, (self.run, *self._arguments)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<NodeRows: {len(self)} rows of shape {self._row_shape}, {self.dtype}, of {str(self.run.path)!r}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, and the shape of a row."""
        return (len(self), *self._row_shape)

    @property
    def row_bytes(self) -> int:
        """Size of a row in the files."""
        return len(self._lists) * self._lists[0].shape[1] * self._lists[0].dtype.itemsize

    def take(self, numbers: npt.ArrayLike) -> Batch:
        """Returns the rows with these numbers, 0 to ``len(self) - 1``, in their order."""
        at = np.asarray(numbers, dtype=np.int64)
        rows = at if self._rows is None else self._rows[at]
        parts = [part[rows] for part in self._lists]
        x = np.stack(parts, axis=-2) if self._stacked else parts[0]
        nodes = self.nodes[at].astype(np.int64)
        return Batch(x.astype(self.dtype, copy=not x.flags.writeable), self.run.labels[nodes].astype(np.int64), nodes)

    def __getitem__(self, number: int) -> tuple[npt.NDArray[Any], int]:
        """Returns a row and its label."""
        batch = self.take(range(len(self))[number])
        return batch.x, int(batch.y)

    def batches(
        self,
        size: int,
        *,
        shuffle: int | Sequence[int] | None = None,
        part: tuple[int, int] = (0, 1),
        memory: int = 256 << 20,
        drop_last: bool = False,
    ) -> Iterator[Batch]:
        """Reads all rows once, in batches.

        The rows are cut into chunks of about 1 MiB that follow each other in the files. With
        ``shuffle`` the chunks come in random order. As many of them as fit are in memory
        together, the window, and the rows of a window are mixed. Threads read the next window
        and put the next batches together while the caller uses this one. So a batch has rows from many places of the graph, but
        rows that are far apart in time are never in one batch. Where all rows fit in a window, the
        order is that of a random permutation.

        Args:
            size: Rows of a batch. The last batch may have fewer.
            shuffle: The seed of the order: the same seed gives the same batches. Take another one
                for each epoch, such as ``(seed, epoch)``. None keeps the order of nodes.
            part: ``(i, n)`` reads the i-th of n parts, each row in exactly one of them: for
                processes that share an epoch. All of them give the same ``shuffle``.
            memory: Bytes that the two windows may take. Batches that are put together beforehand, up to
                16 MiB or two of them, come on top.
            drop_last: Leaves out a last batch with fewer rows.

        Returns:
            Batches. With ``shuffle`` their arrays belong to the caller; without it, they are views
            of the window, which may be kept, too.
        """
        if size < 1:
            raise ValueError(f"size is {size}: a batch has at least one row")
        if not 0 <= part[0] < part[1]:
            raise ValueError(f"part is {part}: (0, n) to (n - 1, n) are the parts")
        if memory < 1:
            raise ValueError(f"memory is {memory}")
        return self._batches(size, shuffle, part, memory, drop_last)

    def _batches(self, size: int, shuffle: int | Sequence[int] | None, part: tuple[int, int], memory: int, drop_last: bool) -> Iterator[Batch]:
        groups = self._groups(size, shuffle, part, memory, drop_last)
        with contextlib.closing(groups), ThreadPoolExecutor(1, thread_name_prefix="ndls-batches") as mixer:
            # The next batches are put together while the caller uses these.
            ahead = deque(mixer.submit(next, groups, None) for _ in range(AHEAD))
            try:
                while (group := ahead.popleft().result()) is not None:
                    ahead.append(mixer.submit(next, groups, None))
                    yield from group
            finally:
                mixer.shutdown(wait=True, cancel_futures=True)

    def _groups(
        self, size: int, shuffle: int | Sequence[int] | None, part: tuple[int, int], memory: int, drop_last: bool
    ) -> Generator[list[Batch], None, None]:
        """Puts batches together, some at a time, a window after the other."""
        row = max(int(np.prod(self._row_shape)) * self.dtype.itemsize, 1)
        window = max(memory // 2 // row, 1)
        chunk = max(min(CHUNK // row, window // CHUNKS), 1)
        order = np.arange(-(-len(self) // chunk))
        if shuffle is not None:
            order = np.random.default_rng(shuffle).permutation(order)
        order = order[part[0] :: part[1]]
        together = max(window // chunk, 1)
        windows = [order[i : i + together] for i in range(0, len(order), together)]
        left: Batch | None = None  # rows of the window before that did not fill a batch
        with _Reader(self._lists, self._row_shape, self.dtype, self._rows, len(self), chunk) as reader:
            # Mixed rows are copies, so that a window can be read where the one before the last was. Rows
            # that are not mixed are views, and each window has memory of its own.
            shape = (min(together * chunk, len(self)), *self._row_shape)
            spare = [None if shuffle is None else np.empty(shape, self.dtype) for _ in range(2)]
            ahead = reader.begin(windows[0], spare[0]) if windows else None
            for i in range(len(windows)):
                assert ahead is not None
                numbers, x = ahead.result()
                ahead = reader.begin(windows[i + 1], spare[(i + 1) % 2]) if i + 1 < len(windows) else None
                nodes = self.nodes[numbers].astype(np.int64)
                y = self.run.labels[nodes].astype(np.int64)
                if shuffle is not None:
                    seed = [shuffle] if isinstance(shuffle, (int, np.integer)) else list(shuffle)
                    mixed = np.random.default_rng([*seed, *part, i]).permutation(len(numbers))
                else:
                    mixed = None
                at = 0
                while at < len(numbers):
                    rows = size - len(left.y) if left else size * max(GROUP // (row * size), 1)
                    if mixed is None:
                        group = Batch(*(a[at : at + rows] for a in (x, y, nodes)))
                    else:
                        group = Batch(*(a.take(mixed[at : at + rows], axis=0) for a in (x, y, nodes)))
                    at += rows
                    if left:
                        group = Batch(*(np.concatenate(pair) for pair in zip(left, group, strict=True)))
                    batches = [Batch(*(a[lo : lo + size] for a in group)) for lo in range(0, len(group.y), size)]
                    left = batches.pop() if len(batches[-1].y) < size else None
                    if batches:
                        yield batches
            if left and not drop_last:
                yield [left]


def _open(run: Run, what: str | Sequence[str], split: str | None, number: int, labelled: bool | None, dtype: npt.DTypeLike) -> NodeRows:
    return NodeRows(run, what, split, number=number, labelled=labelled, dtype=dtype)


def _lists(run: Run, what: str | Sequence[str]) -> tuple[list[Rows], bool]:
    """Returns the lists that a row consists of, and whether they are stacked."""
    if isinstance(what, str):
        if what in ("features", "soft_labels", "predictions"):
            return [getattr(run, what)], False
        if what == "hops":
            return list(run.hops.values()), True
    names = [what] if isinstance(what, str) else list(what)
    unknown = [n for n in names if n not in run.hops]
    if unknown or not names:
        raise KeyError(f"{unknown or names} are no rows of {run.path}: it has features, soft_labels, predictions and the hops {list(run.hops)}")
    return [run.hops[n] for n in names], not isinstance(what, str)


class _Window:
    """Chunks that are being read."""

    def __init__(self, numbers: npt.NDArray[np.int64], x: npt.NDArray[Any], parts: list[Future[None]]) -> None:
        self._numbers, self._x, self._parts = numbers, x, parts

    def result(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Waits, and returns the numbers of the rows and their values."""
        for part in self._parts:
            part.result()
        return self._numbers, self._x


class _Reader:
    """Reads chunks of rows by several threads, past the mapped files: a read of a page fault has 4 KiB."""

    def __init__(
        self,
        lists: list[Rows],
        row_shape: tuple[int, ...],
        dtype: np.dtype[Any],
        rows: npt.NDArray[np.int64] | None,
        count: int,
        chunk: int,
    ) -> None:
        self._lists, self._row_shape, self._dtype, self._rows, self._count, self._chunk = lists, row_shape, dtype, rows, count, chunk
        self._files: dict[str, int] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> _Reader:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="ndls-rows")
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        for file in self._files.values():
            os.close(file)

    def begin(self, chunks: npt.NDArray[np.int64], spare: npt.NDArray[Any] | None) -> _Window:
        """Starts to read chunks, one behind the other in one array, for which there may be spare memory."""
        starts = chunks * self._chunk
        stops = np.minimum(starts + self._chunk, self._count)
        ends = np.cumsum(stops - starts)
        x = np.empty((int(ends[-1]), *self._row_shape), self._dtype) if spare is None else spare[: ends[-1]]
        parts = []
        for start, stop, end in zip(starts.tolist(), stops.tolist(), ends.tolist(), strict=True):
            parts.append(self._pool.submit(self._read, start, stop, x[end - (stop - start) : end]))
        numbers = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)])
        return _Window(numbers, x, parts)

    def _read(self, start: int, stop: int, out: npt.NDArray[Any]) -> None:
        """Reads rows number start to stop, of those that were chosen, into out."""
        for i, rows in enumerate(self._lists):
            to = out[:, i] if out.ndim == 3 else out
            if self._rows is None:
                self._span(rows, start, stop, None, to)
                continue
            wanted = self._rows[start:stop]
            size = rows.shape[1] * rows.dtype.itemsize
            # Rows are read together up to a gap, or up to so many bytes that not all are wanted.
            cut = np.flatnonzero(np.diff(wanted) > max(GAP // size, 1)) + 1
            for lo, hi in zip([0, *cut.tolist()], [*cut.tolist(), len(wanted)], strict=True):
                step = max(SPAN // size, 1)
                while lo < hi:
                    end = lo + int(np.searchsorted(wanted[lo:hi], wanted[lo] + step))
                    first, last = int(wanted[lo]), int(wanted[end - 1]) + 1
                    some = None if last - first == end - lo else wanted[lo:end] - first
                    self._span(rows, first, last, some, to[lo:end])
                    lo = end

    def _span(self, rows: Rows, first: int, last: int, some: npt.NDArray[np.int64] | None, out: npt.NDArray[Any]) -> None:
        """Reads rows first to last of the files into out, all or some of them."""
        direct = some is None and out.dtype == rows.dtype and out.flags.c_contiguous
        values = out if direct else np.empty((last - first, rows.shape[1]), rows.dtype)
        size = rows.shape[1] * rows.dtype.itemsize
        batch = int(np.searchsorted(rows.starts, first, side="right")) - 1
        at = first
        while at < last:
            lo = int(rows.starts[batch])
            stop = min(last, int(rows.starts[batch + 1]))
            extent = rows.extents[batch]
            if stop > at:
                self._fill(extent.path, extent.offset + (at - lo) * size, values[at - first : stop - first])
            at, batch = stop, batch + 1
        if not direct:
            out[...] = values if some is None else values[some]

    def _fill(self, path: str, offset: int, out: npt.NDArray[Any]) -> None:
        """Reads bytes of a file into a contiguous array."""
        view = memoryview(out.reshape(-1).view(np.uint8).data)
        file = self._open_file(path)
        while len(view):
            n = os.preadv(file, [view], offset)
            if n == 0:
                raise EOFError(f"{path} has become shorter than its Arrow footer says")
            view, offset = view[n:], offset + n

    def _open_file(self, path: str) -> int:
        with self._lock:
            if path not in self._files:
                self._files[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            return self._files[path]
