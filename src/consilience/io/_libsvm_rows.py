"""Plain lines of libsvm files, read by a compiled pass; others are left to scikit-learn."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._jit import jit

_POWERS = 10.0 ** np.arange(23)  # exact in double precision
_EXACT = 2**53  # whole numbers up to here are


def parse_plain_lines(text: bytes, width: int) -> tuple[Any, np.ndarray] | None:
    """Return rows and targets of lines such as ``-1 3:0.5 7:1``; None if a line has anything else.

    Comments, query numbers, several labels, columns that do not increase and numbers of more than 15 digits are other
    things. Numbers are rounded as Python rounds them: a whole number below 2^53 times or by an exact power of ten.

    Parameters
    ----------
    text : bytes
        Lines, each with its end.
    width : int
        Number of columns of the result; columns keep their numbers.
    """
    codes = np.frombuffer(text, dtype=np.uint8)
    n, size = text.count(b"\n"), text.count(b":")
    y, starts = np.empty(n), np.zeros(n + 1, dtype=np.int32)
    columns, values = np.empty(size, dtype=np.int32), np.empty(size)
    if size >= 2**31 or not _parse(codes, y, starts, columns, values, width):
        return None
    X = sp.csr_matrix((values, columns, starts), shape=(n, width))
    X.has_canonical_format = True
    return X, y


@jit()
def _number(codes, at):  # type: ignore[no-untyped-def]
    """Return the number that starts at a place and the place after it; -1 as the place if it is not a plain one."""
    sign, whole, digits, power, point = 1.0, 0, 0, 0, False
    if codes[at] == 45 or codes[at] == 43:  # - +
        sign, at = -1.0 if codes[at] == 45 else 1.0, at + 1
    while at < len(codes):
        if 48 <= codes[at] <= 57:
            whole, digits = 10 * whole + int(codes[at] - 48), digits + 1
            power -= point
            if whole >= _EXACT:
                return 0.0, -1
        elif codes[at] == 46 and not point:
            point = True
        else:
            break
        at += 1
    if not digits:
        return 0.0, -1
    if at < len(codes) and (codes[at] == 101 or codes[at] == 69):  # e E
        at, down, exponent, first = at + 1, False, 0, 0
        if at < len(codes) and (codes[at] == 45 or codes[at] == 43):
            down, at = codes[at] == 45, at + 1
        first = at
        while at < len(codes) and 48 <= codes[at] <= 57 and exponent < 1000:
            exponent, at = 10 * exponent + int(codes[at] - 48), at + 1
        if at == first:
            return 0.0, -1
        power += -exponent if down else exponent
    if power < -22 or power > 22:
        return 0.0, -1
    return sign * (whole * _POWERS[power] if power >= 0 else whole / _POWERS[-power]), at


@jit()
def _parse(codes, y, starts, columns, values, width):  # type: ignore[no-untyped-def]
    """Fill targets and rows; return whether all lines are plain."""
    at, k = 0, 0
    for i in range(len(y)):
        y[i], at = _number(codes, at)
        last = -1
        while at >= 0 and codes[at] == 32:
            while codes[at] == 32:
                at += 1
            if codes[at] == 10 or codes[at] == 13:
                break
            column, first = 0, at
            while 48 <= codes[at] <= 57 and column < width:
                column, at = 10 * column + int(codes[at] - 48), at + 1
            if at == first or codes[at] != 58 or column <= last or column >= width:
                return False
            values[k], at = _number(codes, at + 1)
            columns[k], last, k = column, column, k + 1
        if at < 0:
            return False
        at += codes[at] == 13  # \r\n
        if codes[at] != 10:
            return False
        at += 1
        starts[i + 1] = k
    return at == len(codes) and k == len(columns)
