"""What main.go measures, in PyTorch: python epoch.py papers|cora [threads] [rows] [epochs]."""

import sys
import time

import torch
from torch import nn

SHAPE = sys.argv[1] if len(sys.argv) > 1 else "papers"
THREADS = int(sys.argv[2]) if len(sys.argv) > 2 else 1
ROWS = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
EPOCHS = int(sys.argv[4]) if len(sys.argv) > 4 else 5
BATCH, DROPOUT = 4096, 0.4

torch.set_num_threads(THREADS)
torch.manual_seed(1)


def network(width, hidden, classes):
    model = nn.Sequential(
        nn.Dropout(DROPOUT), nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(hidden, classes)
    )
    return model, torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


def papers(width=128, hidden=256, classes=172):
    x = 2 * torch.rand(ROWS, width) - 1
    y = torch.randint(classes, (ROWS,))
    model, optimiser = network(width, hidden, classes)
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

    @torch.no_grad()
    def predict():
        model.eval()
        for rows in x.split(BATCH):
            torch.softmax(model(rows), 1)

    def timed(do, times):
        do()
        start = time.perf_counter()
        for _ in range(times):
            do()
        return (time.perf_counter() - start) / times

    seconds = timed(epoch, EPOCHS)
    flop = 2 * (2 * width * hidden + 3 * hidden * classes)
    print(f"{seconds:.3f} s/epoch\t{ROWS * flop / seconds / 1e9:.1f} GFLOP/s\t{timed(predict, EPOCHS):.3f} s/prediction")


def cora(width=1433, hidden=64, classes=7, train=140, valid=500):
    x = 2 * torch.rand(train + valid, width) - 1
    y = torch.randint(classes, (train + valid,))
    loss = nn.CrossEntropyLoss()
    start = time.perf_counter()
    for _ in range(10):
        model, optimiser = network(width, hidden, classes)
        for _ in range(500):
            model.train()
            optimiser.zero_grad()
            loss(model(x[:train]), y[:train]).backward()
            optimiser.step()
            model.eval()
            with torch.no_grad():
                z = model(x[train:])
                loss(z, y[train:]).item()
                (z.argmax(1) == y[train:]).sum().item()
    print(f"{time.perf_counter() - start:.2f} s for 10 models of 500 epochs")


{"papers": papers, "cora": cora}[SHAPE]()
