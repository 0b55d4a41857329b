"""Node dependent local smoothing of graphs that do not fit in memory.

The work is done by the program ``ndls``, which wheels of this package hold. The package calls
it, opens what it writes without copies, and writes the files that it reads:

    import ndls

    graph = ndls.from_arrays(src, dst, features=x, labels=y)
    run = ndls.run(graph, run="runs/mine", split="random:200,100", memory="4GiB")
    run.features[0:10]                      # smoothed rows, mapped from disk
    for batch in ndls.NodeRows(run, split="train").batches(4096, shuffle=1):
        ...                                 # batch.x, batch.y, batch.nodes

Node ``i`` is row ``i`` of ``run.ids``, ``run.labels``, ``run.k`` and all other arrays of a run.
Nodes are in the order of the run directory, by descending degree; ``run.ids`` has the ids of the
input, and ``run.index`` finds nodes by them.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from ndls._command import Error, binary, command
from ndls._graph import (
    SPLITS,
    Graph,
    from_arrays,
    from_arrow,
    from_dgl,
    from_networkx,
    from_pandas,
    from_polars,
    from_pyg,
)
from ndls._loader import Batch, NodeRows
from ndls._rows import Rows
from ndls._run import Run, open, run
from ndls._values import diff, explain, inspect, plan
from ndls._values import list_runs as list

if TYPE_CHECKING:
    from ndls._smoother import NodeSmoother

try:
    __version__ = version("ndls-graph")
except PackageNotFoundError:  # a copy of the sources that is not installed
    __version__ = "unknown"

__all__ = [
    "SPLITS",
    "Batch",
    "Error",
    "Graph",
    "NodeRows",
    "NodeSmoother",
    "Rows",
    "Run",
    "binary",
    "command",
    "diff",
    "explain",
    "from_arrays",
    "from_arrow",
    "from_dgl",
    "from_networkx",
    "from_pandas",
    "from_polars",
    "from_pyg",
    "inspect",
    "list",
    "open",
    "plan",
    "run",
]


def __getattr__(name: str) -> object:
    """Imports scikit-learn with the first use of NodeSmoother."""
    if name != "NodeSmoother":
        raise AttributeError(f"module 'ndls' has no attribute {name!r}")
    try:
        from ndls._smoother import NodeSmoother
    except ModuleNotFoundError as error:
        raise ImportError("ndls.NodeSmoother needs scikit-learn: pip install scikit-learn") from error
    return NodeSmoother
