"""A transform for PyTorch Geometric. Importing this module imports torch and torch_geometric.

``data.x`` of the result is smoothed, and ``data.k`` has the hops of each node:

    from ndls.pyg import NDLS

    dataset = Planetoid("data", "Cora", transform=NDLS(epsilon=0.05))
    data = NDLS()(data)

It reads ``data.x`` and ``data.edge_index``, and changes nothing else.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from ndls._command import Progress
from ndls._graph import from_arrays
from ndls._run import run as run_job

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ndls._options import RunOptions

__all__ = ["NDLS"]


class NDLS(BaseTransform):  # type: ignore[misc]
    """Replaces ``data.x`` by the smoothed rows, and adds ``data.k``, the number of hops of each node.

    It reads ``data.edge_index`` and ``data.x`` alone, so that nothing of labels or masks is used. No model is trained.

    Args:
        run: The folder for files. It stays. Without it there is a temporary one, which is removed.
        weight: The name of a tensor with a weight for each edge, such as ``"edge_weight"``.
        directed: Whether edges lead from their first end to their second one only. There is no ``data.k`` then, and
            ``rule`` has to be another one than ``"ndls"``.
        progress: As for ``ndls.run``.
        options: The flags of ``ndls run``, with underscores.
    """

    def __init__(
        self,
        *,
        run: str | os.PathLike[str] | None = None,
        weight: str | None = None,
        directed: bool = False,
        progress: Progress = False,
        **options: Unpack[RunOptions],
    ) -> None:
        self.run, self.weight, self.directed, self.progress, self.options = run, weight, directed, progress, options

    def forward(self, data: Data) -> Data:
        """Returns a graph with the smoothed rows in place of ``data.x``, float32 of shape (nodes, features).

        Raises:
            ValueError: There is no ``x`` or no ``edge_index``, or tensors do not fit together.
            ndls.Error: The program has refused the options or the data.
        """
        for name in ("edge_index", "x", *([self.weight] if self.weight else [])):
            if getattr(data, name, None) is None:
                raise ValueError(f"the graph has no {name}")
        weights: Any = None if self.weight is None else getattr(data, self.weight)
        graph = from_arrays(*data.edge_index, features=data.x, weights=weights, nodes=data.num_nodes, directed=self.directed)
        with tempfile.TemporaryDirectory(prefix="ndls-pyg-") as folder:
            run = run_job(graph, self.run or os.path.join(folder, "run"), progress=self.progress, **self.options)
            nodes = run.index(np.arange(data.num_nodes))
            data.x = torch.from_numpy(run.features[run.features.rows_of(nodes)])
            if not self.directed:
                data.k = torch.from_numpy(run.k[nodes].astype(np.int64))
        return data

    def __repr__(self) -> str:
        return f"NDLS({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"
