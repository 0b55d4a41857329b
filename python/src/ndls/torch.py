"""Rows of a run for PyTorch. Importing this module imports torch.

``ndls.NodeRows`` itself is a dataset for ``torch.utils.data.DataLoader`` that reads a row at a
time. ``Batches`` is the fast one:

    from ndls.torch import Batches

    train = Batches(ndls.NodeRows(run, split="train"), 4096, shuffle=1)
    loader = torch.utils.data.DataLoader(train, batch_size=None)
    for epoch in range(20):
        train.set_epoch(epoch)
        for batch in loader:
            loss = cross_entropy(model(batch.x), batch.y)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.utils.data

from ndls._loader import Batch, NodeRows

__all__ = ["Batches"]


class Batches(torch.utils.data.IterableDataset[Batch]):
    """The batches of ``NodeRows.batches`` as tensors.

    The workers of a ``DataLoader`` share the chunks: each row comes once an epoch, whatever the
    number of workers. The order depends on the seed, the epoch, and the numbers of workers and
    processes.

    Args:
        rows: The rows.
        size: Rows of a batch. Give ``batch_size=None`` to the ``DataLoader``.
        shuffle: The seed of the order. None keeps the order of nodes.
        rank, world: The number of this process, and how many processes share an epoch, as
            ``torch.distributed`` has them.
        memory: Bytes that the windows of a worker may take.
        drop_last: Leaves out batches with fewer rows.
    """

    def __init__(
        self,
        rows: NodeRows,
        size: int,
        *,
        shuffle: int | None = None,
        rank: int = 0,
        world: int = 1,
        memory: int = 256 << 20,
        drop_last: bool = False,
    ) -> None:
        super().__init__()
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} of {world} processes")
        self.rows, self.size, self.shuffle, self.rank, self.world = rows, size, shuffle, rank, world
        self.memory, self.drop_last = memory, drop_last
        # Workers that stay from epoch to epoch see the number, too.
        epoch: Any = torch.zeros(1, dtype=torch.int64)
        self._epoch = epoch.share_memory_()

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the epoch, which decides the order with the seed.

        Without this call each epoch has the same order, as with ``DistributedSampler``.
        """
        self._epoch[0] = epoch

    def __iter__(self) -> Iterator[Batch]:
        worker = torch.utils.data.get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        seed = None if self.shuffle is None else (self.shuffle, int(self._epoch[0]))
        part = (self.rank * workers + number, self.world * workers)
        for batch in self.rows.batches(self.size, shuffle=seed, part=part, memory=self.memory, drop_last=self.drop_last):
            yield Batch(*(torch.from_numpy(array) for array in batch))
