"""scipy.sparse: csr @ dense, one thread; what OGB's SGC example for papers100M multiplies with."""

import numpy as np
import scipy
from scipy import sparse

from propagation import Array, serve


def build(edges: Array, nodes: int) -> sparse.csr_array:
    u, v = edges.astype(np.int32)
    del edges
    matrix = sparse.coo_array((np.ones(len(u), np.float32), (u, v)), shape=(nodes, nodes)).tocsr()
    del u, v
    matrix = matrix + matrix.T.tocsr()
    matrix = matrix + sparse.eye_array(nodes, dtype=np.float32, format="csr")
    degree = np.diff(matrix.indptr)
    matrix.data[:] = np.repeat((1 / degree).astype(np.float32), degree)
    return matrix


def wrap(offsets: Array, sources: Array, nodes: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(sources), np.float32), sources, offsets.astype(np.int32)), shape=(len(offsets) - 1, nodes))


def multiply(matrix: sparse.csr_array, x: Array, hops: int) -> Array:
    for _ in range(hops):
        x = matrix @ x
    return x


if __name__ == "__main__":
    serve(f"scipy {scipy.__version__}", build, multiply, wrap)
