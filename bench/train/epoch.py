"""What main.go measures, in PyTorch: python epoch.py [rows] [epochs]."""

import sys
import time

import torch
from torch import nn

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
EPOCHS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
WIDTH, HIDDEN, CLASSES, BATCH, DROPOUT = 128, 256, 172, 4096, 0.4
FLOP = 2 * (2 * WIDTH * HIDDEN + 3 * HIDDEN * CLASSES)

torch.set_num_threads(1)
torch.manual_seed(1)
x = torch.randn(ROWS, WIDTH)
y = torch.randint(CLASSES, (ROWS,))
model = nn.Sequential(
    nn.Dropout(DROPOUT), nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(HIDDEN, CLASSES)
)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
loss = nn.CrossEntropyLoss()


def epoch():
    model.train()
    total = 0.0
    for rows in torch.randperm(ROWS).split(BATCH):
        optimiser.zero_grad()
        step = loss(model(x[rows]), y[rows])
        step.backward()
        optimiser.step()
        total += step.item() * len(rows)
    return total / ROWS


epoch()
start = time.perf_counter()
for _ in range(EPOCHS):
    epoch()
seconds = (time.perf_counter() - start) / EPOCHS
print(f"{seconds:.3f} s/epoch\t{ROWS * FLOP / seconds / 1e9:.1f} GFLOP/s")
