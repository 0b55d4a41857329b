"""A perceptron in PyTorch on smoothed rows that do not fit in memory, and its predictions smoothed.

    python mlp.py RUN [--epochs 20] [--batch 4096] [--hidden 256]

RUN is a run directory with smoothed rows of all nodes, labels and a split, as `ndls run` leaves it.
Rows are read from disk a chunk at a time, a batch of them after the other; in memory are two windows
of rows, and the probabilities. It needs NumPy, PyTorch and the package ndls.
"""

import argparse

import numpy as np
import torch
from torch.nn import functional
from torch.utils.data import DataLoader

import ndls
from ndls.torch import Batches


def reader(run: ndls.Run, split: str | None, size: int, shuffle: int | None = None) -> tuple[Batches, DataLoader]:
    """Returns the batches of a split, or of all rows, and the loader of them. Threads read ahead of it."""
    batches = Batches(ndls.NodeRows(run, split=split), size, shuffle=shuffle)
    return batches, DataLoader(batches, batch_size=None)


def spread(loader: DataLoader) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns mean and standard deviation of each column, by one pass over the rows."""
    n, total, squares = 0, 0, 0
    for batch in loader:
        x = batch.x.double()
        n, total, squares = n + len(x), total + x.sum(0), squares + (x * x).sum(0)
    mean = total / n
    deviation = (squares / n - mean * mean).clamp(min=0).sqrt()
    return mean.float(), deviation.clamp(min=1e-9).float()


class Perceptron(torch.nn.Module):
    """One hidden layer, behind columns that are brought to mean 0 and deviation 1."""

    def __init__(self, mean: torch.Tensor, deviation: torch.Tensor, hidden: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("deviation", deviation)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(len(mean), hidden), torch.nn.ReLU(), torch.nn.Dropout(0.4), torch.nn.Linear(hidden, classes)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers((x - self.mean) / self.deviation)


@torch.no_grad()
def accuracy(model: Perceptron, loader: DataLoader) -> float:
    model.eval()
    right = [(model(batch.x).argmax(1) == batch.y) for batch in loader]
    return torch.cat(right).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("run")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=4096, help="rows of a step")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    run = ndls.open(args.run)
    train, train_loader = reader(run, "train", args.batch, shuffle=args.seed)
    _, valid_loader = reader(run, "valid", args.batch)
    model = Perceptron(*spread(train_loader), args.hidden, len(run.classes))
    adam = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    best, weights = -1.0, {}
    for epoch in range(args.epochs):
        train.set_epoch(epoch)
        model.train()
        for batch in train_loader:
            adam.zero_grad()
            functional.cross_entropy(model(batch.x), batch.y).backward()
            adam.step()
        valid = accuracy(model, valid_loader)
        if valid > best:
            best, weights = valid, {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(weights)
    model.eval()

    probability = np.empty((run.graph["nodes"], len(run.classes)), np.float32)
    with torch.no_grad():
        for batch in reader(run, None, args.batch)[1]:
            probability[batch.nodes] = model(batch.x).softmax(1)
    smoothed = run.smooth_labels(probability, progress=False)
    of = smoothed.report["accuracy"]
    for when, key in (("before", "base"), ("after", "smoothed")):
        print(f"test accuracy {when} label smoothing: {of[key]['test']['mean']:.3f}")


if __name__ == "__main__":
    main()
