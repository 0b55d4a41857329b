"""A model with attention over hops, in the manner of GAMLP (Zhang et al., KDD 2022), on the hops
that `ndls smooth --rule sign` has written.

    python gamlp.py RUN [--ndls ndls] [--runs 10] [--epochs 200] [--json FILE]

RUN is a run directory with hops of all nodes. The hops are exported as one array of rows × hops
× values, which stays on disk: each step takes the rows of its batch. With label columns
(`--label-columns`) the last values of a hop are labels; they go through a part of the model of
their own. Options of the model are chosen by the mean accuracy on the validation nodes, and the
accuracy on the test nodes is printed for the chosen ones alone, beside that of the program's own
model where RUN has one.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F


def export(ndls, run, what, folder):
    """Returns an artifact as an array that is mapped from disk, in order of input id."""
    out = Path(folder, what + ".npy")
    subprocess.run(
        [ndls, "export", "--run", run, "--what", what, "--format", "npy", "--out", str(out), "--quiet"], check=True, stdout=subprocess.DEVNULL
    )
    return np.load(out, mmap_mode="r")


class HopAttention(torch.nn.Module):
    """Weighs the hops of each node, and classifies their weighted sum.

    The weight of a hop comes from its row and from the row of a small perceptron that has seen
    all hops side by side ("JK attention" of the paper). Label columns, if there are some, are
    classified by a perceptron of their own, whose logits are added.
    """

    def __init__(self, hops, features, labels, classes, hidden, dropout, input_dropout):
        super().__init__()
        self.features, self.dropout, self.input_dropout = features, dropout, input_dropout
        self.all_hops = torch.nn.Sequential(
            torch.nn.Linear(hops * features, hidden), torch.nn.PReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(hidden, hidden)
        )
        self.score = torch.nn.Linear(hidden + features, 1)
        self.classify = torch.nn.Sequential(
            torch.nn.Linear(features, hidden), torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(hidden, classes)
        )
        self.labels = None
        if labels:
            self.labels = torch.nn.Sequential(
                torch.nn.Linear(hops * labels, hidden), torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(hidden, classes)
            )

    def forward(self, x):
        feature = F.dropout(x[:, :, : self.features], self.input_dropout, self.training)
        reference = self.all_hops(feature.flatten(1)).unsqueeze(1).expand(-1, feature.shape[1], -1)
        weight = F.leaky_relu(self.score(torch.cat([reference, feature], 2)), 0.2).softmax(1)
        logits = self.classify((weight * feature).sum(1))
        if self.labels is not None:
            logits = logits + self.labels(x[:, :, self.features :].flatten(1))
        return logits


def batches(rows, size):
    return [rows] if size == 0 or size >= len(rows) else rows.split(size)


def fit(stack, scale, label, split, labels, option, args, seed):
    """Trains one model. Returns the best accuracy on validation nodes, and that on test nodes then."""
    torch.manual_seed(seed)
    hops = stack.shape[1] if option["hops"] is None else option["hops"] + 1
    features = stack.shape[2] - labels

    def take(rows):  # the rows of a batch, read from the mapped array
        x = torch.from_numpy(np.ascontiguousarray(stack[np.sort(rows.numpy()), :hops]))
        return x * scale

    model = HopAttention(hops, features, labels, int(label.max()) + 1, option["hidden"], option["dropout"], option["input_dropout"])
    adam = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=option["weight_decay"])
    small = {name: take(rows) for name, rows in split.items() if len(rows) <= args.held}

    def of(name, rows):
        return small[name] if name in small and len(rows) == len(split[name]) else take(rows)

    def accuracy(name):
        with torch.no_grad():
            model.eval()
            right = sum(int((model(of(name, rows)).argmax(1) == label[rows]).sum()) for rows in batches(split[name], args.batch))
        return right / max(len(split[name]), 1)

    best, test, since = -1.0, 0.0, 0
    for _ in range(args.epochs):
        model.train()
        order = split["train"] if args.batch == 0 else split["train"][torch.randperm(len(split["train"]))]
        for rows in batches(order, args.batch):
            rows = rows.sort().values
            adam.zero_grad()
            F.cross_entropy(model(of("train", rows)), label[rows]).backward()
            adam.step()
        valid = accuracy("valid")
        since += 1
        if valid > best:
            best, test, since = valid, accuracy("test"), 0
        if since >= args.patience:
            break
    return best, test


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("run")
    p.add_argument("--ndls", default="ndls", help="the program")
    p.add_argument("--runs", type=int, default=10, help="models with the chosen options, each with a seed of its own")
    p.add_argument("--tries", type=int, default=2, help="models for each set of options, to choose by")
    p.add_argument("--epochs", type=int, default=200)
    p.add_argument("--patience", type=int, default=50)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--batch", type=int, default=0, help="rows of a step, 0 for all training rows")
    p.add_argument("--held", type=int, default=1 << 20, help="most rows of a split that are held in memory")
    p.add_argument("--json", help="file for the figures")
    args = p.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        stack = export(args.ndls, args.run, "hops", folder)
        nodes = export(args.ndls, args.run, "nodes", folder)
        if len(stack) != len(nodes):
            raise SystemExit(f"{args.run} has hops of {len(stack)} nodes of {len(nodes)}: run ndls smooth with --targets all")
        plan = json.loads(Path(args.run, "run.json").read_text())["plan"]
        classes = int(nodes["label"].max()) + 1
        labels = classes if plan["smooth"].get("label_columns") else 0
        label = torch.from_numpy(np.array(nodes["label"], dtype=np.int64))
        split = {
            name: torch.from_numpy(np.flatnonzero((nodes["split"] == name.encode()) & (nodes["label"] >= 0))) for name in ("train", "valid", "test")
        }
        # Each hop is divided by the root of the mean square of its training rows.
        rows = np.asarray(stack[split["train"].numpy()])
        parts = [
            np.sqrt((rows[:, :, at] ** 2).mean((0, 2), keepdims=True))
            for at in (slice(0, stack.shape[2] - labels), slice(stack.shape[2] - labels, None))
            if at.start < stack.shape[2]
        ]
        widths = [stack.shape[2] - labels] + ([labels] if labels else [])
        scale = torch.from_numpy(
            np.concatenate([np.repeat(1 / np.maximum(q, 1e-12), w, 2) for q, w in zip(parts, widths, strict=True)], 2).astype(np.float32)
        )

        most = stack.shape[1] - 1
        tried = []
        for hops, hidden, dropout, decay in itertools.product(sorted({most, most // 2}), (64,), (0.5, 0.8), (5e-4,)):
            option = {"hops": hops, "hidden": hidden, "dropout": dropout, "input_dropout": dropout, "weight_decay": decay}
            scale_of = scale[:, : hops + 1]
            valid = statistics.mean(fit(stack, scale_of, label, split, labels, option, args, seed)[0] for seed in range(args.tries))
            tried.append((valid, option))
            print(f"valid {100 * valid:.2f}  {option}", flush=True)
        option = max(tried, key=lambda t: t[0])[1]
        runs = [fit(stack, scale[:, : option["hops"] + 1], label, split, labels, option, args, 1000 + seed) for seed in range(args.runs)]

    def spread(values):
        return f"{100 * statistics.mean(values):.2f} ± {100 * statistics.stdev(values) if len(values) > 1 else 0:.2f}"

    valid, test = [v for v, _ in runs], [t for _, t in runs]
    print(f"chosen: {option}")
    print(f"attention over hops: valid {spread(valid)}, test {spread(test)} ({len(runs)} models)")
    report = Path(args.run, "report.json")
    own = (json.loads(report.read_text()).get("accuracy") or {}).get("base") if report.exists() else None
    if own and own.get("test"):
        theirs = f"valid {100 * own['valid']['mean']:.2f}, test {100 * own['test']['mean']:.2f} ± {100 * own['test']['std']:.2f}"
        print(f"{plan['smooth']['rule']}, the program's own perceptron: {theirs}")
    if args.json:
        Path(args.json).write_text(json.dumps({"option": option, "valid": valid, "test": test}, indent=1) + "\n")


if __name__ == "__main__":
    main()
