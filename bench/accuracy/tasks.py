"""Compares several labels and numbers of ndls with scikit-learn, on made data whose answer is known.

    python bench/accuracy/tasks.py build/ndls FOLDER

A graph of 3,000 nodes has 16 features. Of labels, each is drawn with the probability that a logistic function gives
for the node's row after two hops; numbers are a smooth function of that row, with noise. ndls smooths (sgc, 2 hops)
and trains five models; scikit-learn trains five perceptrons of the same size on the same rows and splits, and keeps
the epoch that is best on the validation nodes by the same measure. Its weights begin as ours do, uniform in ±1/√in:
with its own, uniform in ±√(6/(in + out)), it is 0.002 behind in both measures of labels. The last column is what the
known answer itself has.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, mean_absolute_error, r2_score, roc_auc_score
from sklearn.neural_network import MLPClassifier, MLPRegressor

program, folder = sys.argv[1], Path(sys.argv[2])
NODES, FEATURES, COLUMNS, MODELS, EPOCHS, RATE = 3000, 16, 6, 5, 300, 0.003
draw = np.random.default_rng(7)
x = draw.normal(size=(NODES, FEATURES)).astype(np.float32)
src, dst = draw.integers(NODES, size=(2, 5 * NODES))
split = draw.choice(["train", "valid", "test"], p=[0.5, 0.25, 0.25], size=NODES)

# The row after two hops, by the matrix with a loop at each node, r = 1/2.
a = np.eye(NODES, dtype=np.float32)
a[src, dst] = a[dst, src] = 1
degree = a.sum(1)
a /= np.sqrt(degree)[:, None] * np.sqrt(degree)[None, :]
rows = a @ (a @ x)
rows /= rows.std()
weights = draw.normal(size=(FEATURES, COLUMNS)) * 1.5
score = rows @ weights / 2
truth = {
    "labels": 1 / (1 + np.exp(-score)),
    "regression": 200 + 40 * np.tanh(score) + 5 * np.arange(COLUMNS),
}
answer = {
    "labels": (draw.random(score.shape) < truth["labels"]).astype(np.float32),
    "regression": truth["regression"] + draw.normal(scale=8, size=score.shape),
}


def measures(task, y, z):
    if task == "labels":
        return roc_auc_score(y, z, average="macro"), average_precision_score(y, z, average="macro")
    return r2_score(y, z), mean_absolute_error(y, z)


def ours(task):
    y = answer[task]
    names = [f"x{i}" for i in range(FEATURES)] + [f"y{i}" for i in range(COLUMNS)]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{task}.csv", "w") as f:
        f.write("id,split," + ",".join(names) + "\n")
        for i in range(NODES):
            values = [f"{v:.9g}" for v in x[i]] + [f"{v:.9g}" for v in y[i]]
            f.write(f"{i},{split[i]}," + ",".join(values) + "\n")
    np.savetxt(folder / "edges.csv", np.stack([src, dst], 1), "%d", ",", header="src,dst", comments="")
    uri = f"table:{folder}/edges.csv?nodes={folder}/{task}.csv&id=id&features=x0..x{FEATURES - 1}&label=y0..y{COLUMNS - 1}&split=split"
    run = folder / f"run-{task}"
    command = [program, "run", "--dataset", uri, "--task", task, "--run", run, "--rule", "sgc", "--hops", "2", "--normalize", "none", "--runs", MODELS]
    command += ["--input-norm", "standard", "--epochs", EPOCHS, "--dropout", "0", "--input-dropout", "0", "--batch-size", "200", "--lr", RATE, "--patience", "0", "--weight-decay", "0", "--memory", "512MiB", "--quiet"]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    report = json.loads((run / "report.json").read_text())["accuracy"]["metrics"]["base"]
    first, second = ("roc_auc", "average_precision") if task == "labels" else ("r2", "mean_absolute_error")
    out = folder / f"rows-{task}.npy"
    subprocess.run([program, "export", "--run", run, "--what", "smoothed", "--format", "npy", "--out", out, "--force"], check=True, stdout=subprocess.DEVNULL)
    return report[first]["test"], report[second]["test"], np.load(out)


class Begin:
    """Draws the first weights of a scikit-learn perceptron as torch.nn.Linear and ndls do."""

    def _init_coef(self, fan_in, fan_out, dtype):
        bound = fan_in**-0.5
        first = self._random_state.uniform(-bound, bound, (fan_in + 1, fan_out)).astype(dtype)
        return first[:-1].copy(), first[-1].copy()


class Classifier(Begin, MLPClassifier): ...


class Regressor(Begin, MLPRegressor): ...


def theirs(task, rows):
    y, found = answer[task], []
    train, valid, test = (split == s for s in ("train", "valid", "test"))
    rows = (rows - rows[train].mean(0)) / rows[train].std(0)
    mean, deviation = (0, 1) if task == "labels" else (y[train].mean(0), y[train].std(0))
    for seed in range(MODELS):
        kind = Classifier if task == "labels" else Regressor
        model = kind(hidden_layer_sizes=(64,), alpha=0, learning_rate_init=RATE, batch_size=200, random_state=seed)
        say = model.predict_proba if task == "labels" else model.predict
        best, kept = -np.inf, None
        for _ in range(EPOCHS):
            if task == "labels":
                model.partial_fit(rows[train], y[train], classes=np.arange(COLUMNS))
            else:
                model.partial_fit(rows[train], (y[train] - mean) / deviation)
            at = measures(task, y[valid], say(rows[valid]) * deviation + mean)[0]
            if at > best:
                best, kept = at, measures(task, y[test], say(rows[test]) * deviation + mean)
        found.append(kept)
    return np.array(found)


for task in ("labels", "regression"):
    first, second, smoothed = ours(task)
    other = theirs(task, smoothed)
    known = measures(task, answer[task][split == "test"], truth[task][split == "test"])
    for i, (name, mine) in enumerate(zip(("ROC AUC", "average precision") if task == "labels" else ("R²", "mean absolute error"), (first, second), strict=True)):
        print(f"{task}, {name}: ndls {mine['mean']:.4f} ± {mine['std']:.4f}, scikit-learn {other[:, i].mean():.4f} ± {other[:, i].std(ddof=1):.4f}, known answer {known[i]:.4f}")
