"""Writes the files beside it, with torch and torch_geometric: path4 of layouts_test.go.

The files were written by torch 2.9.1 and torch_geometric 2.8.1.
"""
import os
import pathlib

import torch
from torch_geometric.data import Data, HeteroData, InMemoryDataset
from torch_geometric.distributed import Partitioner
from torch_geometric.loader import ClusterData

os.chdir(pathlib.Path(__file__).parent)
pairs = torch.tensor([[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2]])
x = torch.tensor([[1, 0.5], [0, 2], [-1, 0], [3, 4]])
y = torch.tensor([0, 1, 1, 0])
train, val, test = (torch.tensor([n in ids for n in range(4)]) for ids in ([0], [1], [2, 3]))


def data(**more):
    parts = dict(x=x, edge_index=pairs.t().contiguous(), y=y, train_mask=train, val_mask=val, test_mask=test)
    return Data(**{**parts, **more})


torch.save(data(), "data.pt")
torch.save(data().to_dict(), "dict.pt")
InMemoryDataset.save([data()], "dataset.pt")  # (dict, slices, class)
torch.save((data(), None), "tuple.pt")
torch.save(InMemoryDataset.collate([data()]), "collated.pt")
# Transposed edges, half width, a column of labels, two splits, weights of edges.
torch.save(data(edge_index=pairs.t(), x=x.to(torch.bfloat16), y=y.int().view(4, 1), edge_weight=torch.ones(6), num_nodes=4,
                train_mask=torch.stack([test, train], 1), val_mask=torch.stack([val, val], 1), test_mask=torch.stack([train, test], 1)), "splits.pt")
torch.save({"edge_index": pairs.int(), "x": torch.cat([x, x])[4:].half()}, "pairs.pt")  # a part of a storage
weights = torch.tensor([2.5, 2.5, 1e-3, 1e-3, 7, 7])
torch.save(data(edge_weight=weights.double(), edge_attr=weights.view(6, 1), half=torch.tensor([0.5, 0.5, 1, 1, 65504, 65504]).half(), wide=torch.ones(6, 2),
                short=torch.ones(5), negative=torch.tensor([1, 1, 1, 1, -1, -1]), nan=torch.tensor([1, 1, 1, 1, 1, torch.nan]), bools=torch.ones(6).bool(), num_nodes=4), "weights.pt")
# Partitions for distributed training, with labels and splits beside them as PyG's example writes them: nodes 0 and 3, and 1 and 2.
ClusterData._metis = lambda self, edge_index, num_nodes: torch.tensor([0, 1, 1, 0])
Partitioner(Data(x=x, edge_index=pairs.t().contiguous(), edge_attr=weights.view(6, 1)), 2, "parts/path4-partitions").generate_partition()
lists = {"label/label": y, **{f"{name}-partitions/partition{i}": ids for name, several in (("train", ([0], [])), ("val", ([], [1])), ("test", ([2], [3])))
                              for i, ids in enumerate(torch.tensor(ids, dtype=torch.int64) for ids in several)}}
for name, tensor in lists.items():
    path = pathlib.Path(f"parts/path4-{name}.pt")
    path.parent.mkdir(exist_ok=True)
    torch.save(tensor, path)
# Refused.
InMemoryDataset.save([data(), data()], "two.pt")
hetero = HeteroData()
hetero["paper"].x = x
torch.save(hetero, "hetero.pt")
torch.save(x, "tensor.pt")
torch.save(data(x=torch.cat([x, x], 1)[:, :2]), "view.pt")
torch.save(data(x=x.t().contiguous().t()), "columns.pt")
torch.save(data(), "old.pt", _use_new_zipfile_serialization=False)
torch.save({"edge_index": torch.device("cpu")}, "class.pt")
torch.save({"train": torch.tensor([0]), "valid": torch.tensor([1]).numpy(), "test-dev": torch.tensor([2]).numpy(), "test-challenge": torch.tensor([3]).numpy()}, "split_dict.pt")
