"""PyTorch Geometric: SGConv over a CSR adjacency, without its linear layer.

SGConv multiplies with D̃^(−1/2) Ã D̃^(−1/2); scaling rows by D̃^(1/2) before and D̃^(−1/2) after makes D̃⁻¹Ã of it.
"""

import os
import warnings

import torch
import torch_geometric
from torch_geometric.nn import SGConv
from torch_geometric.utils import remove_self_loops, to_torch_csr_tensor, to_undirected

from propagation import Array, serve

warnings.filterwarnings("ignore", "Sparse")
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def build(edges: Array, nodes: int) -> torch.Tensor:
    undirected = to_undirected(remove_self_loops(torch.from_numpy(edges))[0], num_nodes=nodes)
    return to_torch_csr_tensor(undirected, size=(nodes, nodes))


@torch.no_grad()
def multiply(adjacency: torch.Tensor, x: torch.Tensor, hops: int) -> torch.Tensor:
    root = (adjacency.crow_indices().diff() + 1).sqrt().unsqueeze(1)
    convolution = SGConv(x.shape[1], x.shape[1], K=hops)
    convolution.lin = torch.nn.Identity()
    return convolution(x.mul_(root), adjacency).div_(root)


if __name__ == "__main__":
    serve(f"torch_geometric {torch_geometric.__version__}, torch {torch.__version__}", build, multiply, enter=torch.from_numpy)
