"""Dask collections as partitions: targets in memory are cut to them, and work is done on all of them."""

import numpy as np
import pytest

import consilience as cs
from consilience.views.partitions import partitions_of

dask = pytest.importorskip("dask", reason="Dask is an extra: pip install 'consilience[dask]'")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
FRAME = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("pqr"))
TARGET = FRAME["p"].to_numpy() - 2 * FRAME["q"].to_numpy()
WEIGHTS = rng.uniform(0.5, 2, size=60)


def rows_times(shared, block, own):
    return shared * own * len(block[0])


@pytest.mark.parametrize("form", ["frame", "array"])
def test_targets_and_weights_in_memory_go_with_partitions_of_known_and_unknown_length(form):
    model = cs.CoRegularizedRidge("linear", n_components=3, random_state=0)
    if form == "frame":  # which does not know the lengths of its partitions
        X = {"a": dd.from_pandas(FRAME, npartitions=4)}
    else:
        X = {"a": da.from_array(FRAME.to_numpy(), chunks=(17, 3))}
    with dask.config.set(scheduler="synchronous"):
        found = model.fit(X, TARGET, WEIGHTS).predict({"a": FRAME if form == "frame" else FRAME.to_numpy()})
    np.testing.assert_allclose(found, model.fit({"a": FRAME}, TARGET, WEIGHTS).predict({"a": FRAME}), atol=1e-6)


def test_no_partition_is_left_out_where_values_for_some_are_lacking():
    parts = partitions_of({"a": da.from_array(FRAME.to_numpy(), chunks=(17, 3))})
    with dask.config.set(scheduler="synchronous"):
        assert parts.map(rows_times, 2, [1, 1, 1, 10]) == [34, 34, 34, 180]
        assert parts.reduce(rows_times, 1, [1, 1, 1, 1]) == 60
        for run in (parts.map, parts.reduce):
            with pytest.raises(ValueError, match="zip"):
                run(rows_times, 1, [1, 1, 1])


def test_no_rows_of_partitions_are_refused_in_a_sentence():
    blocks = cs.RowBlocks.of({"a": da.from_array(FRAME.to_numpy(), chunks=(17, 3))}, TARGET)
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match="The samples have no samples"):
        cs.CoRegularizedRidge("linear", n_components=3).fit(blocks[np.arange(0)])
