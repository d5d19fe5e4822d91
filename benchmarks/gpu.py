"""Fits and predictions on a GPU, beside the rate of its matrix products.

    python benchmarks/gpu.py rows        # 1,000,000 rows x 3 views x 64 columns, 1,024 features each, 100,000 labels
    python benchmarks/gpu.py streamed    # the same rows in the memory of the host, moved to the device block by block
    python benchmarks/gpu.py metric      # exact metric learning, n = 16,000 x 3 views
    python benchmarks/gpu.py largest     # exact co-regularized ridge at growing n, until the device is full

Data are made on the device. Times are from `fit` called to fitted,
medians of five, after one warm-up.
"""

import argparse
import time

import numpy as np
import torch

import consilience as cs

N, VIEWS, COLUMNS, FEATURES, LABELED, CLASSES = 1_000_000, 3, 64, 1024, 100_000, 10


def seconds(work, repeats=5):
    """Return the median time of a call, with the device idle before and after; the first call is not counted."""
    times = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:])), result


def product_rate(dtype, size=8192):
    """Return the rate of square matrix products, in TFLOP/s."""
    A = torch.randn(size, size, dtype=dtype, device="cuda")
    return 2 * size**3 / seconds(lambda: A @ A)[0] / 1e12


def make(dtype, n=N, views=VIEWS, columns=COLUMNS):
    torch.manual_seed(0)
    hidden = torch.randn(n, 8, dtype=dtype, device="cuda")
    X = {}
    for v in range(views):
        mixed = hidden @ torch.randn(8, columns, dtype=dtype, device="cuda")
        X[f"view{v}"] = mixed + 2 * torch.randn(n, columns, dtype=dtype, device="cuda")
    classes = (hidden @ torch.randn(8, CLASSES, dtype=dtype, device="cuda")).argmax(dim=1).cpu().numpy()
    return X, classes


def rows(args):
    for dtype, tf32 in ((torch.float64, False), (torch.float32, False), (torch.float32, True)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        fit_rows("TF32" if tf32 else str(dtype).rpartition(".")[2], dtype, args.repeats)


def ridge():
    kernel = cs.kernels.RBF(gamma=1 / (8 * COLUMNS))
    return cs.CoRegularizedRidgeClassifier(
        kernel, alpha=1e-6, agreement_penalty=1e-7, n_components=FEATURES, random_state=0
    )


def some_labels(classes):
    return np.where(np.arange(N) < LABELED, classes.astype(float), np.nan)


def work_of_fit():
    """Return the floating point operations of a fit: features, and their products."""
    q = VIEWS * FEATURES
    return 2 * N * q * (COLUMNS + FEATURES) + 2 * N * q * q


def streamed(args):
    for dtype in (torch.float64, torch.float32):
        X, classes = make(dtype)
        in_memory = {name: own.cpu().numpy() for name, own in X.items()}
        del X
        blocks = cs.RowBlocks.of(in_memory, some_labels(classes), size=65_536).to_device("cuda")
        model, rate = ridge(), product_rate(dtype)
        taken, _ = seconds(lambda m=model, b=blocks: m.fit(b), args.repeats)
        reached = work_of_fit() / taken / 1e12
        print(f"{str(dtype).rpartition('.')[2]} from the host: fit {taken:.3f} s, {reached:.1f} TFLOP/s, "
              f"{reached / rate:.0%} of the measured product rate of {rate:.1f}; {model.certificate()}")  # fmt: skip


def fit_rows(name, dtype, repeats):
    X, classes = make(dtype)
    y, model, rate, views = some_labels(classes), ridge(), product_rate(dtype), cs.Views(X)
    work = work_of_fit()
    taken, _ = seconds(lambda: model.fit(views, y), repeats)
    reached = work / taken / 1e12
    print(f"{name}: fit {taken:.3f} s, {reached:.1f} TFLOP/s, {reached / rate:.0%} of the measured product rate of "
          f"{rate:.1f}; {model.certificate()}")  # fmt: skip
    taken, scores = seconds(lambda: model.decision_function(views), repeats)
    right = np.mean(scores.argmax(1).cpu().numpy()[LABELED:] == classes[LABELED:])
    print(f"    predictions: {N / taken / 1e6:.1f} million rows a second, accuracy of unlabeled rows {right:.4f}")


def metric(args):
    X, classes = make(torch.float64, n=args.n)
    model = cs.ViewMetricRidge("rbf", alpha=1e-3)
    y = torch.as_tensor(classes == 0, dtype=torch.float64).numpy()
    views = cs.Views(X)
    taken, _ = seconds(lambda: model.fit(views, y), args.repeats)
    print(f"exact metric learning, n = {args.n} x {VIEWS} views: {taken:.2f} s; {model.certificate()}")


def largest(args):
    n = args.n
    while True:
        X, classes = make(torch.float64, n=n)
        model = cs.CoRegularizedRidge("rbf", alpha=1e-6, agreement_penalty=1e-7)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        try:
            model.fit(cs.Views(X), (classes == 0).astype(float))
        except MemoryError as error:
            print(f"exact, n = {n} x {VIEWS} views: {error}")
            return
        taken, peak = time.perf_counter() - start, torch.cuda.max_memory_allocated() / 1e9
        print(f"exact, n = {n} x {VIEWS} views: {taken:.2f} s, {peak:.0f} GB of the device", flush=True)
        n = int(1.25 * n)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rows", "streamed", "metric", "largest"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--n", type=int, default=16_000)
    chosen = parser.parse_args()
    {"rows": rows, "streamed": streamed, "metric": metric, "largest": largest}[chosen.what](chosen)
