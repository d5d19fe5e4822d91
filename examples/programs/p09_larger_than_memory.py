"""The same estimator on arrays, on row blocks of a Parquet folder, and on a Dask cluster: the same coefficients."""
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import consilience as cs

rng = np.random.default_rng(0)
y = rng.integers(3, size=20_000)
frame = pd.DataFrame({f"a__{i}": rng.normal(size=20_000) + (y == i) for i in range(3)} | {f"b__{i}": rng.normal(size=20_000) - y for i in range(2)})
# `views` is a parameter, so that every form of the table is divided alike
model = cs.CoRegularizedRidgeClassifier(n_components=100, agreement_penalty=1e-4, random_state=0, views="prefix")
whole = model.fit(frame, y).predict(frame)
with tempfile.TemporaryDirectory() as folder:
    for part in range(4):  # in the order of the rows: landmarks are drawn by position
        rows = slice(5000 * part, 5000 * (part + 1))
        frame.iloc[rows].assign(y=y[rows]).to_parquet(Path(folder) / f"part-{part}.parquet")
    blocks = cs.read_blocks(folder, views="prefix", target="y")
    assert (model.fit(blocks).predict(frame) == whole).mean() > 0.999

    import dask.dataframe as dd

    table = dd.read_parquet(folder)
    X = table.drop(columns="y")
    lazy = model.fit(X, table["y"]).predict(X)
    print("agreement", (np.asarray(lazy.compute()) == whole).mean())
