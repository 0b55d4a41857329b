"""torch.sparse.mm of a COO matrix, torch's first sparse layout."""

import torch

from propagation import Array, serve
from torch_csr import symmetric


def build(edges: Array, nodes: int) -> torch.Tensor:
    matrix = symmetric(edges, nodes)
    rows = matrix.indices()[0]
    matrix.values().copy_((1 / rows.bincount(minlength=nodes))[rows])
    return matrix


def wrap(offsets: Array, sources: Array, nodes: int) -> torch.Tensor:
    degree = torch.from_numpy(offsets).diff()
    rows = torch.arange(len(degree)).repeat_interleave(degree)
    return torch.sparse_coo_tensor(
        torch.stack([rows, torch.from_numpy(sources)]), torch.ones(len(sources)), (len(degree), nodes), is_coalesced=True
    )


def multiply(matrix: torch.Tensor, x: torch.Tensor, hops: int) -> torch.Tensor:
    for _ in range(hops):
        x = torch.sparse.mm(matrix, x)
    return x


if __name__ == "__main__":
    serve(f"torch {torch.__version__}", build, multiply, wrap, torch.from_numpy)
