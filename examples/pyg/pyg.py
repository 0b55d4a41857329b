"""A graph of PyTorch Geometric in, smoothed rows, hops and predictions out, in the order of its nodes.

    python pyg.py --run RUN [--nodes 3000]

It makes a graph with communities, smooths its features by ndls, and puts what came out into a
`torch_geometric.data.Data`. A GCN of PyTorch Geometric on the graph, and a perceptron on the
smoothed rows, which needs no edges, are trained and compared. It needs torch, torch_geometric and
the package ndls.
"""

import argparse

import numpy as np
import torch
import torch_geometric
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import ndls


def communities(nodes: int, topics: int = 4, features: int = 16, seed: int = 1) -> Data:
    """Makes a graph whose nodes link mostly to nodes of their own topic, and say little about it themselves."""
    random = np.random.default_rng(seed)
    topic = random.integers(topics, size=nodes)
    members = [np.flatnonzero(topic == t) for t in range(topics)]
    src = random.integers(nodes, size=4 * nodes)
    own = random.random(len(src)) < 0.8
    dst = np.where(own, [random.choice(members[topic[i]]) for i in src], random.integers(nodes, size=len(src)))
    edges = torch.from_numpy(np.stack([src, dst]))
    data = Data(
        x=torch.from_numpy((np.eye(topics, features)[topic] + random.normal(size=(nodes, features))).astype(np.float32)),
        y=torch.from_numpy(topic),
        edge_index=torch_geometric.utils.to_undirected(edges, num_nodes=nodes),
    )
    part = torch.from_numpy(random.choice(3, size=nodes, p=[0.1, 0.3, 0.6]))
    data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
    return data


def smoothed(data: Data, path: str) -> tuple[Data, ndls.Run]:
    """Runs ndls on a graph. Returns a copy of it with what came out for each node."""
    run = ndls.run(ndls.from_pyg(data), path, progress=False, runs=3, epochs=60, keep_hops="0..2", memory="1GiB")
    nodes = run.index(np.arange(data.num_nodes))  # node i of data is node nodes[i] of the run
    out = data.clone()
    out.x = torch.from_numpy(run.features[nodes])
    out.hops = torch.from_numpy(np.stack([hop[nodes] for hop in run.hops.values()], 1))
    out.k = torch.from_numpy(run.k[nodes].astype(np.int64))
    out.prediction = torch.from_numpy(run.predictions[nodes])
    return out, run


class GCN(torch.nn.Module):
    """Two layers that read the neighbours in every step."""

    def __init__(self, features: int, classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.first, self.second = GCNConv(features, hidden), GCNConv(hidden, classes)

    def forward(self, data: Data) -> torch.Tensor:
        x = functional.dropout(self.first(data.x, data.edge_index).relu(), 0.5, self.training)
        return self.second(x, data.edge_index)


class Perceptron(torch.nn.Module):
    """Reads the rows alone."""

    def __init__(self, features: int, classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(features, hidden), torch.nn.Linear(hidden, classes)

    def forward(self, data: Data) -> torch.Tensor:
        return self.second(functional.dropout(self.first(data.x).relu(), 0.5, self.training))


def fit(model: torch.nn.Module, data: Data, epochs: int = 60) -> float:
    """Trains a model. Returns the accuracy on test nodes, at the epoch with the best one on validation nodes."""
    adam = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best, test = -1.0, 0.0
    for _ in range(epochs):
        model.train()
        adam.zero_grad()
        functional.cross_entropy(model(data)[data.train_mask], data.y[data.train_mask]).backward()
        adam.step()
        model.eval()
        with torch.no_grad():
            right = (model(data).argmax(1) == data.y).float()
        if (valid := right[data.val_mask].mean().item()) > best:
            best, test = valid, right[data.test_mask].mean().item()
    return test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--run", required=True, help="run directory")
    parser.add_argument("--nodes", type=int, default=3000)
    args = parser.parse_args()

    torch.manual_seed(1)
    data = communities(args.nodes)
    out, _ = smoothed(data, args.run)
    print(out)
    features, classes = data.num_features, int(data.y.max()) + 1
    predicted = (out.prediction.argmax(1) == data.y)[data.test_mask].float().mean().item()
    print(f"perceptron on raw rows       {fit(Perceptron(features, classes), data):.3f}")
    print(f"GCN on the graph             {fit(GCN(features, classes), data):.3f}")
    print(f"perceptron on smoothed rows  {fit(Perceptron(features, classes), out):.3f}")
    print(f"predictions of ndls          {predicted:.3f}")


if __name__ == "__main__":
    main()
