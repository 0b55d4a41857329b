"""Embeddings of the edges alone: ndls --rule fastrp beside Cleora and node2vec, each with 128 dimensions.

    python embeddings.py --data DATA --set cora           # accuracies; DATA has cora/cora, cora_ml, …
    python embeddings.py --nodes 1000000 --only fastrp cleora     # time and memory on a generated graph

The accuracy is that of one logistic regression on the embeddings, whose strength is chosen on
validation nodes, over ten random splits of 10 % for training, 10 % for validation and the rest for
testing. fastrp and Cleora run with their defaults, node2vec with the walks of its paper, in a process of its own, from the same Parquet file of
edges; time and peak memory are of that process and those that it starts, from reading the file to
rows in memory or on disk. Needs the package ndls, pycleora, fastnode2vec and scikit-learn.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

DIMENSIONS = 128


def fastrp(edges: Path, out: Path, weights: str) -> None:
    import ndls

    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        options = {"rule": "fastrp", "dimensions": DIMENSIONS, "hop_weights": weights, "memory": "8GiB"}
        ndls.command("partition", progress=False, dataset=f"edges:{edges}", run=folder + "/run", memory="8GiB")
        ndls.command("smooth", progress=False, run=folder + "/run", **options)
        run = ndls.open(folder + "/run")
        np.save(out, np.asarray(run.features)[np.argsort(run.ids)])


def cleora(edges: Path, out: Path, iterations: str) -> None:
    import pycleora

    table = pq.read_table(edges)
    lines = (f"{u} {v}" for u, v in zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))
    graph = pycleora.SparseMatrix.from_iterator(lines, "complex::reflexive::node")
    rows = pycleora.embed(graph, feature_dim=DIMENSIONS, num_iterations=int(iterations))
    np.save(out, rows[np.argsort(np.array([int(i) for i in graph.entity_ids]))])


def node2vec(edges: Path, out: Path, p_and_q: str) -> None:
    from fastnode2vec import Graph, Node2Vec

    p, q = map(float, p_and_q.split(","))
    ends = [c.to_pylist() for c in pq.read_table(edges).columns]
    graph = Graph(zip(*ends, strict=True), directed=False, weighted=False, verbose=False)
    model = Node2Vec(graph, dim=DIMENSIONS, walk_length=80, window=10, p=p, q=q, workers=os.cpu_count() or 1)
    model.train(epochs=10, verbose=False)
    np.save(out, np.stack([model.wv[i] for i in range(len(graph.node_names))]))


METHODS = {
    "fastrp": (fastrp, "0,0,1,1,1,1"),
    "fastrp, ten hops": (fastrp, "0,0,1,1,1,1,1,1,1,1,1"),
    "cleora": (cleora, "40"),
    "cleora, 4 iterations": (cleora, "4"),
    "node2vec": (node2vec, "1,1"),
    "node2vec, q 0.5": (node2vec, "1,0.5"),
}


def accuracy(rows: Any, labels: Any) -> tuple[float, float]:
    """Returns mean and deviation of the test accuracy over ten splits."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    x = StandardScaler().fit_transform(rows)
    scores = []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(np.flatnonzero(labels >= 0))
        train, valid, test = np.split(order, [len(order) // 10, len(order) // 5])
        models = [LogisticRegression(C=c, max_iter=500).fit(x[train], labels[train]) for c in (0.001, 0.01, 0.1, 1)]
        best = max(models, key=lambda m: m.score(x[valid], labels[valid]))
        scores.append(best.score(x[test], labels[test]))
    return float(np.mean(scores)), float(np.std(scores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="")
    parser.add_argument("--set", default="", help="a dataset URI below --data, such as planetoid:cora/cora")
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        name, edges, out = args.one
        method, given = METHODS[name]
        start = time.perf_counter()
        method(Path(edges), Path(out), given)
        usage = [resource.getrusage(who).ru_maxrss / 1e6 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        print(json.dumps({"seconds": time.perf_counter() - start, "gigabytes": max(usage)}))
        return
    import ndls

    with tempfile.TemporaryDirectory() as folder:
        uri = (
            args.set.replace(":", f":{args.data}/", 1)
            if args.set
            else f"synthetic:nodes={args.nodes},edges={10 * args.nodes},features=1,classes=8,seed=1"
        )
        ndls.command("partition", progress=False, dataset=uri, run=folder + "/graph", memory="4GiB")
        run = ndls.open(folder + "/graph")
        run.export("edges", folder + "/exported.parquet")
        table = pq.read_table(folder + "/exported.parquet").rename_columns(["src", "dst"])
        # All methods see the nodes that have edges, numbered from 0.
        ids, ends = np.unique(np.stack([c.to_numpy() for c in table.columns]), return_inverse=True)
        ends = ends.reshape(2, -1)
        import pyarrow as pa

        pq.write_table(pa.table({"src": ends[0], "dst": ends[1]}), folder + "/edges.parquet")
        labels = run.labels[run.index(ids)]
        print(f"{uri}: {len(ids)} nodes with edges, {ends.shape[1]} edges", flush=True)
        for name in args.only:
            done = subprocess.run(
                [sys.executable, __file__, "--one", name, folder + "/edges.parquet", folder + "/rows.npy"],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                print(f"  {name}: {done.stderr[-300:]}", flush=True)
                continue
            took = json.loads(done.stdout.splitlines()[-1])
            line = f"  {name} ({METHODS[name][1]}): {took['seconds']:.1f} s, {took['gigabytes']:.2f} GB"
            rows = np.load(folder + "/rows.npy")
            assert rows.shape == (len(ids), DIMENSIONS)
            if args.set:
                mean, deviation = accuracy(rows, labels)
                line += f"; accuracy {100 * mean:.1f} ± {100 * deviation:.1f} %"
            print(line, flush=True)


if __name__ == "__main__":
    main()
