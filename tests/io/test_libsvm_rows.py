"""The compiled reader of plain libsvm lines: equal to scikit-learn's, and it leaves other lines to it."""

import io
import random

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from consilience import read_stream
from consilience.io._libsvm_rows import parse_plain_lines

WIDTH = 2**31 - 1


def lines_of(n, seed=0):
    rng = random.Random(seed)
    forms = (
        lambda v: f"{v:.6g}",
        lambda v: repr(round(100 * v, 5)),
        lambda v: f"{v:.3e}",
        lambda v: ".5",
        lambda v: "7",
    )
    lines = []
    for _ in range(n):
        columns = sorted(rng.sample(range(5000), rng.randint(0, 12)))
        pairs = "".join(f" {c}:{rng.choice(forms)(rng.gauss(0, 1))}" for c in columns)
        lines.append(
            rng.choice(["+1", "-1", "0", "2.5", "1e3"]) + pairs + rng.choice(["", " "]) + rng.choice(["\n", "\r\n"])
        )
    return "".join(lines).encode()


def test_plain_lines_are_read_as_scikit_learn_reads_them():
    text = lines_of(400)
    X, y = parse_plain_lines(text, WIDTH)
    Z, z = load_svmlight_file(io.BytesIO(text), n_features=WIDTH, zero_based=True)
    np.testing.assert_array_equal(y, z)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(Z, name))


@pytest.mark.parametrize(
    "line",
    ["1 2:3 1:4", "1 2:3 2:4", "1 # text", "1 qid:3 2:1", "1,2 3:1", "a 1:2", "1 1:nan", "1 1:", "1 :3", "1 1 2", "",
     "1 99999999999:1", "1 1:0.12345678901234567890", "1 1:1e400", "1\t2:3", "1 -2:3", "1 2:3x", "1 1:1e", "1 1:-"],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "1 1:2\n"])
def test_other_lines_are_left_to_scikit_learn(line, before):
    assert parse_plain_lines(f"{before}{line}\n".encode(), WIDTH) is None


def test_a_stream_of_both_kinds_of_lines(tmp_path):
    path = tmp_path / "a.libsvm"
    path.write_text("1 1:0.1 3:2\n-1 2:0.12345678901234567890 # long\n+1 1:1\n")
    ((X, labels),) = read_stream(path)
    assert labels == [1, -1, 1]
    np.testing.assert_array_equal(X[X.names[0]].toarray(), [[0.1, 0, 2], [0, 0.12345678901234567890, 0], [1, 0, 0]])


def test_errors_name_the_line_in_every_piece_of_a_file(tmp_path, monkeypatch):
    from consilience.io import _libsvm

    monkeypatch.setattr(_libsvm, "_PIECE", 12)  # bytes: two lines
    path = tmp_path / "rows.svm"
    for bad in (2, 3, 5, 7):
        lines = ["# a comment"] + [f"1 1:{k}" for k in range(7)]
        lines[bad] = "1 x:y"
        path.write_text("\n".join(lines) + "\n")
        with pytest.raises(ValueError, match=rf"\b[Ll]ine {bad + 1}\b"):
            list(read_stream(path, chunk=2))


def test_powers_of_ten_are_read_as_python_reads_them_as_long_as_they_are_exact():
    numbers = ["1e22", "7e22", "-9007199254740991e22", "3e-22", "9007199254740991e-22", "0.5e+23"]
    line = "1e22" + "".join(f" {k}:{number}" for k, number in enumerate(numbers)) + "\n"
    X, y = parse_plain_lines(line.encode(), WIDTH)
    assert X.data.tolist() == [float(number) for number in numbers]
    assert y.tolist() == [1e22]
    for number in ("1e23", "1e-23", "0.1e-22"):
        assert parse_plain_lines(f"1 1:{number}\n".encode(), WIDTH) is None
