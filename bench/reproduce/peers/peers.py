"""Graph networks of other papers, trained beside `ndls` on the same rows, edges and splits.

    python peers.py --rows smoothed.npy --nodes nodes.npy --edges edges.npy --hops lsi.npy --model gcn --out FOLDER [--trials 6] [--runs 3] [--inductive]

Inputs are exports of a run: row i of ROWS and entry i of NODES and HOPS belong to the i-th smallest id,
and EDGES has a pair of ids for each undirected edge. Options of the model and of its training are drawn
at random, --trials times, and chosen by the accuracy on the validation nodes; each training ends with
the weights of its best epoch on these. Then --runs models with the chosen options, each with a seed of
its own, predict all nodes. FOLDER gets their soft labels, model-1.parquet and so on, which `ndls run
--soft-labels` takes, and chosen.json with seconds of a training and the peak memory of the process. Test
nodes are predicted, and never compared with their labels.

With --inductive a model is trained on the edges between training nodes, and validated on those between
training and validation nodes; all nodes and edges are there when it predicts.

GCN, GAT, GraphSAGE, JK-Net and APPNP are those of PyTorch Geometric. AP-GCN, PPRGo, DAGNN, FastGCN,
ClusterGCN and GraphSAINT are written from their papers, since PyTorch Geometric lacks them, or needs a
library for them that PyPI does not have. It needs NumPy, SciPy, PyArrow, PyTorch, PyTorch Geometric and, for
ClusterGCN, pymetis.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 200
HIDDEN = 64

# What is drawn for each model, at random; the first trial has the first value of each.
TRAINING = {
    "dropout": [0.5, 0.2, 0.4, 0.6, 0.8],
    "input_dropout": [0.5, 0.2, 0.6],
    "lr": [0.01, 0.005, 0.02],
    "weight_decay": [0.0005, 0.0001, 0.001, 0.005],
}
SPACE = {
    "gcn": {"layers": [2, 3]},
    "gat": {"heads": [8, 4]},
    "sage": {"layers": [2, 3]},
    "jknet": {"layers": [2, 3, 4], "jump": ["cat", "max"]},
    "appnp": {"alpha": [0.1, 0.05, 0.2], "steps": [10, 20]},
    "apgcn": {"penalty": [0.005, 0.001, 0.05], "steps": [10, 20]},
    "pprgo": {"alpha": [0.25, 0.1, 0.5], "top": [32, 64]},
    "dagnn": {"steps": [10, 5, 20]},
    "dagnn-ndls": {},
    "fastgcn": {"sample": [400, 200, 800]},
    "clustergcn": {"clusters": [8, 16], "together": [2, 4]},
    "graphsaint": {"roots": [200, 400], "length": [2, 4]},
}


class Graph:
    """An undirected graph of n nodes with the matrices that models take."""

    def __init__(self, adjacency):
        self.adjacency = adjacency.tocsr()
        self.n = adjacency.shape[0]
        both = self.adjacency.tocoo()
        self.edges = torch.from_numpy(np.stack([both.row, both.col]).astype(np.int64))
        self.normal = tensor(normal(self.adjacency))

    def between(self, nodes):
        """The graph of the edges between some nodes."""
        return Graph(self.adjacency[nodes][:, nodes])


def normal(adjacency):
    """D^(-1/2) (A + I) D^(-1/2), where D has the row sums of A + I."""
    loops = adjacency + sp.identity(adjacency.shape[0], dtype=np.float32, format="csr")
    scale = sp.diags(1 / np.sqrt(np.asarray(loops.sum(1)).ravel()))
    return (scale @ loops @ scale).tocsr().astype(np.float32)


class Sparse:
    """A sparse matrix of PyTorch, its transpose, and the place of each value of the transpose in the matrix. PyTorch alone would make the
    transpose anew for each gradient, which takes longer than the products."""

    def __init__(self, matrix):
        self.scipy = matrix.tocsr().astype(np.float32)
        self.scipy.sort_indices()
        places = sp.csr_matrix((np.arange(self.scipy.nnz), self.scipy.indices, self.scipy.indptr), self.scipy.shape).T.tocsr()
        self.order = torch.from_numpy(places.data)
        self.matrix, self.transposed = (
            torch.sparse_csr_tensor(
                torch.from_numpy(m.indptr.astype(np.int64)), torch.from_numpy(m.indices.astype(np.int64)), values, m.shape
            )
            for m, values in ((self.scipy, torch.from_numpy(self.scipy.data)), (places, torch.from_numpy(self.scipy.data[places.data])))
        )


class Product(torch.autograd.Function):
    """The product of a sparse matrix, which has no gradient, and a dense one."""

    @staticmethod
    def forward(ctx, matrix, transposed, dense):
        ctx.transposed = transposed
        return matrix @ dense

    @staticmethod
    def backward(ctx, gradient):
        return None, None, ctx.transposed @ gradient


def tensor(matrix):
    """A matrix of SciPy as a sparse one of PyTorch, which `times` multiplies."""
    return rows_of(Sparse(matrix))


def rows_of(sparse, values=None):
    """The tensor of a Sparse, or one that has other values in the same places. Its attributes are the Sparse and the transpose."""
    x, t = sparse.matrix, sparse.transposed
    if values is not None:
        x = torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)
        t = torch.sparse_csr_tensor(t.crow_indices(), t.col_indices(), values[sparse.order], t.shape)
    x.sparse, x.transposed = sparse, t
    return x


def times(matrix, dense):
    """matrix @ dense, where matrix may be a tensor that `tensor` made."""
    return matrix @ dense if matrix.layout == torch.strided else Product.apply(matrix, matrix.transposed, dense)


def features(rows):
    """Rows of features as a tensor, which is sparse if at most a tenth of the numbers differ from zero."""
    rows = rows if sp.issparse(rows) else sp.csr_matrix(rows)
    return tensor(rows) if 10 * rows.nnz <= rows.shape[0] * rows.shape[1] else torch.from_numpy(rows.toarray())


def take(x, some):
    """Some of the rows of features."""
    return x[some] if x.layout == torch.strided else tensor(x.sparse.scipy[some])


def linear(layer, x):
    """A layer without its bias."""
    return times(x, layer.weight.t())


def reads_sparse(layer):
    """Lets a linear layer take sparse rows, too."""
    layer.forward = lambda x: linear(layer, x) if layer.bias is None else linear(layer, x) + layer.bias
    return layer


class Perceptron(nn.Module):
    def __init__(self, width, classes, o):
        super().__init__()
        self.first, self.second, self.dropout = reads_sparse(nn.Linear(width, HIDDEN)), nn.Linear(HIDDEN, classes), o["dropout"]

    def forward(self, x):
        return self.second(F.dropout(F.relu(self.first(x)), self.dropout, self.training))


class Model(nn.Module):
    """A model gives logits of all nodes of a graph. Its loss may come from a sample of the graph."""

    def __init__(self, width, classes, o):
        super().__init__()
        self.o, self.random = o, np.random.default_rng(int(torch.randint(1 << 31, ())))

    def prepare(self, x, graph, hops):
        """Makes what the model takes of a graph besides its rows, once."""
        return graph

    def forward(self, x, prepared):
        raise NotImplementedError

    def drop(self, x):
        """Dropout of the rows of features. NumPy draws its bits faster than PyTorch does."""
        if not self.training:
            return x
        p = self.o["input_dropout"]
        values = x if x.layout == torch.strided else x.values()
        kept = self.random.integers(0, 1 << 16, values.shape, dtype=np.uint16) >= round(p * (1 << 16))
        values = (values * torch.from_numpy(kept)).div_(1 - p)
        return values if x.layout == torch.strided else rows_of(x.sparse, values)

    def loss(self, x, prepared, nodes, y):
        return F.cross_entropy(self(x, prepared)[nodes], y)


class Geometric(Model):
    """GCN (Kipf and Welling 2017), GAT (Velickovic et al. 2018), GraphSAGE with means of all neighbours (Hamilton et al.
    2017) and JK-Net (Xu et al. 2018), of PyTorch Geometric."""

    def __init__(self, kind, width, classes, o):
        super().__init__(width, classes, o)
        import torch_geometric.nn as pyg

        common = {"in_channels": width, "hidden_channels": HIDDEN, "out_channels": classes, "dropout": o["dropout"]}
        if kind == "gat":
            self.net = pyg.GAT(**common, num_layers=2, heads=o["heads"], act="elu")
        elif kind == "sage":
            self.net = pyg.GraphSAGE(**common, num_layers=o["layers"])
        elif kind == "jknet":
            self.net = pyg.GCN(**common, num_layers=o["layers"], jk=o["jump"])
        else:
            self.net = pyg.GCN(**common, num_layers=o["layers"])
        first = self.net.convs[0]
        if kind == "sage":
            # The mean of products is the product of the mean, and rows of products are shorter.
            def mean(x, edges):
                rows = linear(first.lin_l, x)
                return first.propagate(edges, x=(rows, rows), size=None) + first.lin_l.bias + linear(first.lin_r, x)

            first.forward = mean
        else:
            reads_sparse(first.lin)

    def forward(self, x, graph):
        return self.net(self.drop(x), graph.edges)


class Appnp(Model):
    """APPNP (Klicpera et al. 2019), of PyTorch Geometric."""

    def __init__(self, width, classes, o):
        super().__init__(width, classes, o)
        import torch_geometric.nn as pyg

        self.net, self.walk = Perceptron(width, classes, o), pyg.APPNP(K=o["steps"], alpha=o["alpha"])

    def forward(self, x, graph):
        return self.walk(self.net(self.drop(x)), graph.edges)


class Dagnn(Model):
    """DAGNN (Liu et al. 2020): hops of the outputs of a perceptron, weighed by a gate."""

    def __init__(self, width, classes, o):
        super().__init__(width, classes, o)
        self.net, self.gate = Perceptron(width, classes, o), nn.Linear(classes, 1)

    def forward(self, x, graph):
        hops = [self.net(self.drop(x))]
        for _ in range(self.o["steps"]):
            hops.append(times(graph.normal, hops[-1]))
        hops = torch.stack(hops, 1)
        return (torch.sigmoid(self.gate(hops)) * hops).sum(1)


class DagnnNdls(Model):
    """DAGNN whose gate is replaced by NDLS-L: each node averages the hops up to its K, of at most 40."""

    def __init__(self, width, classes, o):
        super().__init__(width, classes, o)
        self.net = Perceptron(width, classes, o)

    def prepare(self, x, graph, hops):
        return graph, torch.from_numpy(np.minimum(hops, 40).astype(np.int64))[:, None]

    def forward(self, x, prepared):
        graph, k = prepared
        hop = total = self.net(self.drop(x))
        for step in range(1, int(k.max()) + 1):
            hop = times(graph.normal, hop)
            total = total + hop * (k >= step)
        return total / (k + 1)


class ApGcn(Model):
    """AP-GCN (Spinelli et al. 2021): a halting unit decides for each node after how many hops it stops."""

    def __init__(self, width, classes, o):
        super().__init__(width, classes, o)
        self.net, self.halt = Perceptron(width, classes, o), nn.Linear(classes, 1)
        nn.init.constant_(self.halt.bias, -2.0)

    def propagate(self, x, graph):
        hop = self.net(self.drop(x))
        budget, out, steps, cost = torch.ones(len(hop), 1), torch.zeros_like(hop), torch.zeros(len(hop), 1), 0
        going = torch.ones(len(hop), 1, dtype=torch.bool)
        for step in range(1, self.o["steps"] + 1):
            before, hop = hop, times(graph.normal, hop)
            p = torch.sigmoid(self.halt(hop))
            last = going & ((budget - p < 0.01) | (step == self.o["steps"]))
            p = torch.where(last, budget, p) * going
            out = out + going * (p * hop + (1 - p) * before)
            steps = steps + going
            cost = cost + (last * budget).mean()
            budget, going = budget - p, going & ~last
            if not going.any():
                break
        return out / steps, steps.mean() + cost

    def forward(self, x, graph):
        return self.propagate(x, graph)[0]

    def loss(self, x, graph, nodes, y):
        out, cost = self.propagate(x, graph)
        return F.cross_entropy(out[nodes], y) + self.o["penalty"] * cost


class PprGo(Model):
    """PPRGo (Bojchevski et al. 2020): each node adds the outputs of the perceptron for the nodes with its largest
    personalised PageRank."""

    def __init__(self, width, classes, o):
        super().__init__(width, classes, o)
        self.net = Perceptron(width, classes, o)

    def prepare(self, x, graph, hops):
        degree = np.maximum(np.asarray(graph.adjacency.sum(1)).ravel(), 1)
        back, alpha, ranks = (sp.diags(1 / degree) @ graph.adjacency).T.tocsr(), self.o["alpha"], []
        for lo in range(0, graph.n, 1024):
            some = np.arange(lo, min(lo + 1024, graph.n))
            rest = sp.csr_matrix((np.ones(len(some)), (some, some - lo)), (graph.n, len(some)))
            rank = sp.csr_matrix(rest.shape)
            while True:  # nodes with more than their threshold keep a share, and give the rest to their neighbours (Andersen et al. 2006)
                push = rest.tocoo()
                far = push.data > 1e-4 * degree[push.row]
                if not far.any():
                    break
                push = sp.csr_matrix((push.data[far], (push.row[far], push.col[far])), rest.shape)
                rank, rest = rank + alpha * push, rest - push + (1 - alpha) * (back @ push)
                rest.eliminate_zeros()
            rank = rank.T.tocoo()
            order = np.lexsort((-rank.data, rank.row))
            row, start = rank.row[order], np.searchsorted(rank.row[order], np.arange(len(some)))
            order = order[np.arange(len(order)) - start[row] < self.o["top"]]
            ranks.append(sp.csr_matrix((rank.data[order], (rank.row[order], rank.col[order])), rank.shape))
        return tensor(sp.vstack(ranks))

    def forward(self, x, ranks):
        return times(ranks, self.net(self.drop(x)))


class FastGcn(Model):
    """FastGCN (Chen et al. 2018): two layers of GCN, of which the second one adds a sample of the nodes. The first one is
    computed before."""

    def __init__(self, width, classes, o):
        super().__init__(width, classes, o)
        self.net = Perceptron(width, classes, o)

    def prepare(self, x, graph, hops):
        matrix = normal(graph.adjacency)
        share = np.asarray(matrix.multiply(matrix).sum(0)).ravel()
        return (
            graph,
            features(matrix @ x.sparse.scipy) if x.layout != torch.strided else graph.normal @ x,
            matrix,
            share / share.sum(),
            np.random.default_rng(1),
        )

    def forward(self, x, prepared):
        graph, first, *_ = prepared
        return times(graph.normal, self.net(self.drop(first)))

    def loss(self, x, prepared, nodes, y):
        _, first, matrix, share, random = prepared
        some = random.choice(len(share), self.o["sample"], p=share)
        part = matrix[nodes.numpy()][:, some] @ sp.diags(1 / (len(some) * share[some]))
        return F.cross_entropy(times(tensor(part), self.net(self.drop(take(first, some)))), y)


class Convolution(Model):
    """Two layers of GCN on matrices that the caller makes."""

    def __init__(self, width, classes, o):
        super().__init__(width, classes, o)
        self.net = Perceptron(width, classes, o)

    def layers(self, x, matrix):
        hidden = F.dropout(F.relu(times(matrix, self.net.first(self.drop(x)))), self.o["dropout"], self.training)
        return times(matrix, self.net.second(hidden))


class ClusterGcn(Convolution):
    """ClusterGCN (Chiang et al. 2019): each step takes the edges between the nodes of a few clusters."""

    def prepare(self, x, graph, hops):
        import pymetis

        cluster = np.zeros(graph.n, dtype=np.int64)
        if self.o["clusters"] > 1:
            a = graph.adjacency
            _, of = pymetis.part_graph(self.o["clusters"], xadj=a.indptr.tolist(), adjncy=a.indices.tolist())
            cluster = np.asarray(of)
        return graph, cluster, np.random.default_rng(1)

    def forward(self, x, prepared):
        return self.layers(x, prepared[0].normal)

    def loss(self, x, prepared, nodes, y):
        graph, cluster, random = prepared
        wanted = nodes.numpy()
        while True:
            chosen = random.choice(self.o["clusters"], min(self.o["together"], self.o["clusters"]), replace=False)
            inside = np.isin(cluster, chosen)
            if inside[wanted].any():
                break
        some = np.flatnonzero(inside)
        place = np.cumsum(inside) - 1
        mine = inside[wanted]
        out = self.layers(take(x, some), tensor(normal(graph.adjacency[some][:, some])))
        return F.cross_entropy(out[place[wanted[mine]]], y[torch.from_numpy(mine)])


class GraphSaint(Convolution):
    """GraphSAINT (Zeng et al. 2020) with random walks: loss and sums are divided by how often nodes and edges are drawn, as
    estimated from 50 samples."""

    def prepare(self, x, graph, hops):
        random, samples = np.random.default_rng(1), 50
        nodes, edges = np.zeros(graph.n), (normal(graph.adjacency) * 0).tocsr()
        matrix = normal(graph.adjacency)
        for _ in range(samples):
            some = self.walk(graph, random)
            nodes[some] += 1
            inside = sp.diags(np.isin(np.arange(graph.n), some).astype(np.float32))
            edges = edges + inside @ (matrix != 0).astype(np.float32) @ inside
        nodes = np.maximum(nodes, 1)
        often = edges.tocsr()
        often.data = np.maximum(often.data, 1)
        weights = matrix.multiply(often.power(-1)).multiply(nodes[:, None]).tocsr()
        return graph, weights, nodes / samples, random

    def walk(self, graph, random):
        a = graph.adjacency
        at = random.integers(graph.n, size=min(self.o["roots"], graph.n))
        seen = [at]
        for _ in range(self.o["length"]):
            degree = np.diff(a.indptr)[at]
            step = a.indptr[at] + (random.random(len(at)) * np.maximum(degree, 1)).astype(np.int64)
            at = np.where(degree > 0, a.indices[np.minimum(step, len(a.indices) - 1)], at)
            seen.append(at)
        return np.unique(np.concatenate(seen))

    def forward(self, x, prepared):
        return self.layers(x, prepared[0].normal)

    def loss(self, x, prepared, nodes, y):
        graph, weights, often, random = prepared
        wanted = nodes.numpy()
        while True:
            some = self.walk(graph, random)
            place = np.searchsorted(some, wanted)
            mine = (place < len(some)) & (some[np.minimum(place, len(some) - 1)] == wanted)
            if mine.any():
                break
        out = self.layers(take(x, some), tensor(weights[some][:, some]))
        each = F.cross_entropy(out[place[mine]], y[torch.from_numpy(mine)], reduction="none")
        return (each / torch.from_numpy(often[wanted[mine]]).float()).sum() / len(wanted)


MODELS = {
    "appnp": Appnp,
    "apgcn": ApGcn,
    "pprgo": PprGo,
    "dagnn": Dagnn,
    "dagnn-ndls": DagnnNdls,
    "fastgcn": FastGcn,
    "clustergcn": ClusterGcn,
    "graphsaint": GraphSaint,
}


def make(kind, width, classes, o):
    """Returns a model that is not trained."""
    return MODELS[kind](width, classes, o) if kind in MODELS else Geometric(kind, width, classes, o)


def draw(space, trials, seed):
    """Returns that many different options, the first of which has the first value of each."""
    random = np.random.default_rng(seed)
    options = [{name: values[0] for name, values in space.items()}]
    for _ in range(100 * trials):
        if len(options) >= trials:
            break
        option = {name: values[random.integers(len(values))] for name, values in space.items()}
        if option not in options:
            options.append(option)
    return options


class Data:
    """Rows, labels and splits, and the graphs for training, validation and prediction."""

    def __init__(self, args):
        nodes, edges = np.load(args.nodes), np.load(args.edges)
        ids = nodes["id"].astype(np.int64)
        self.ids, self.hops = ids, np.load(args.hops)["k"].astype(np.int64)
        self.x = features(np.load(args.rows).astype(np.float32))
        if not len(ids) == self.x.shape[0] == len(self.hops):
            raise SystemExit(f"{args.rows} has {self.x.shape[0]} rows for {len(ids)} nodes: smooth with --targets all")
        at = np.searchsorted(ids, edges.T)
        ones = np.ones(at.shape[1], dtype=np.float32)
        a = sp.csr_matrix((ones, (at[0], at[1])), (len(ids), len(ids)))
        whole = Graph(((a + a.T) > 0).astype(np.float32))
        label, split = nodes["label"].astype(np.int64), nodes["split"]
        self.classes = int(label.max()) + 1
        self.y = torch.from_numpy(label)
        train, valid = (np.flatnonzero((split == name) & (label >= 0)) for name in (b"train", b"valid"))
        everything = np.arange(len(ids))
        self.parts, self.whole = {}, not args.inductive
        for name, graph_nodes, wanted in (
            ("train", train if args.inductive else everything, train),
            ("valid", np.sort(np.concatenate([train, valid])) if args.inductive else everything, valid),
            ("all", everything, everything),
        ):
            graph = whole if len(graph_nodes) == len(ids) else whole.between(graph_nodes)
            self.parts[name] = graph_nodes, graph, torch.from_numpy(np.searchsorted(graph_nodes, wanted)), self.y[wanted]

    def prepared(self, model, name):
        nodes, graph, wanted, y = self.parts[name]
        x = self.x if len(nodes) == len(self.ids) else take(self.x, nodes)
        return x, model.prepare(x, graph, self.hops[nodes]), wanted, y

    def like(self, prepared, name):
        """What `prepared` returns of a part whose graph is the one of another part."""
        return *prepared[:2], *self.parts[name][2:]


def fit(kind, data, option, seed):
    """Trains a model and returns it with the weights of its best epoch, the first of equals, its validation accuracy and the seconds."""
    start = time.perf_counter()
    torch.manual_seed(seed)
    model = make(kind, data.x.shape[1], data.classes, option)
    train = data.prepared(model, "train")
    valid = data.like(train, "valid") if data.whole else data.prepared(model, "valid")
    adam = torch.optim.Adam(model.parameters(), lr=option["lr"], weight_decay=option["weight_decay"])
    best, weights = -1.0, None
    for _ in range(EPOCHS):
        model.train()
        adam.zero_grad()
        model.loss(*train).backward()
        adam.step()
        model.eval()
        with torch.no_grad():
            x, prepared, wanted, y = valid
            right = float((model(x, prepared)[wanted].argmax(1) == y).float().mean()) if len(y) else 0.0
        if right > best:
            best, weights = right, {name: w.clone() for name, w in model.state_dict().items()}
    model.load_state_dict(weights)
    return model, best, time.perf_counter() - start


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--rows", required=True, help="ndls export --what smoothed --format npy, of a run with --rule sgc --hops 0")
    p.add_argument("--nodes", required=True, help="ndls export --what nodes --format npy")
    p.add_argument("--edges", required=True, help="ndls export --what edges --format npy")
    p.add_argument("--hops", required=True, help="ndls export --what lsi --format npy")
    p.add_argument("--model", required=True, choices=sorted(SPACE))
    p.add_argument("--out", required=True, help="folder for soft labels")
    p.add_argument("--trials", type=int, default=6, help="options that are tried")
    p.add_argument("--runs", type=int, default=3, help="models with the chosen options")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=None)
    p.add_argument("--inductive", action="store_true", help="validation and test nodes come after training")
    args = p.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    data = Data(args)

    tried, chosen, first = [], None, None
    for option in draw(TRAINING | SPACE[args.model], max(args.trials, 1), args.seed):
        found = fit(args.model, data, option, args.seed)
        if not tried or found[1] > max(t["valid"] for t in tried):  # the first of equals
            chosen, first = option, found
        tried.append({"valid": found[1], "option": option})
        print(f"valid {100 * found[1]:.2f}  {option}", flush=True)

    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    seconds = 0.0
    for run in range(args.runs):
        model, _, took = first if run == 0 else fit(args.model, data, chosen, args.seed + run)
        seconds += took
        with torch.no_grad():
            x, prepared, _, _ = data.prepared(model.eval(), "all")
            soft = torch.softmax(model(x, prepared), 1).numpy().astype(np.float32)
        lists = pa.FixedSizeListArray.from_arrays(soft.reshape(-1), soft.shape[1])
        pq.write_table(pa.table({"id": data.ids, "probability": lists}), out / f"model-{run + 1}.parquet")
    memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {"model": args.model, "option": chosen, "trials": tried, "seconds": seconds, "memory": memory}
    (out / "chosen.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"chosen: {chosen}")


if __name__ == "__main__":
    main()
