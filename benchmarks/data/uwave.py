"""Make uwave_ucr_train.npz and uwave_ucr_test_rebuilt.npz from the UCR archive and the raw gesture library.

python benchmarks/data/uwave.py UCR RAW --out DATA

UCR has UWaveGestureLibraryX_TRAIN.tsv, and those of Y and Z, of https://www.cs.ucr.edu/~eamonn/time_series_data_2018/
(label, then 315 values). RAW has the unpacked uWave gesture library of Rice University (2009). Its archive
"U1 (2).rar" of user 1 and day 2 is unpacked into a folder of that name. It has files such as
A_Template_Acceleration3-4.txt for gesture 3 and repetition 4, with x, y and z in columns.

The recipe of the archive resamples a recording linearly to the longest one of the same user and day, then to 315
points. Then it standardizes each axis (n - 1). It gives all training series to 1.2e-6, so each of them belongs to one
recording. Recordings of one sample are left out. The other recordings are the test part, by user, day, gesture and
repetition. A constant series becomes 0.

The training file is exact. Another order of additions may change the last digit of the test file. Then the checks of
this script replace the digest, and --compare must show no difference above 2e-6.

Terms: free use with citation (Liu et al. 2009; Dau et al. 2018). The raw library, and so the test file, may not be
redistributed without written permission.
"""

import numpy as np
from _common import find_files, run

LENGTH = 315
TOLERANCE = 1e-5  # two recordings are never this close
TEST_SIZES = [437, 452, 454, 450, 433, 449, 447, 460]


def read_raw(folder):
    """Return (user, day, gesture, repetition) and the samples of each recording with more than one sample."""
    found = find_files(folder, r"U(\d) ?\((\d)\).*Acceleration(\d)-(\d+)\.txt$")
    recordings = {tuple(map(int, match.groups())): np.loadtxt(path, ndmin=2) for match, path in found}
    return {key: samples for key, samples in sorted(recordings.items()) if len(samples) > 1}


def resample(samples, length):
    """Return the columns of a table, interpolated linearly to another number of rows."""
    places = np.linspace(0, len(samples) - 1, length)
    return np.column_stack([np.interp(places, np.arange(len(samples)), column) for column in samples.T])


def standardize(series):
    spread = series.std(axis=0, ddof=1)
    centered = series - series.mean(axis=0)
    return np.where(spread > 1e-12, centered / np.where(spread > 1e-12, spread, 1), 0)


def rebuild(recordings):
    """Return the keys and the standardized series (axes x 315) of all recordings."""
    longest = {}
    for (user, day, *_), samples in recordings.items():
        longest[user, day] = max(len(samples), longest.get((user, day), 0))
    made = [standardize(resample(resample(x, longest[key[:2]]), LENGTH)) for key, x in recordings.items()]
    return np.array(list(recordings)), np.array(made).transpose(0, 2, 1)


def read_ucr(folder):
    tables = []
    for axis in "XYZ":
        ((_, path),) = find_files(folder, rf"UWaveGestureLibrary{axis}_TRAIN\.tsv$")
        tables.append(np.loadtxt(path, ndmin=2))
    if any(not np.array_equal(table[:, 0], tables[0][:, 0]) for table in tables):
        raise SystemExit("The files of the three axes have other labels.")
    return tables[0][:, 0].astype(int), np.stack([table[:, 1:] for table in tables], axis=1)


def match(labels, series, keys, rebuilt):
    """Return the recording of each series; stop if one has none, several or a used one."""
    places = []
    of_label = {label: np.flatnonzero(keys[:, 2] == label) for label in set(labels.tolist())}
    for label, known in zip(labels.tolist(), series, strict=True):
        near = of_label[label][np.abs(rebuilt[of_label[label]] - known).max(axis=(1, 2)) < TOLERANCE]
        if len(near) != 1:
            raise SystemExit(f"Training series {len(places) + 1} fits {len(near)} recordings instead of one.")
        places.append(int(near[0]))
    if len(set(places)) < len(places):
        raise SystemExit("Two training series fit the same recording.")
    return np.array(places)


def arrays_of(series, keys):
    arrays = {axis: np.ascontiguousarray(series[:, k], dtype=np.float32) for k, axis in enumerate("XYZ")}
    numbers = {"user": keys[:, 0], "day": keys[:, 1], "labels": keys[:, 2] - 1, "repetition": keys[:, 3]}
    return arrays | {name: column.astype(np.uint8) for name, column in numbers.items()}


def build(ucr, raw):
    labels, series = read_ucr(ucr)
    keys, rebuilt = rebuild(read_raw(raw))
    train = match(labels, series, keys, rebuilt)
    test = np.setdiff1d(np.arange(len(keys)), train)
    return {
        "uwave_ucr_train.npz": arrays_of(series, keys[train]),
        "uwave_ucr_test_rebuilt.npz": arrays_of(rebuilt[test], keys[test]),
    }


def checks(file, arrays):
    if file != "uwave_ucr_test_rebuilt.npz":
        return [("the training file is exact", False)]
    spread = np.concatenate([arrays[axis].astype(float).std(axis=1, ddof=1) for axis in "XYZ"])
    return [
        (f"recordings of each gesture: {TEST_SIZES}", np.bincount(arrays["labels"]).tolist() == TEST_SIZES),
        ("one series is constant", int((spread == 0).sum()) == 1),
        ("the others have standard deviation 1", bool(np.allclose(spread[spread > 0], 1, atol=1e-6))),
    ]


if __name__ == "__main__":
    folders = {"ucr": "folder with the three TSV files", "raw": "folder with the unpacked gesture library"}
    raise SystemExit(run(__doc__, build, folders, checks))
