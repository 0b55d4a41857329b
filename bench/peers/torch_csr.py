"""torch: CSR @ dense, which is MKL's product; 32-bit indices, as MKL has them."""

import os
import warnings

import torch

from propagation import Array, serve

warnings.filterwarnings("ignore", "Sparse")
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def symmetric(edges: Array, nodes: int) -> torch.Tensor:
    """A + I as COO, every value 1."""
    e, loops = torch.from_numpy(edges), torch.arange(nodes)
    both = torch.cat([e, e.flip(0), torch.stack([loops, loops])], dim=1)
    del edges, e, loops
    matrix = torch.sparse_coo_tensor(both, torch.ones(both.shape[1]), (nodes, nodes)).coalesce()
    matrix.values().fill_(1)
    return matrix


def build(edges: Array, nodes: int) -> torch.Tensor:
    matrix = symmetric(edges, nodes).to_sparse_csr()
    offsets, sources = matrix.crow_indices(), matrix.col_indices()
    degree = offsets.diff()
    values = (1 / degree).repeat_interleave(degree)
    return torch.sparse_csr_tensor(offsets.int(), sources.int(), values, (nodes, nodes))


def wrap(offsets: Array, sources: Array, nodes: int) -> torch.Tensor:
    return torch.sparse_csr_tensor(
        torch.from_numpy(offsets).int(), torch.from_numpy(sources), torch.ones(len(sources)), (len(offsets) - 1, nodes)
    )


def multiply(matrix: torch.Tensor, x: torch.Tensor, hops: int) -> torch.Tensor:
    for _ in range(hops):
        x = matrix @ x
    return x


if __name__ == "__main__":
    serve(f"torch {torch.__version__}", build, multiply, wrap, torch.from_numpy)
