"""Writes one random graph in every layout that NumPy, pyarrow and Python can write.

Usage: layouts.py DIR. The first is edges: with arrays; layouts_python_test.go compares the
others with it.
"""
import bz2
import json
import lzma
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

os.chdir(sys.argv[1])
rng = np.random.default_rng(7)
n, m, f = 300, 2000, 5
edges = rng.integers(0, n, (m, 2))
x = rng.standard_normal((n, f)).astype(np.float16)
y = rng.integers(0, 6, n)
split = rng.integers(0, 4, n)  # 0 none, 1 train, 2 valid, 3 test
np.save("edges.npy", edges)
np.save("x.npy", x)
np.save("y.npy", y)
np.save("split.npy", split)


def folder(path):
    os.makedirs(path, exist_ok=True)
    return path + "/"


# GraphSAINT, as scipy.sparse.save_npz writes a matrix.
d = folder("saint")
order = np.argsort(edges[:, 0], kind="stable")
np.savez_compressed(d + "adj_full.npz", indices=edges[order, 1].astype(np.int32), format=np.array(b"csr"), shape=np.array([n, n]), data=np.ones(m, bool),
                    indptr=np.concatenate([[0], np.cumsum(np.bincount(edges[:, 0], minlength=n))]).astype(np.int32))
np.save(d + "feats.npy", x.astype(np.float64))
json.dump({str(i): int(c) for i, c in enumerate(y)}, open(d + "class_map.json", "w"))
json.dump({k: np.nonzero(split == v)[0].tolist() for k, v in (("tr", 1), ("va", 2), ("te", 3))}, open(d + "role.json", "w"))

# Heterophilous graphs: ten splits as masks.
masks = {name: np.stack([rng.permutation(split == v) if s != 4 else split == v for s in range(10)]) for name, v in (("train", 1), ("val", 2), ("test", 3))}
np.savez_compressed("hetero.npz", edges=edges, node_features=x.astype(np.float32), node_labels=y, **{k + "_masks": v for k, v in masks.items()})
np.savez("masks.npz", **{k + "_mask": np.ascontiguousarray(v.T) for k, v in masks.items()})
np.savez("lists.npz", **{k + "_idx": np.nonzero(split == v)[0] for k, v in (("train", 1), ("valid", 2), ("test", 3))})
np.save("several.npy", np.stack([rng.permutation(split), split]))

# MAG240M without its split, IGB in memory maps without header.
d = folder("mag/processed/paper___cites___paper")
np.save(d + "edge_index.npy", np.ascontiguousarray(edges.T))
d = folder("mag/processed/paper")
np.save(d + "node_feat.npy", x)
np.save(d + "node_label.npy", y.astype(np.float32))
d = folder("igb/large/processed/paper__cites__paper")
np.save(d + "edge_index.npy", edges.astype(np.int32))
d = folder("igb/large/processed/paper")
wide = np.memmap(d + "node_feat.npy", dtype="float32", mode="w+", shape=(n, 1024))
wide[:, :f] = x
wide.flush()
y.astype(np.float32).tofile(d + "node_label_19.npy")

# DGL in chunks, GraphBolt.
d = folder("dgl")
np.savetxt(d + "e0.csv", edges[:700], "%d", " ")
np.savetxt(d + "e1.csv", edges[700:], "%d", " ")
pq.write_table(pa.table({"a": edges[:, 0], "b": edges[:, 1]}), d + "e.parquet")
for i, part in enumerate((slice(0, 120), slice(120, n))):
    np.save(d + f"x{i}.npy", x[part])
    np.save(d + f"y{i}.npy", y[part])
    for v in (1, 2, 3):
        np.save(d + f"m{v}{i}.npy", split[part] == v)


def arrays(name):
    return {"format": {"name": "numpy"}, "data": [name + "0.npy", name + "1.npy"]}


for name, e in (("dgl", {"format": {"name": "csv", "delimiter": " "}, "data": ["e0.csv", "e1.csv"]}), ("dglp", {"format": {"name": "parquet"}, "data": ["e.parquet"]})):
    meta = {"graph_name": "g", "node_type": ["n"], "num_nodes_per_type": [n], "edge_type": ["n:e:n"], "edges": {"n:e:n": e},
            "node_data": {"n": {"feat": arrays("x"), "label": arrays("y"), "train_mask": arrays("m1"), "val_mask": arrays("m2"), "test_mask": arrays("m3")}}}
    if name == "dglp":
        for data in [e, *meta["node_data"]["n"].values()]:
            data["data"] = ["../dgl/" + p for p in data["data"]]
    json.dump(meta, open(folder(name) + "metadata.json", "w"), indent=1)
d = folder("bolt")
np.savetxt(d + "e.csv", edges, "%d", ",")
np.save(d + "x.npy", x)
sets = ""
for name, v in (("train_set", 1), ("validation_set", 2), ("test_set", 3)):
    ids = np.nonzero(split == v)[0]
    np.save(d + f"ids{v}.npy", ids)
    np.save(d + f"labels{v}.npy", y[ids])
    sets += f"    {name}:\n      - data:\n          - {{name: seeds, format: numpy, path: ids{v}.npy}}\n          - {{name: labels, format: numpy, path: labels{v}.npy}}\n"
open(d + "metadata.yaml", "w").write(f"""dataset_name: g
graph:
  nodes: [{{num: {n}}}]
  edges: [{{format: csv, path: e.csv}}]
feature_data:
  - {{domain: node, type: null, name: feat, format: numpy, path: x.npy}}
tasks:
  - name: node_classification
    num_classes: 6
{sets}""")

# Text forms, packed by Python.
text = "".join(f"{u + 1} {v + 1}\n" for u, v in edges)
open("g.mtx.xz", "wb").write(lzma.compress(f"%%MatrixMarket matrix coordinate pattern general\n{n} {n} {m}\n{text}".encode(), preset=6))
open("g.gr.bz2", "wb").write(bz2.compress(f"p tw {n} {m}\n{text}".encode()))
open("g.adjlist", "w").write("".join(f"{u} {v}\n" for u, v in edges))

# Weights, of edges that are there once: as CSV, and in text forms.
pairs = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
weights = rng.random(len(pairs)).astype(np.float32) + np.float32(1e-3)
rows = [(int(u), int(v), repr(float(w))) for (u, v), w in zip(pairs, weights)]
open("w.csv", "w").write("src,dst,weight\n" + "".join(f"{u},{v},{w}\n" for u, v, w in rows))
open("w.mtx", "w").write(f"%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {len(rows)}\n" + "".join(f"{v + 1} {u + 1} {w}\n" for u, v, w in rows))
open("w.gr", "w").write(f"p sp {n} {2 * len(rows)}\n" + "".join(f"a {u + 1} {v + 1} {w}\na {v + 1} {u + 1} {w}\n" for u, v, w in rows))
lines = [[] for _ in range(n)]
for u, v, w in rows:
    lines[u].append(f"{v + 1} {w}")
    lines[v].append(f"{u + 1} {w}")
open("w.graph", "w").write(f"{n} {len(rows)} 1\n" + "".join(" ".join(line) + "\n" for line in lines))
