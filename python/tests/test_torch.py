from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Arrays, imported

import ndls

torch: Any = pytest.importorskip("torch", reason="torch is not installed: pip install torch --index-url https://download.pytorch.org/whl/cpu")


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_share_the_rows(run: ndls.Run, workers: int) -> None:
    from ndls.torch import Batches

    batches = Batches(ndls.NodeRows(run), 64, shuffle=1, memory=16 * 1024)
    loader = torch.utils.data.DataLoader(batches, batch_size=None, num_workers=workers, persistent_workers=workers > 0)
    orders = []
    for epoch in range(2):
        batches.set_epoch(epoch)
        got = list(loader)
        nodes = torch.cat([b.nodes for b in got])
        assert sorted(nodes.tolist()) == list(range(900))
        x = torch.cat([b.x for b in got])
        np.testing.assert_array_equal(x.numpy(), run.features[nodes.numpy()])
        assert torch.cat([b.y for b in got]).tolist() == run.labels[nodes.numpy()].tolist()
        orders.append(nodes.tolist())
    assert orders[0] != orders[1]
    batches.set_epoch(0)
    assert torch.cat([b.nodes for b in loader]).tolist() == orders[0]


def test_ranks_share_the_rows(run: ndls.Run) -> None:
    from ndls.torch import Batches

    rows = ndls.NodeRows(run, split="train")
    nodes = [b.nodes for rank in range(3) for b in Batches(rows, 16, shuffle=1, rank=rank, world=3, memory=16 * 1024)]
    assert sorted(torch.cat(nodes).tolist()) == run.split("train").tolist()


def test_node_rows_are_a_dataset(run: ndls.Run) -> None:
    rows = ndls.NodeRows(run, split="valid")
    loader = torch.utils.data.DataLoader(rows, batch_size=32, num_workers=2)
    x, y = (torch.cat(parts) for parts in zip(*loader, strict=True))
    np.testing.assert_array_equal(x.numpy(), run.features[run.split("valid")])
    assert y.tolist() == run.labels[run.split("valid")].tolist()


def test_tensors(arrays: Arrays, tmp_path: Path) -> None:
    graph = ndls.from_arrays(
        torch.from_numpy(arrays.src),
        torch.from_numpy(arrays.dst),
        features=torch.from_numpy(arrays.features).bfloat16(),
        labels=torch.from_numpy(arrays.labels),
    )
    run = imported(graph, tmp_path / "run")
    np.testing.assert_allclose(np.asarray(run.hops["hop_0"]), arrays.features[run.ids], rtol=1e-2)


def test_pyg(arrays: Arrays, tmp_path: Path) -> None:
    data_module = pytest.importorskip("torch_geometric.data", reason="torch_geometric is not installed: pip install torch_geometric")
    masks = {name: torch.from_numpy(arrays.splits == code) for name, code in (("train_mask", 1), ("val_mask", 2), ("test_mask", 3))}
    data = data_module.Data(
        x=torch.from_numpy(arrays.features),
        y=torch.from_numpy(arrays.labels),
        edge_index=torch.from_numpy(np.stack([arrays.src, arrays.dst])),
        **masks,
    )
    run = imported(ndls.from_pyg(data), tmp_path / "run")
    np.testing.assert_allclose(np.asarray(run.hops["hop_1"]), arrays.hop(arrays.features)[run.ids], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(run.labels, arrays.labels[run.ids])
    np.testing.assert_array_equal(run.splits[0], arrays.splits[run.ids, 0])
    with pytest.raises(ValueError, match="no edge_index"):
        ndls.from_pyg(data_module.HeteroData())


def test_transform_of_pyg(arrays: Arrays, tmp_path: Path) -> None:
    """The transform smooths x in the order of the graph, adds K, and leaves its input as it is."""
    data_module = pytest.importorskip("torch_geometric.data", reason="torch_geometric is not installed: pip install torch_geometric")
    from ndls.pyg import NDLS

    x = torch.from_numpy(arrays.features)
    data = data_module.Data(x=x, y=torch.from_numpy(arrays.labels), edge_index=torch.from_numpy(np.stack([arrays.src, arrays.dst])))
    out = NDLS(rule="sgc", hops=1, normalize="none", memory="512MiB")(data)
    np.testing.assert_allclose(out.x.numpy(), arrays.hop(arrays.features), atol=2e-5)
    assert data.x is x
    assert out.y is data.y
    run = ndls.run(ndls.from_arrays(arrays.src, arrays.dst, features=arrays.features), tmp_path / "run", progress=False, memory="512MiB")
    out = NDLS(memory="512MiB")(data)
    np.testing.assert_array_equal(out.k.numpy()[run.ids], run.k)
    np.testing.assert_array_equal(out.x.numpy()[run.ids], run.features.to_torch().numpy())
    assert repr(NDLS(epsilon=0.1)) == "NDLS(epsilon=0.1)"
    with pytest.raises(ValueError, match="no x"):
        NDLS()(data_module.Data(edge_index=data.edge_index, num_nodes=900))
