from __future__ import annotations

import errno
import fcntl
import os
import pickle
from typing import Any

import numpy as np
import pytest

import ndls
from ndls import _loader

# Windows of some rows, so that a run of 900 rows has many of them.
SMALL = 16 * 1024


@pytest.mark.parametrize("what", ["features", "soft_labels", "predictions", "hop_1", ["hop_2", "hop_0"], "hops"])
@pytest.mark.parametrize("split", [None, "train"])
@pytest.mark.parametrize("shuffle", [None, 3, (3, 1)])
def test_each_row_comes_once(run: ndls.Run, what: Any, split: str | None, shuffle: Any) -> None:
    rows = ndls.NodeRows(run, what, split)
    wanted = run.split("train") if split else np.arange(900)
    assert len(rows) == len(wanted)
    got = list(rows.batches(64, shuffle=shuffle, memory=SMALL))
    assert [len(b.y) for b in got[:-1]] == [64] * (len(got) - 1)
    nodes = np.concatenate([b.nodes for b in got])
    np.testing.assert_array_equal(np.sort(nodes), wanted)
    assert (shuffle is None) == bool((np.diff(nodes) > 0).all())
    lists = {"features": run.features, "soft_labels": run.soft_labels, "predictions": run.predictions, **run.hops}
    if isinstance(what, list):
        expected = np.stack([lists[w][nodes] for w in what], 1)
    else:
        expected = np.stack([r[nodes] for r in run.hops.values()], 1) if what == "hops" else lists[what][nodes]
    np.testing.assert_array_equal(np.concatenate([b.x for b in got]), expected)
    np.testing.assert_array_equal(np.concatenate([b.y for b in got]), run.labels[nodes])
    assert got[0].x.dtype == np.float32
    assert got[0].y.dtype == np.int64


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize("shuffle", [None, 9])
def test_parts_share_the_rows(run: ndls.Run, parts: int, shuffle: int | None) -> None:
    rows = ndls.NodeRows(run)
    each = [[b.nodes for b in rows.batches(50, shuffle=shuffle, part=(i, parts), memory=SMALL)] for i in range(parts)]
    assert all(each)
    np.testing.assert_array_equal(np.sort(np.concatenate([nodes for part in each for nodes in part])), np.arange(900))


def test_the_seed_decides_the_order(run: ndls.Run) -> None:
    rows = ndls.NodeRows(run)

    def order(seed: Any, memory: int = SMALL) -> list[int]:
        found: list[int] = np.concatenate([b.nodes for b in rows.batches(64, shuffle=seed, memory=memory)]).tolist()
        return found

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert order((1, 0)) != order((1, 1))
    # In one window the order is a random permutation: neighbours in it are far apart.
    assert np.abs(np.diff(order(1, 1 << 30))).mean() == pytest.approx(300, rel=0.1)
    # In small windows rows of a batch are from many places, too.
    first = next(iter(rows.batches(64, shuffle=1, memory=SMALL)))
    assert np.ptp(first.nodes) > 400


def test_gaps_between_rows(run: ndls.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each gap, and each span of some rows, is a read of its own.
    monkeypatch.setattr(_loader, "GAP", 64)
    monkeypatch.setattr(_loader, "SPAN", 256)
    rows = ndls.NodeRows(run, split="valid", number=1)
    got = list(rows.batches(100, shuffle=4))
    nodes = np.concatenate([b.nodes for b in got])
    np.testing.assert_array_equal(np.sort(nodes), run.split("valid", 1))
    np.testing.assert_array_equal(np.concatenate([b.x for b in got]), run.features[nodes])


def test_single_rows(run: ndls.Run) -> None:
    rows = ndls.NodeRows(run, "hops", "test", dtype=np.float64)
    x, y = rows[3]
    node = run.split("test")[3]
    np.testing.assert_array_equal(x, [r[node] for r in run.hops.values()])
    assert y == run.labels[node]
    assert x.dtype == np.float64
    assert x.flags.writeable
    with pytest.raises(IndexError):
        rows[len(rows)]
    batch = rows.take([5, 1])
    np.testing.assert_array_equal(batch.nodes, run.split("test")[[5, 1]])
    again = pickle.loads(pickle.dumps(rows))
    np.testing.assert_array_equal(again.take([5, 1]).x, batch.x)


@pytest.mark.parametrize("shuffle", [None, 1])
@pytest.mark.parametrize("size", [3, 100])
def test_batches_that_are_kept_stay(run: ndls.Run, shuffle: int | None, size: int) -> None:
    rows = ndls.NodeRows(run)
    kept = []
    for b in rows.batches(size, shuffle=shuffle, memory=SMALL):
        b.x[:] += 1
        kept.append(b)
    for b in kept:
        np.testing.assert_array_equal(b.x, run.features[b.nodes] + 1)


@pytest.mark.parametrize("size", [1, 3, 7, 10, 100])
def test_windows_take_turns(run: ndls.Run, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    new = []

    class Memory(_loader._Memory):
        def __init__(self, free: list[Any], bytes: int) -> None:
            new.append(not free)
            super().__init__(free, bytes)

    monkeypatch.setattr(_loader, "_Memory", Memory)
    for b in ndls.NodeRows(run).batches(size, shuffle=1, memory=SMALL // 2):
        assert len(b.y)
    assert len(new) > 4
    assert sum(new) <= 2


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("what", ["features", "hops"])
@pytest.mark.parametrize("split", [None, "train"])
def test_past_the_page_cache(run: ndls.Run, monkeypatch: pytest.MonkeyPatch, refused: bool, what: str, split: str | None) -> None:
    rows = ndls.NodeRows(run, what, split)
    expected = list(rows.batches(64, shuffle=2))
    past: list[bool] = []
    preadv = os.preadv

    def read(file: int, buffers: Any, offset: int) -> int:
        past.append(bool(fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT))
        if refused and past[-1]:
            raise OSError(errno.EINVAL, "larger blocks only")
        return preadv(file, buffers, offset)

    monkeypatch.setattr(os, "preadv", read)
    monkeypatch.setattr(os, "sysconf", lambda name: 1)  # no rows fit in half of the memory
    for a, b in zip(expected, rows.batches(64, shuffle=2), strict=True):
        np.testing.assert_array_equal(a.x, b.x)
        np.testing.assert_array_equal(a.nodes, b.nodes)
    if not past[0]:
        pytest.skip("this file system has no reads past the page cache")
    assert past[-1] is not refused


def test_drop_last_and_refusals(run: ndls.Run) -> None:
    rows = ndls.NodeRows(run)
    assert [len(b.y) for b in rows.batches(400, shuffle=1, drop_last=True)] == [400, 400]
    with pytest.raises(ValueError, match="size"):
        rows.batches(0)
    with pytest.raises(ValueError, match="part"):
        rows.batches(1, part=(2, 2))
    with pytest.raises(KeyError, match="hop_9"):
        ndls.NodeRows(run, "hop_9")
    with pytest.raises(ValueError, match="train, valid or test"):
        ndls.NodeRows(run, split="training")


def test_leaving_early_closes_the_files(run: ndls.Run) -> None:
    before = len(os.listdir("/proc/self/fd"))
    rows = ndls.NodeRows(run)
    for _ in range(3):
        batches = rows.batches(10, shuffle=1, memory=SMALL)
        next(batches)
        batches.close()  # type: ignore[attr-defined]
    assert len(os.listdir("/proc/self/fd")) <= before + 1
