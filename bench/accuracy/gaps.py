"""Writes tables whose features lack values at random, NaN or zeros in their place.

    python gaps.py OUT DATA/cora/ind.cora.     # Cora: OUT/cora-edges.parquet, OUT/cora-30-nan.parquet, …
    python gaps.py OUT                         # "planted": 8 classes, 32 measured numbers, 70 % of the edges within a class
"""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def cora(prefix: str) -> tuple[Any, ...]:
    """Returns sources, destinations, features, labels and splits of a data set of Planetoid."""
    allx, ally, tx, ty, y, graph = (
        pickle.loads(Path(prefix + end).read_bytes(), encoding="latin1") for end in ("allx", "ally", "tx", "ty", "y", "graph")
    )
    test = [int(line) for line in Path(prefix + "test.index").read_text().split()]
    x, labels = np.zeros((len(graph), allx.shape[1]), np.float32), np.full(len(graph), -1)
    x[: allx.shape[0]], labels[: len(ally)] = allx.toarray(), ally.argmax(1)
    x[test], labels[test] = tx.toarray(), ty.argmax(1)
    split = np.full(len(graph), "", object)
    split[: len(y)], split[len(y) : len(y) + 500], split[test] = "train", "valid", "test"
    ends = np.array([(u, v) for u in graph for v in graph[u] if u <= v])
    return ends[:, 0], ends[:, 1], x, labels, split


def planted(n: int = 5000, classes: int = 8, width: int = 32, edges: int = 15000) -> tuple[Any, ...]:
    """Returns the same of a graph with classes."""
    r = np.random.default_rng(5)
    labels = r.integers(0, classes, n)
    of = [np.flatnonzero(labels == c) for c in range(classes)]
    src = r.integers(0, n, edges)
    dst = np.where(r.random(edges) < 0.7, [r.choice(of[labels[i]]) for i in src], r.integers(0, n, edges))
    x = ((r.normal(size=(classes, width)) * 0.7)[labels] + r.normal(size=(n, width)) * 2).astype(np.float32)
    split, order = np.full(n, "test", object), r.permutation(n)
    for c in range(classes):
        split[[i for i in order if labels[i] == c][:20]] = "train"
    split[[i for i in order if split[i] == "test"][:500]] = "valid"
    return src, dst, x, labels, split


out, name = Path(sys.argv[1]), "cora" if len(sys.argv) > 2 else "planted"
src, dst, x, labels, split = cora(sys.argv[2]) if len(sys.argv) > 2 else planted()
pq.write_table(pa.table({"s": src, "d": dst}), out / f"{name}-edges.parquet")
for share in (30, 60, 90):
    gaps = np.where(np.random.default_rng(7).random(x.shape) * 100 < share, np.float32(np.nan), x)
    for kind, rows in (("nan", gaps), ("zero", np.nan_to_num(gaps))):
        columns = {"id": np.arange(len(x)), "y": labels, "split": list(split), "x": pa.FixedSizeListArray.from_arrays(rows.ravel(), x.shape[1])}
        pq.write_table(pa.table(columns), out / f"{name}-{share}-{kind}.parquet")
