"""Batches of rows, read a chunk at a time, in an order that is nearly random."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
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
# PAGE divides the place and the size of a read past the page cache, and the address that it goes to.
PAGE = 4096


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
        while the caller uses this one, and put each row where its batch is. So a batch has rows
        from many places of the graph, but rows that are far apart in time are never in one batch.
        Where all rows fit in a window, the order is that of a random permutation.

        Rows of more bytes than half of the memory of this machine are read past the page cache,
        in which they would not stay until the next epoch.

        Args:
            size: Rows of a batch. The last batch may have fewer.
            shuffle: The seed of the order: the same seed gives the same batches. Take another one
                for each epoch, such as ``(seed, epoch)``. None keeps the order of nodes.
            part: ``(i, n)`` reads the i-th of n parts, each row in exactly one of them: for
                processes that share an epoch. All of them give the same ``shuffle``.
            memory: Bytes that the values of two windows may take. Labels and nodes of their rows, some
                chunks and two batches come on top.
            drop_last: Leaves out a last batch with fewer rows.

        Returns:
            Batches. Their arrays may be written to. Most of them are views of the window, so who
            keeps a batch keeps the memory of a window: copy what is to stay for long.
        """
        if size < 1:
            raise ValueError(f"size is {size}: a batch has at least one row")
        if not 0 <= part[0] < part[1]:
            raise ValueError(f"part is {part}: (0, n) to (n - 1, n) are the parts")
        if memory < 1:
            raise ValueError(f"memory is {memory}")
        return self._batches(size, shuffle, part, memory, drop_last)

    def _batches(self, size: int, shuffle: int | Sequence[int] | None, part: tuple[int, int], memory: int, drop_last: bool) -> Iterator[Batch]:
        row = max(int(np.prod(self._row_shape)) * self.dtype.itemsize, 1)
        window = max(memory // 2 // row, 1)
        chunk = max(min(CHUNK // row, window // CHUNKS), 1)
        order = np.arange(-(-len(self) // chunk))
        seed: list[int] | None = None
        if shuffle is not None:
            order = np.random.default_rng(shuffle).permutation(order)
            seed = [int(shuffle)] if isinstance(shuffle, (int, np.integer)) else [int(s) for s in shuffle]
        order = order[part[0] :: part[1]]
        together = max(window // chunk, 1)
        windows = [order[i : i + together] for i in range(0, len(order), together)]
        left: Batch | None = None  # rows of the window before that did not fill a batch
        with _Reader(self, chunk, min(together * chunk, len(self))) as reader:
            ahead = [reader.begin(chunks, None if seed is None else [*seed, *part, 0]) for chunks in windows[:1]]
            for i in range(len(windows)):
                # Of the window before, the caller has no more than a copy: its memory is free.
                if i + 1 < len(windows):
                    ahead.append(reader.begin(windows[i + 1], None if seed is None else [*seed, *part, i + 1]))
                rows = ahead.pop(0).result().result()
                at = 0
                if left:
                    at = min(size - len(left.y), len(rows.y))
                    left = Batch(*(np.concatenate((a, b[:at])) for a, b in zip(left, rows, strict=True)))
                    if len(left.y) == size:
                        yield left
                        left = None
                while at + 2 * size <= len(rows.y):
                    yield Batch(*(a[at : at + size] for a in rows))
                    at += size
                rest = Batch(*(a[at:].copy() for a in rows))
                del rows
                if len(rest.y) >= size:
                    yield Batch(*(a[:size] for a in rest))
                    rest = Batch(*(a[size:] for a in rest))
                if len(rest.y):
                    left = rest
            if left and not drop_last:
                yield left


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


class _Memory:
    """Memory of a window. It comes from a list, and goes back to it when no array refers to it."""

    def __init__(self, free: list[npt.NDArray[np.uint8]], size: int) -> None:
        self._free, self._bytes = free, free.pop() if free else np.empty(size, np.uint8)
        self.__array_interface__ = self._bytes.__array_interface__  # numpy.asarray refers to this object

    def __del__(self) -> None:
        self._free.append(self._bytes)


class _Window:
    """Rows that are being read."""

    def __init__(self, rows: Batch, chunks: list[Future[None]]) -> None:
        self._rows, self._chunks = rows, chunks

    def result(self) -> Batch:
        """Waits for the rows and returns them, in the order in which they are given."""
        for chunk in self._chunks:
            chunk.result()
        return self._rows


class _Reader:
    """Reads windows of rows by several threads, past the mapped files: a read of a page fault has 4 KiB."""

    def __init__(self, data: NodeRows, chunk: int, window: int) -> None:
        """Reads chunks of so many rows, and windows of so many rows at most."""
        self._data, self._chunk = data, chunk
        self._size = max(window * int(np.prod(data.shape[1:])) * data.dtype.itemsize, 1)
        self._free: list[npt.NDArray[np.uint8]] = []
        self._files: dict[str, int] = {}
        self._lock = threading.Lock()
        self._scratch = threading.local()
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._direct = len(data) * data.row_bytes > memory // 2

    def __enter__(self) -> _Reader:
        self._planner = ThreadPoolExecutor(1, thread_name_prefix="ndls-windows")
        self._readers = ThreadPoolExecutor(THREADS, thread_name_prefix="ndls-rows")
        return self

    def __exit__(self, *_: object) -> None:
        self._planner.shutdown(wait=True, cancel_futures=True)
        self._readers.shutdown(wait=True, cancel_futures=True)
        for file in self._files.values():
            os.close(file)

    def begin(self, chunks: npt.NDArray[np.int64], seed: list[int] | None) -> Future[_Window]:
        """Starts to read chunks, whose rows are mixed by a seed, or stay in order."""
        return self._planner.submit(self._begin, chunks, seed)

    def _begin(self, chunks: npt.NDArray[np.int64], seed: list[int] | None) -> _Window:
        starts = chunks * self._chunk
        stops = np.minimum(starts + self._chunk, len(self._data))
        numbers = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)])
        x = np.asarray(_Memory(self._free, self._size)).view(self._data.dtype)
        shape = (len(numbers), *self._data.shape[1:])
        x = x[: int(np.prod(shape))].reshape(shape)
        places = None  # of the rows in x, in the order of numbers
        if seed is not None:
            mixed = np.random.default_rng(seed).permutation(len(numbers))
            places = np.empty_like(mixed)
            places[mixed] = np.arange(len(mixed))
            numbers = numbers[mixed]
        ends = np.cumsum(stops - starts)
        reads = []
        for start, stop, end in zip(starts.tolist(), stops.tolist(), ends.tolist(), strict=True):
            reads.append(self._readers.submit(self._read, start, stop, *_part(x, places, end - (stop - start), end)))
        nodes = self._data.nodes[numbers].astype(np.int64)
        return _Window(Batch(x, self._data.run.labels[nodes].astype(np.int64), nodes), reads)

    def _read(self, start: int, stop: int, x: npt.NDArray[Any], places: npt.NDArray[np.int64] | None) -> None:
        """Reads rows number start to stop, of those that were chosen, to their places in x."""
        for i, rows in enumerate(self._data._lists):
            to = x[:, i] if x.ndim == 3 else x
            if self._data._rows is None:
                self._span(rows, start, stop, None, to, places)
                continue
            wanted = self._data._rows[start:stop]
            size = rows.shape[1] * rows.dtype.itemsize
            # Rows are read together up to a gap, or up to so many bytes that not all are wanted.
            cut = np.flatnonzero(np.diff(wanted) > max(GAP // size, 1)) + 1
            for lo, hi in zip([0, *cut.tolist()], [*cut.tolist(), len(wanted)], strict=True):
                step = max(SPAN // size, 1)
                while lo < hi:
                    end = lo + int(np.searchsorted(wanted[lo:hi], wanted[lo] + step))
                    first, last = int(wanted[lo]), int(wanted[end - 1]) + 1
                    some = None if last - first == end - lo else wanted[lo:end] - first
                    self._span(rows, first, last, some, *_part(to, places, lo, end))
                    lo = end

    def _span(
        self, rows: Rows, first: int, last: int, some: npt.NDArray[np.int64] | None, x: npt.NDArray[Any], places: npt.NDArray[np.int64] | None
    ) -> None:
        """Reads rows first to last of the files, and puts all or some of them to their places in x."""
        size = rows.shape[1] * rows.dtype.itemsize
        batch = int(np.searchsorted(rows.starts, first, side="right")) - 1
        at = first
        while at < last:
            stop = min(last, int(rows.starts[batch + 1]))
            if stop > at:
                extent = rows.extents[batch]
                read = self._bytes(extent.path, extent.offset + (at - int(rows.starts[batch])) * size, (stop - at) * size)
                values = read.view(rows.dtype).reshape(-1, rows.shape[1])
                lo, hi = at - first, stop - first
                if some is not None:
                    lo, hi = np.searchsorted(some, (lo, hi)).tolist()
                    values = values[some[lo:hi] - (at - first)]
                _put(*_part(x, places, lo, hi), values)
            at, batch = stop, batch + 1

    def _bytes(self, path: str, offset: int, size: int) -> npt.NDArray[np.uint8]:
        """Reads bytes of a file into memory of this thread, which keeps them until its next read."""
        skip = offset % PAGE
        scratch = self._aligned(-(-(skip + size) // PAGE) * PAGE)
        file, n = self._file(path), 0
        while n < skip + size:
            try:
                more = os.preadv(file, [scratch[n:].data], offset - skip + n)
            except OSError as error:
                if error.errno != errno.EINVAL or not _set_direct(file, False):
                    raise
                continue
            if more == 0:
                raise EOFError(f"{path} has become shorter than its Arrow footer says")
            n += more
        return scratch[skip : skip + size]

    def _aligned(self, size: int) -> npt.NDArray[np.uint8]:
        """Returns memory of this thread that begins with a page."""
        if not hasattr(self._scratch, "bytes") or len(self._scratch.bytes) < size:
            some = np.empty(size + PAGE, np.uint8)
            self._scratch.bytes = some[-some.ctypes.data % PAGE :][:size]
        scratch: npt.NDArray[np.uint8] = self._scratch.bytes[:size]
        return scratch

    def _file(self, path: str) -> int:
        with self._lock:
            if path not in self._files:
                self._files[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                if self._direct:
                    _set_direct(self._files[path], True)
            return self._files[path]


def _set_direct(file: int, wanted: bool) -> bool:
    """Reads a file past the page cache, or not, and returns whether that is another way than before."""
    flags = fcntl.fcntl(file, fcntl.F_GETFL)
    new = flags | os.O_DIRECT if wanted else flags & ~os.O_DIRECT
    try:
        fcntl.fcntl(file, fcntl.F_SETFL, new)
    except OSError:  # the file system cannot do it
        return False
    return new != flags


def _part(x: npt.NDArray[Any], places: npt.NDArray[np.int64] | None, lo: int, hi: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]:
    """Returns where rows lo to hi are put, of those that are put into x: at places in it, or else in order."""
    return (x[lo:hi], None) if places is None else (x, places[lo:hi])


def _put(x: npt.NDArray[Any], places: npt.NDArray[np.int64] | None, values: npt.NDArray[Any]) -> None:
    """Copies rows to their places in x."""
    if places is None:
        x[...] = values
    elif x.dtype == values.dtype and x.flags.c_contiguous:
        # A row is one value here, which NumPy copies in one piece.
        kind = np.dtype((np.void, x.shape[1] * x.itemsize))
        x.view(kind)[:, 0][places] = np.ascontiguousarray(values).view(kind)[:, 0]
    else:
        x[places] = values
