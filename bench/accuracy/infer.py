"""Compares ndls infer with runs that have the new nodes from the beginning.

    python bench/accuracy/infer.py build/ndls DATA/coauthor_cs/coauthor_cs.gnnbench.npz [--seeds 3] [--hops 8] [OPTION…]

takes 1 % of the nodes out of a graph in the gnn-benchmark layout, makes a run of the others
that keeps its hops, infers the nodes that were taken out, and makes a run of all nodes with
the same training nodes. For each seed it prints the accuracy of both on these nodes, before
label smoothing, how far K is apart, and how far smoothed rows are apart, relative to their
length. Other options go to both runs.
"""

import argparse
import glob
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def csr(z, name):
    """Returns rows, columns and values of a sparse matrix."""
    ptr = z[name + "_indptr"]
    rows = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    return rows, z[name + "_indices"], z[name + "_data"], len(ptr) - 1


def features(z, n):
    """Returns the rows of features."""
    rows, columns, values, _ = csr(z, "attr")
    x = np.zeros((n, z["attr_shape"][1]), dtype=np.float32)
    x[rows, columns] = values
    return x


def write(folder, name, edges, nodes, x, labels, split):
    """Writes tables of edges and nodes, and returns the URI."""
    pq.write_table(pa.table({"src": edges[0], "dst": edges[1]}), folder / f"{name}-edges.parquet")
    lists = pa.FixedSizeListArray.from_arrays(x[nodes].reshape(-1), x.shape[1])
    table = {"id": nodes, "x": lists, "label": labels[nodes]}
    query = "src=src&dst=dst&id=id&features=x"
    if split is not None:
        table["split"] = [str(s) for s in split[nodes]]
        query += "&label=label&split=split"
    pq.write_table(pa.table(table), folder / f"{name}-nodes.parquet", row_group_size=2000)
    return f"table:{folder}/{name}-edges.parquet?{query}&nodes={folder}/{name}-nodes.parquet"


def splits(labels, held, random):
    """Draws 20 training and 30 validation nodes of each class among those that stay."""
    split = np.full(len(labels), "test", dtype=object)
    for c in range(labels.max() + 1):
        nodes = random.permutation(np.flatnonzero((labels == c) & ~held))
        split[nodes[:20]], split[nodes[20:50]] = "train", "valid"
    return split


def rows_of(pattern, column, wanted):
    """Returns the values of some ids, in their order."""
    out = {}
    for f in sorted(glob.glob(pattern)):
        with pa.ipc.open_file(f) as r:
            for i in range(r.num_record_batches):
                b = r.get_batch(i)
                ids = b["id"].to_numpy()
                values = b[column]
                flat = values.flatten().to_numpy().reshape(len(ids), -1)
                for at in np.flatnonzero(np.isin(ids, wanted)):
                    out[ids[at]] = flat[at].astype(float)
    return np.stack([out[i] for i in wanted])


def k_of(pattern, wanted):
    """Returns K of some ids, in their order."""
    t = pa.concat_tables(pq.read_table(f) for f in sorted(glob.glob(pattern)))
    k = dict(zip(t["id"].to_pylist(), t["k"].to_pylist()))
    return np.array([k[i] for i in wanted])


def one(ndls, z, seed, hops, options):
    random = np.random.default_rng(seed)
    labels = z["labels"].astype(np.int64)
    n = len(labels)
    src, dst, _, _ = csr(z, "adj")
    src, dst = src.astype(np.int64), dst.astype(np.int64)
    held = np.zeros(n, dtype=bool)
    held[random.permutation(n)[: n // 100]] = True
    split = splits(labels, held, random)
    x = features(z, n)
    old, new = np.flatnonzero(~held).astype(np.int64), np.flatnonzero(held).astype(np.int64)
    both = held[src] | held[dst]
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        all_uri = write(folder, "all", (src, dst), np.arange(n, dtype=np.int64), x, labels, split)
        old_uri = write(folder, "old", (src[~both], dst[~both]), old, x, labels, split)
        new_uri = write(folder, "new", (src[both], dst[both]), new, x, labels, None)
        del x

        def call(*args):
            subprocess.run([ndls, *args, "--quiet"], check=True, stdout=subprocess.DEVNULL)

        stages = ["--normalize", "l1", *options]
        call("run", "--dataset", all_uri, "--run", temp + "/all", *stages)
        call("run", "--dataset", old_uri, "--run", temp + "/old", "--keep-hops", f"0..{hops}", *stages)
        call("infer", "--run", temp + "/old", "--dataset", new_uri, "--out", temp + "/out")
        truth = labels[new]
        full = rows_of(temp + "/all/soft_labels/*.arrow", "probability", new).argmax(axis=1)
        inferred = rows_of(temp + "/out/predictions/*.arrow", "probability", new).argmax(axis=1)
        k_full, k_new = k_of(temp + "/all/lsi/*.parquet", new), k_of(temp + "/out/lsi/*.parquet", new)
        a, b = rows_of(temp + "/all/smoothed/*.arrow", "feature", new), rows_of(temp + "/out/smoothed/*.arrow", "feature", new)
        off = np.linalg.norm(a - b, axis=1) / np.linalg.norm(a, axis=1)
        same = k_full == k_new
        return {
            "full": (full == truth).mean(), "infer": (inferred == truth).mean(), "agree": (full == inferred).mean(),
            "K full": k_full.mean(), "K infer": k_new.mean(), "K within 1": (abs(k_full - k_new) <= 1).mean(),
            "rows apart": off.mean(), "rows apart, K equal": off[same].mean() if same.any() else np.nan,
        }


def main():
    p = argparse.ArgumentParser()
    p.add_argument("ndls")
    p.add_argument("data")
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--hops", type=int, default=8)
    a, options = p.parse_known_args()
    z = dict(np.load(a.data, allow_pickle=True))
    lines = []
    for seed in range(1, a.seeds + 1):
        lines.append(one(a.ndls, z, seed, a.hops, options))
        print(seed, {k: round(float(v), 4) for k, v in lines[-1].items()}, flush=True)
    print("mean", {k: round(float(np.mean([line[k] for line in lines])), 4) for k in lines[0]})


if __name__ == "__main__":
    main()
