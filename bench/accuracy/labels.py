"""What label smoothing can reach, beside what the program's options choose.

    python labels.py rates DATA cora|citeseer
    python labels.py shares DATA cora|citeseer

DATA has a folder of Planetoid files for each set. `rates` trains a perceptron at six label rates, on
the features and on smoothed rows (the mean of hops 0 to 10), and averages hops of its soft labels as NDLS-L
does (equation 9 of the paper), for 11 distances and 41 depths. It prints the test accuracy of the setting that
is best on the validation nodes, and of the one that is best on the test nodes themselves: no choice can do better. `shares`
measures Correct & Smooth with a restart share of each node: the soft labels are smoothed with the
shares 0.1, 0.2 … 0.9 of the neighbours, 50 steps each, and a node takes the first whose row is closer to the
stationary one than a bound, which the validation nodes choose; 0.9 if none is. It needs NumPy, SciPy
and PyTorch.
"""

import pickle
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F

RATES = [0.02, 0.05, 0.1, 0.2, 0.4, 0.6]
EPSILONS = [0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0]
DEPTHS = range(41)
KMAX = 200
SPLITS = 10
BOUNDS = [0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0]


def load(folder: Path, name: str):
    """Features (rows divided by their sums), the walk matrix of NDLS with r = 1/2, labels and the
    published training and validation nodes."""

    def part(kind):
        with open(folder / name / f"ind.{name}.{kind}", "rb") as f:
            return pickle.load(f, encoding="latin1")

    tests = np.loadtxt(folder / name / f"ind.{name}.test.index", dtype=int)
    known, graph = part("allx").shape[0], part("graph")
    n = max(len(graph), tests.max() + 1)
    x = sp.lil_matrix((n, part("allx").shape[1]), dtype=np.float32)
    y = np.full(n, -1)
    x[:known], x[tests] = part("allx"), part("tx")
    for rows, classes in ((slice(0, known), part("ally")), (tests, part("ty"))):
        y[rows] = np.where(classes.sum(1) > 0, classes.argmax(1), -1)
    x = x.tocsr()
    sums = np.asarray(abs(x).sum(1)).ravel()
    x = sp.diags(1 / np.where(sums > 0, sums, 1)) @ x
    a = sp.lil_matrix((n, n), dtype=np.float32)
    for u, neighbours in graph.items():
        for v in neighbours:
            if u != v:
                a[u, v] = a[v, u] = 1
    a = a.tocsr() + sp.eye(n, dtype=np.float32, format="csr")
    degrees = np.asarray(a.sum(1)).ravel()
    p = sp.diags(degrees**-0.5) @ a @ sp.diags(degrees**-0.5)
    components = sp.csgraph.connected_components(a, directed=False)[1]
    train, valid = np.arange(part("y").shape[0]), np.arange(part("y").shape[0], part("y").shape[0] + 500)
    return np.asarray(x.todense(), np.float32), p.tocsr(), degrees, components, y, (train, valid, tests)


def stationary(z, degrees, components):
    """The rows after infinitely many hops: √d̃_i Σ_j √d̃_j z_j / Σ_j d̃_j over the component."""
    root = np.sqrt(degrees)[:, None]
    count = components.max() + 1
    member = sp.csr_matrix((np.ones(len(z)), (components, np.arange(len(z)))), shape=(count, len(z)))
    mean = (member @ (root * z)) / (member @ degrees[:, None])
    return root * mean[components]


def hops_of_nodes(p, degrees, components):
    """K of each node for each distance, from the exact influence rows."""
    n = len(degrees)
    k = np.full((len(EPSILONS), n), KMAX)
    limit = stationary(np.eye(n, dtype=np.float32), degrees, components).astype(np.float32)
    rows = np.eye(n, dtype=np.float32)
    open_ = np.ones((len(EPSILONS), n), bool)
    for hop in range(KMAX):
        distance = np.sqrt(((rows - limit) ** 2).sum(1))
        for i, epsilon in enumerate(EPSILONS):
            now = open_[i] & (distance < epsilon)
            k[i, now] = hop
            open_[i] &= ~now
        if not open_.any():
            break
        rows = p @ rows
    return k


def perceptron(x, y, train, valid, seed, classes):
    """Soft labels of all nodes, of the weights with the best validation accuracy."""
    torch.manual_seed(seed)
    x, t = torch.from_numpy(x), torch.from_numpy(y)
    net = torch.nn.Sequential(
        torch.nn.Dropout(0.5), torch.nn.Linear(x.shape[1], 64), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(64, classes)
    )
    step = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    best, soft = (-1.0, 0.0), None
    for _ in range(300):
        net.train()
        step.zero_grad()
        F.cross_entropy(net(x[train]), t[train]).backward()
        step.step()
        net.eval()
        with torch.no_grad():
            out = net(x)
            found = ((out[valid].argmax(1) == t[valid]).float().mean().item(), -F.cross_entropy(out[valid], t[valid]).item())
            if found > best:
                best, soft = found, F.softmax(out, 1).numpy()
    return soft


def accuracy(z, y, nodes):
    return 100 * (z[nodes].argmax(1) == y[nodes]).mean()


def smoothed(z, p, k):
    """The average of hops 0 to k of each node, for each row of k."""
    totals = np.empty((k.max() + 1, *z.shape), np.float32)
    hop, totals[0] = z, z
    for h in range(1, len(totals)):
        hop = p @ hop
        totals[h] = totals[h - 1] + hop
    nodes = np.arange(len(z))
    return [totals[c, nodes] / (c + 1)[:, None] for c in k]


def rates(folder, name):
    x, p, degrees, components, y, _ = load(folder, name)
    mean, hop = x.copy(), x
    for _ in range(10):
        hop = p @ hop
        mean += hop
    depths = np.array([np.full(len(y), d) for d in DEPTHS])
    k = np.concatenate([hops_of_nodes(p, degrees, components), depths])
    labelled, classes = np.flatnonzero(y >= 0), y.max() + 1
    head = "MLP, smoothed by the best on validation, by the best on test"
    print(f"| {name}, labels | {head} | the same on smoothed rows: MLP, validation, test |")
    print("|---|---|---|")
    for rate in RATES:
        line = []
        for rows in (x, mean / 11):
            found = []
            for split in range(SPLITS):
                order = np.random.RandomState(split).permutation(labelled)
                ends = int(rate * len(order)), int((rate + 0.1) * len(order))
                train, valid, test = np.split(order, ends)
                z = perceptron(rows, y, train, valid, split, classes)
                all_ = smoothed(z, p, k)
                of_valid = [accuracy(s, y, valid) for s in all_]
                of_test = [accuracy(s, y, test) for s in all_]
                found.append((accuracy(z, y, test), of_test[int(np.argmax(of_valid))], max(of_test)))
            means, deviations = np.mean(found, 0), np.std(found, 0, ddof=1)
            line.append(", ".join(f"{m:.1f} ± {d:.1f}" for m, d in zip(means, deviations)))
        print(f"| {rate:.0%} | {line[0]} | {line[1]} |", flush=True)


def propagate(z, p, share, known=None, target=None, steps=50):
    """Z ← share · P Z + (1 − share) · Z₀, so many times; rows known keep the values of target."""
    row = z
    for _ in range(steps):
        row = share * (p @ row) + (1 - share) * z
        if known is not None:
            row[known] = target[known]
    return row


def shares(folder, name):
    x, p, degrees, components, y, (train, valid, test) = load(folder, name)
    test = test[y[test] >= 0]
    classes, found = y.max() + 1, []
    one_hot = np.eye(classes, dtype=np.float32)[np.maximum(y, 0)]
    for seed in range(SPLITS):
        z = perceptron(x, y, train, valid, seed, classes)
        best = {}
        for correct in (0.5, 0.8, 0.9):
            error = np.zeros_like(z)
            error[train] = one_hot[train] - z[train]
            spread = propagate(error, p, correct)
            size = abs(error[train]).sum(1).mean()
            scale = size / np.maximum(abs(spread).sum(1, keepdims=True), 1e-12)
            scale[scale > 1000] = 1
            fixed = z + scale * spread
            fixed[train] = one_hot[train]
            limit = stationary(fixed, degrees, components)
            rows = [propagate(fixed, p, share / 10) for share in range(1, 10)]
            distances = [np.sqrt(((r - limit) ** 2).sum(1)) for r in rows]
            for i, r in enumerate(rows):
                option = (accuracy(r, y, valid), accuracy(r, y, test))
                best["one share"] = max(best.get("one share", option), option, key=lambda o: o[0])
            for bound in BOUNDS:
                chosen, left = rows[-1].copy(), np.ones(len(y), bool)
                for r, d in zip(rows, distances):
                    now = left & (d < bound)
                    chosen[now], left = r[now], left & ~now
                option = (accuracy(chosen, y, valid), accuracy(chosen, y, test))
                best["share of each node"] = max(best.get("share of each node", option), option, key=lambda o: o[0])
        found.append([accuracy(z, y, test), best["one share"][1], best["share of each node"][1], best["one share"][0], best["share of each node"][0]])
    means, deviations = np.mean(found, 0), np.std(found, 0, ddof=1)
    print("| public split, 10 models | MLP | C&S, test | C&S, share of each node, test | C&S, validation | share of each node, validation |")
    print("|---|---|---|---|---|---|")
    print(f"| {name} | " + " | ".join(f"{m:.2f} ± {d:.2f}" for m, d in zip(means, deviations)) + " |")


if __name__ == "__main__":
    torch.set_num_threads(2)
    {"rates": rates, "shares": shares}[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
