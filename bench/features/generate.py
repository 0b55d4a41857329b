"""Writes a graph with wide features in the layout of IGB or of MAG240M.

    python generate.py igb DIR 2000000        # 8.2 GB of features: float32, no header
    python generate.py mag240m DIR 5300000    # 8.1 GB of features: float16
"""

import os
import sys

import numpy as np

AT_A_TIME = 100_000  # rows


def rows(rng, nodes, width):
    for first in range(0, nodes, AT_A_TIME):
        yield first, rng.standard_normal((min(AT_A_TIME, nodes - first), width), dtype=np.float32)


def igb(folder, nodes, rng):
    papers = os.path.join(folder, "large", "processed", "paper")
    cites = os.path.join(folder, "large", "processed", "paper__cites__paper")
    os.makedirs(papers)
    os.makedirs(cites)
    rng.integers(0, nodes, size=(3 * nodes, 2), dtype=np.int32).tofile(os.path.join(cites, "edge_index.npy"))
    rng.integers(0, 19, size=nodes).astype(np.float32).tofile(os.path.join(papers, "node_label_19.npy"))
    with open(os.path.join(papers, "node_feat.npy"), "wb") as file:
        for _, part in rows(rng, nodes, 1024):
            part.tofile(file)


def mag240m(folder, nodes, rng):
    papers = os.path.join(folder, "processed", "paper")
    cites = os.path.join(folder, "processed", "paper___cites___paper")
    os.makedirs(papers)
    os.makedirs(cites)
    np.save(os.path.join(cites, "edge_index.npy"), rng.integers(0, nodes, size=(2, 2 * nodes), dtype=np.int64))
    labels = np.full(nodes, np.nan, dtype=np.float32)
    labels[rng.integers(0, nodes, size=nodes // 80)] = rng.integers(0, 153, size=nodes // 80)
    np.save(os.path.join(papers, "node_label.npy"), labels)
    file = np.lib.format.open_memmap(os.path.join(papers, "node_feat.npy"), mode="w+", dtype=np.float16, shape=(nodes, 768))
    for first, part in rows(rng, nodes, 768):
        file[first : first + len(part)] = part
    file.flush()


if __name__ == "__main__":
    layouts = {"igb": igb, "mag240m": mag240m}
    if len(sys.argv) != 4 or sys.argv[1] not in layouts:
        sys.exit(__doc__)
    layouts[sys.argv[1]](sys.argv[2], int(sys.argv[3]), np.random.default_rng(1))
