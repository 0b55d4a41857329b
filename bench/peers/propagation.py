"""What the peers that multiply share: command line, graph files, random graphs and the sample that is compared.

propagate: hops of D̃⁻¹Ã over the features of a graph in the layout of ogbn-papers100M (raw/data.npz, not
compressed), symmetrised, without repeated edges and self-loops. kernel: one product with a random matrix.
"""

import argparse
import gzip
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from peer import Phases, line

Array = np.ndarray

# SAMPLE is the number of rows, evenly spread, whose sums are compared.
SAMPLE = 64
# CHUNK is the number of feature rows read at a time.
CHUNK = 1 << 16


def serve(
    version: str,
    build: Callable[[Array, int], Any],
    multiply: Callable[[Any, Any, int], Any],
    wrap: Callable[[Array, Array, int], Any] | None = None,
    enter: Callable[[Array], Any] = lambda x: x,
) -> None:
    """Run a peer: build(edges of shape (2, m), nodes) makes D̃⁻¹Ã, multiply(matrix, x, hops) the
    product, enter(x) turns float32 rows into what multiply takes; wrap(offsets, sources, nodes) makes
    the matrix of kernel, all of whose values are the same."""
    parser = argparse.ArgumentParser(description=version)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("propagate")
    verb.add_argument("--graph", type=Path, required=True, help="folder of ndls generate")
    verb.add_argument("--columns", type=int, default=128)
    verb.add_argument("--block", type=int, default=0, help="columns at a time (0: all)")
    verb.add_argument("--hops", type=int, default=10)
    verb.add_argument("--targets", choices=("all", "labelled"), default="all", help="nodes whose rows are kept")
    verb.add_argument("--out", type=Path, help="folder for the rows of labelled nodes")
    verb = verbs.add_parser("kernel")
    verb.add_argument("--nodes", type=int, required=True)
    verb.add_argument("--rows", type=int, required=True)
    verb.add_argument("--edges", type=int, required=True)
    verb.add_argument("--columns", type=int, default=16)
    verb.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.verb == "propagate":
        propagate(args, version, build, multiply, enter)
    elif wrap is None:
        parser.error("this peer has no kernel of its own")
    else:
        kernel(args, version, wrap, multiply, enter)


def propagate(args: argparse.Namespace, version: str, build: Callable, multiply: Callable, enter: Callable) -> None:
    phases, data = Phases(), args.graph / "raw" / "data.npz"
    with phases("read edges"), np.load(data) as arrays:
        nodes = int(arrays["num_nodes_list"][0])
        edges = [arrays["edge_index"]]
    with phases("build matrix"):
        matrix = build(edges.pop(), nodes)
    kept = None
    if args.targets == "labelled":
        targets = labelled(args.graph)
        kept = np.empty((len(targets), args.columns), np.float32)
    count = nodes if kept is None else len(targets)
    rows = np.arange(SAMPLE) * count // SAMPLE
    sample = np.zeros((SAMPLE, 2))
    block = args.block or args.columns
    for first in range(0, args.columns, block):
        # One reference alone, so that multiply can free what it replaces.
        with phases("read features"):
            x = [enter(columns(data, first, min(first + block, args.columns)))]
        with phases("propagate"):
            y = multiply(matrix, x.pop(), args.hops)
        if kept is not None:
            with phases("keep rows"):
                kept[:, first : first + block] = np.asarray(y[targets])
            y = kept[:, first : first + block]
        values = np.asarray(y[rows], dtype=np.float64)
        sample += np.stack([values.sum(axis=1), np.abs(values).sum(axis=1)], axis=1)
        del y
    if kept is not None:
        with phases("save"):
            np.save(args.out / "rows.npy", kept)
    line(version=version, seconds=phases.seconds, sample=sample.tolist())


def labelled(graph: Path) -> Array:
    """The nodes of all parts of the split, in ascending order."""
    parts = []
    for path in sorted(graph.glob("split/*/*.csv.gz")):
        with gzip.open(path) as f:
            parts.append(np.array(f.read().split(), np.int64))
    return np.unique(np.concatenate(parts))


def columns(data: Path, first: int, last: int) -> Array:
    """Columns [first, last) of the features, read front to back without holding the others."""
    with zipfile.ZipFile(data) as archive, archive.open("node_feat.npy") as f:
        np.lib.format.read_magic(f)
        shape, _, dtype = np.lib.format.read_array_header_1_0(f)
        x = np.empty((shape[0], last - first), np.float32)
        for row in range(0, shape[0], CHUNK):
            count = min(CHUNK, shape[0] - row)
            part = np.frombuffer(f.read(count * shape[1] * dtype.itemsize), dtype).reshape(count, shape[1])
            x[row : row + count] = part[:, first:last]
    return x


def kernel(args: argparse.Namespace, version: str, wrap: Callable, multiply: Callable, enter: Callable) -> None:
    """Rates of products with args.rows rows of args.edges uniformly random sources among args.nodes."""
    phases, rng = Phases(), np.random.default_rng(1)
    with phases("build matrix"):
        offsets = np.arange(args.rows + 1, dtype=np.int64) * args.edges // args.rows
        sources = rng.integers(0, args.nodes, args.edges, dtype=np.int32)
        for row in range(0, args.rows, CHUNK):
            part = offsets[row : row + CHUNK + 1]
            sort_rows(sources[part[0] : part[-1]], part)
        matrix = wrap(offsets, sources, args.nodes)
    with phases("features"):
        x = enter(rng.random((args.nodes, args.columns), dtype=np.float32))
    rates = []
    for round in range(args.rounds + 1):
        line(phase=f"round {round}")
        start = time.perf_counter()
        multiply(matrix, x, 1)
        rates.append(args.edges / (time.perf_counter() - start))
    line(version=version, seconds=phases.seconds, rates=rates[1:])


def sort_rows(sources: Array, offsets: Array) -> None:
    """Sort the sources of each row in place; offsets may start anywhere."""
    row = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))
    sources[:] = (np.sort(row << 32 | sources) & 0xFFFFFFFF).astype(np.int32)
