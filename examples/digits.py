"""Train a softmax classifier with one hidden layer on real handwritten digits.

    python examples/digits.py [--epochs 30]

The digits are the 1,797 images of 8 x 8 pixels that ship with scikit-learn.  Weights are shared
variables, the gradient is symbolic, one compiled function makes one step on a minibatch.
Writes the loss curve to demo-output/loss.png.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from rich.progress import track
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import phintys
import phintys.tensor as pt

HIDDEN, BATCH, RATE = 64, 64, 0.3


def load():
    """Training and held-out images (float64 in [0, 1]) and labels."""
    images, labels = load_digits(return_X_y=True)
    return train_test_split(images / 16.0, labels.astype("int64"), test_size=0.25, random_state=0)


def first_weights(n_in: int, n_out: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [
        rng.normal(size=(n_in, HIDDEN)) / np.sqrt(n_in),
        np.zeros(HIDDEN),
        rng.normal(size=(HIDDEN, n_out)) / np.sqrt(HIDDEN),
        np.zeros(n_out),
    ]


def build(weights: list[np.ndarray]):
    """The symbolic program: loss, prediction, and the two compiled functions."""
    x, y = pt.dmatrix("x"), pt.lvector("y")
    names = ("W", "b", "V", "c")
    parameters = [phintys.shared(w, name) for w, name in zip(weights, names)]
    W, b, V, c = parameters
    logits = pt.dot(pt.maximum(pt.dot(x, W) + b, 0), V) + c
    log_p = pt.special.log_softmax(logits, axis=1)
    loss = -log_p[pt.arange(y.shape[0]), y].mean()
    loss.name = "loss"
    gradients = phintys.grad(loss, parameters)
    updates = [(p, p - RATE * g) for p, g in zip(parameters, gradients)]
    print("\nThe loss as written:\n")
    phintys.dprint(loss)
    start = time.perf_counter()
    step = phintys.function([x, y], loss, updates=updates, name="step")
    compiled = time.perf_counter() - start
    predict = phintys.function([x], logits.argmax(axis=1), name="predict")
    print("\nOne training step after rewriting (loss, then the new weights):\n")
    phintys.dprint(step)
    print("\nWhat became of it:\n")
    print(phintys.explain(step), end="\n\n")
    return step, predict, compiled


def numpy_step(parameters: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> float:
    """The same step, with derivatives worked out by hand."""
    W, b, V, c = parameters
    a = x @ W + b
    h = np.maximum(a, 0)
    z = h @ V + c
    z = z - z.max(axis=1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    rows = np.arange(len(y))
    loss = -log_p[rows, y].mean()
    g = np.exp(log_p)
    g[rows, y] -= 1
    g /= len(y)
    gh = (g @ V.T) * (a > 0)
    for p, d in zip(parameters, (x.T @ gh, gh.sum(axis=0), h.T @ g, g.sum(axis=0))):
        p -= RATE * d
    return loss


def best_of(f, repeat: int = 200) -> float:
    """The least time of a call, in microseconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def draw(losses: list[float], per_epoch: int, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    path.parent.mkdir(exist_ok=True)
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    mean = np.convolve(losses, np.full(per_epoch, 1 / per_epoch), mode="valid")
    axes.plot(losses, linewidth=0.7, alpha=0.4, color="tab:blue", label="minibatch")
    axes.plot(np.arange(len(mean)) + per_epoch / 2, mean, color="tab:blue", label="epoch's mean")
    axes.set(xlabel="step (64 digits each)", ylabel="loss (nats)", yscale="log")
    axes.set_title("Training on handwritten digits")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    epochs = parser.parse_args().epochs
    x_train, x_test, y_train, y_test = load()
    weights = first_weights(x_train.shape[1], 10)
    step, predict, compiled = build(weights)

    start = time.perf_counter()
    losses = [float(step(x_train[:BATCH], y_train[:BATCH]))]
    first = time.perf_counter() - start
    rng = np.random.default_rng(1)
    for _ in track(range(epochs), description="training"):
        order = rng.permutation(len(x_train))
        for k in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[k : k + BATCH]
            losses.append(float(step(x_train[rows], y_train[rows])))

    accuracy = float((predict(x_test) == y_test).mean())
    x, y = x_train[:BATCH], y_train[:BATCH]
    by_hand = [w.copy() for w in weights]
    ours, theirs = best_of(lambda: step(x, y)), best_of(lambda: numpy_step(by_hand, x, y))
    path = Path("demo-output") / "loss.png"
    draw(losses, len(x_train) // BATCH, path)
    print(f"\naccuracy on {len(y_test)} held-out digits   {100 * accuracy:.1f} %")
    print(
        f"time to the first result          {1e3 * (compiled + first):.0f} ms, compiling included"
    )
    print(f"a step of {BATCH} digits               {ours:.0f} us; by hand in NumPy {theirs:.0f} us")
    print(f"loss curve                        {path}")
    if accuracy < 0.95:
        raise SystemExit(f"The accuracy is below 95 %: {accuracy}")


if __name__ == "__main__":
    main()
