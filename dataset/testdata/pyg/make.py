"""Writes the files beside it, with torch and torch_geometric: path4 of layouts_test.go.

The files were written by torch 2.9.1 and torch_geometric 2.8.1.
"""
import os
import pathlib

import torch
from torch_geometric.data import Data, HeteroData, InMemoryDataset

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
