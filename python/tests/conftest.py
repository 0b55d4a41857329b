"""A small graph, and a run of it, which several tests read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import ndls

NODES, TOPICS, FEATURES = 900, 3, 8


class Arrays(NamedTuple):
    """A graph whose topics can be learnt from features and edges."""

    src: npt.NDArray[np.int64]
    dst: npt.NDArray[np.int64]
    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    splits: npt.NDArray[np.uint8]

    def hop(self, x: npt.NDArray[Any], weights: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """Returns the product of x with the symmetrically normalised adjacency matrix, densely in float64."""
        n = len(x)
        a = np.zeros((n, n))
        a[self.src, self.dst] = 1 if weights is None else weights
        a = np.maximum(a, a.T)
        np.fill_diagonal(a, 1)
        d = a.sum(1) ** -0.5
        product: npt.NDArray[Any] = (d[:, None] * a * d) @ x
        return product


@pytest.fixture(scope="session")
def arrays() -> Arrays:
    rng = np.random.default_rng(1)
    topic = rng.integers(TOPICS, size=NODES)
    members = [np.flatnonzero(topic == t) for t in range(TOPICS)]
    src = rng.integers(NODES, size=4 * NODES)
    dst = np.array([rng.choice(members[topic[i]]) if rng.random() < 0.8 else rng.integers(NODES) for i in src])
    # Each node is in an edge, also where ids come from edges alone.
    src, dst = np.append(src, np.arange(NODES)), np.append(dst, (np.arange(NODES) + 1) % NODES)
    features = (np.eye(TOPICS, FEATURES)[topic] + rng.normal(0, 1, (NODES, FEATURES))).astype(np.float32)
    splits = rng.choice(4, p=[0.1, 0.3, 0.3, 0.3], size=(NODES, 2)).astype(np.uint8)
    return Arrays(src, dst, features, topic, splits)


@pytest.fixture(scope="session")
def run(arrays: Arrays, tmp_path_factory: pytest.TempPathFactory) -> ndls.Run:
    """A run with two splits of two models each, and hops that were kept."""
    graph = ndls.from_arrays(arrays.src, arrays.dst, features=arrays.features, labels=arrays.labels, splits=arrays.splits)
    return ndls.run(graph, tmp_path_factory.mktemp("runs") / "run", progress=False, splits=2, runs=2, epochs=5, keep_hops=range(3), memory="512MiB")


def imported(graph: ndls.Graph, path: Path, directed: bool = False, **options: str) -> ndls.Run:
    """Imports a graph, and keeps its features and one hop of them."""
    ndls.command("partition", progress=False, dataset=graph, run=path, **{"normalize": "none", "memory": "512MiB"} | options)
    if not directed:
        ndls.command("lsi", progress=False, run=path, probes=16, memory="512MiB")
    ndls.command("smooth", progress=False, run=path, rule="sgc", hops=1, keep_hops="0..1", memory="512MiB")
    return ndls.open(path)
