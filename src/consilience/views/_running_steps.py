"""Compiled passes over the rows of a stream; each row is transformed with the statistics up to and including itself.

All passes take one row after the other, so that any chunks of a stream give the same bits. With ``learn=False`` every
row is taken as the next one after those that were learned, and nothing is stored.

Counts are floating-point numbers, so that loops over columns can be vectorized.
"""

import numpy as np

from .._jit import jit

_LARGEST = 1e148  # larger values count as this one: their squares would overflow
_SMALLEST = 1e-290  # a sum of squares below is that of a constant column: its inverse could overflow
_MOVES_AT = 5.0  # number of values at which the origin of a column becomes their mean


@jit(error_model="numpy")
def count_infinite(values):  # type: ignore[no-untyped-def]
    """Return how many values are infinite."""
    count = 0
    for k in range(len(values)):
        count += abs(values[k]) == np.inf
    return count


# -- dense views
@jit(error_model="numpy")
def _clipped(value):  # type: ignore[no-untyped-def]
    value = np.float64(value)
    if value > _LARGEST:
        value = _LARGEST
    if value < -_LARGEST:
        value = -_LARGEST
    return value


@jit(error_model="numpy")
def _is_uniform(x, count):  # type: ignore[no-untyped-def]
    """Tell whether a row has no NaN, and all columns have the same count."""
    other = 0
    for j in range(len(x)):
        other += (x[j] != x[j]) | (count[j] != count[0])
    return other == 0


@jit(error_model="numpy")
def _standardize_uniform(x, z, count, origin, mean, squares):  # type: ignore[no-untyped-def]
    """Do as `_standardize_row` if all columns have one count: a division fewer for each value, and the same bits."""
    n = count[0] + 1.0
    share = 1.0 / n
    if n == 1.0:
        for j in range(len(x)):
            origin[j] = _clipped(x[j])
    for j in range(len(x)):
        value = _clipped(x[j]) - origin[j]
        before = value - mean[j]
        mean[j] += before * share
        after = value - mean[j]
        squares[j] += before * after
        count[j] = n
        z[j] = after * np.sqrt(n / squares[j]) if squares[j] > _SMALLEST else 0.0
    if n == _MOVES_AT:
        for j in range(len(x)):
            center = origin[j] + mean[j]
            mean[j] += origin[j] - center
            origin[j] = center


@jit(error_model="numpy")
def _standardize_row(x, z, count, origin, mean, squares):  # type: ignore[no-untyped-def]
    """Add a row by Welford's formulas and write its standard scores; NaN is left out and stays.

    Values are counted from the `origin` of their column, so that large values with small differences, such as time
    stamps, lose no digits. It is the first value, and after some more their mean, so that no sample is kept.
    """
    for j in range(len(x)):
        value = _clipped(x[j])
        if value != value:
            z[j] = np.nan
            continue
        n = count[j] + 1.0
        if n == 1.0:
            origin[j] = value
        value -= origin[j]
        before = value - mean[j]
        mean[j] += before * (1.0 / n)
        after = value - mean[j]
        squares[j] += before * after
        count[j] = n
        z[j] = after * np.sqrt(n / squares[j]) if squares[j] > _SMALLEST else 0.0
        if n == _MOVES_AT:
            center = origin[j] + mean[j]
            mean[j] += origin[j] - center
            origin[j] = center


@jit(error_model="numpy")
def standardize_rows(X, present, count, origin, mean, squares, learn, Z):  # type: ignore[no-untyped-def]
    """Write (x - mean) / (standard deviation) of the rows that are present to Z, and NaN for the others."""
    kept = np.empty((4, 0 if learn else len(count)))
    own = (count, origin, mean, squares) if learn else (kept[0], kept[1], kept[2], kept[3])
    for i in range(len(X)):
        if not present[i]:
            Z[i] = np.nan
            continue
        if not learn:
            kept[0], kept[1], kept[2], kept[3] = count, origin, mean, squares
        if _is_uniform(X[i], count):
            _standardize_uniform(X[i], Z[i], *own)
        else:
            _standardize_row(X[i], Z[i], *own)


@jit(error_model="numpy")
def impute_rows(X, present, count, mean, learn, Z):  # type: ignore[no-untyped-def]
    """Write rows to Z with the mean so far, or 0 before the first value, in place of NaN; return how many these are."""
    filled = 0
    for i in range(len(X)):
        if not present[i]:
            Z[i] = np.nan
            continue
        if learn and _is_uniform(X[i], count):
            n = count[0] + 1.0
            share = 1.0 / n
            for j in range(X.shape[1]):
                mean[j] += (_clipped(X[i, j]) - mean[j]) * share
                count[j], Z[i, j] = n, X[i, j]
            continue
        for j in range(X.shape[1]):
            value = _clipped(X[i, j])
            Z[i, j] = X[i, j]
            if value != value:
                Z[i, j] = mean[j]
                filled += 1
            elif learn:
                count[j] += 1.0
                mean[j] += (value - mean[j]) * (1.0 / count[j])
    return filled


# -- sparse views
@jit(error_model="numpy")
def scale_sparse_rows(rows, present, n_rows, count, mean, squares, lost, learn, Z):  # type: ignore[no-untyped-def]
    """Write values over the standard deviation of their column to Z; zeros that are not stored count, NaN does not.

    `count`, `mean` and `squares` are of the k values that are not 0, by Welford's formulas. Among n values the sum of
    squares is squares + mean² k (n - k) / n, by the formula of Chan, Golub and LeVeque 1983 for two groups.
    """
    data, indices, indptr = rows
    for i in range(len(indptr) - 1):
        if not present[i]:
            continue
        total = n_rows[0] + 1.0
        for p in range(indptr[i], indptr[i + 1]):
            j, value = indices[p], _clipped(data[p])
            Z[p] = data[p]
            if value != value and learn:
                lost[j] += 1.0
            if value != value or value == 0.0:
                continue
            k, n = count[j] + 1.0, total - lost[j]
            before = value - mean[j]
            center = mean[j] + before / k
            own = squares[j] + before * (value - center)
            around = own + center * center * (k * ((n - k) / n))
            Z[p] = value * np.sqrt(n / around) if around > _SMALLEST else 0.0
            if learn:
                count[j], mean[j], squares[j] = k, center, own
        if learn:
            n_rows[0] = total


@jit(error_model="numpy")
def impute_sparse_rows(rows, present, n_rows, count, mean, lost, learn, Z):  # type: ignore[no-untyped-def]
    """Write values to Z with the mean of their column so far in place of NaN; zeros that are not stored count."""
    data, indices, indptr = rows
    filled = 0
    for i in range(len(indptr) - 1):
        if not present[i]:
            continue
        for p in range(indptr[i], indptr[i + 1]):
            j, value = indices[p], _clipped(data[p])
            Z[p] = data[p]
            if value != value:
                before = n_rows[0] - lost[j]
                Z[p] = mean[j] * (count[j] / before) if before > 0 else 0.0
                filled += 1
            if learn and value != value:
                lost[j] += 1.0
            elif learn and value != 0.0:
                count[j] += 1.0
                mean[j] += (value - mean[j]) / count[j]
        if learn:
            n_rows[0] += 1.0
    return filled


@jit(error_model="numpy")
def weight_terms(rows, present, n_rows, frequency, learn, Z):  # type: ignore[no-untyped-def]
    """Write tf-idf weights to Z: tf (ln((1 + n) / (1 + df)) + 1) with the row itself in n and df, of norm 1."""
    data, indices, indptr = rows
    for i in range(len(indptr) - 1):
        if not present[i]:
            continue
        n, norm = n_rows[0] + 1.0, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            df = frequency[indices[p]] + 1.0
            Z[p] = data[p] * (np.log((1.0 + n) / (1.0 + df)) + 1.0)
            norm += Z[p] * Z[p]
            if learn:
                frequency[indices[p]] = df
        norm = np.sqrt(norm)
        for p in range(indptr[i], indptr[i + 1]):
            Z[p] = Z[p] / norm if norm > 0 else 0.0
        if learn:
            n_rows[0] = n
