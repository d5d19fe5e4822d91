"""Charts as SVG without a script. They take their colors from the page, so that they suit light, dark and print."""

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

WIDTH = 360  # of a chart in its own units: the width of a phone, so that labels are legible there


def heat_map(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    texts: Sequence[Sequence[str]],
    label: str,
    *,
    axes: tuple[str, str] | None = None,
) -> str:
    """Draw cells as dark as their values in [0, 1], NaN as empty cells. `axes` are the names of rows and columns."""
    longest = max([_long(short(name)) for name in columns], default=0)
    left = 12 + max([_long(short(name)) for name in rows], default=0) + (14 if axes else 0)
    # slanted labels need room to the right of the last column; without it, labels are vertical
    slanted, vertical = (
        min(46.0, (WIDTH - left - 4 - beyond) / max(len(columns), 1)) for beyond in (0.7 * longest, 0.0)
    )
    steep = slanted < 26
    side = vertical if steep else slanted
    top = 12 + (18 if axes else 0) + (longest if steep else 0.72 * longest)
    height = top + side * len(rows) + 4
    size = min(10.0, side * 0.36)
    parts = []
    if axes:
        middle = left + side * len(columns) / 2
        parts.append(_text(middle, 11, axes[1], anchor="middle"))
        parts.append(_text(10, top + side * len(rows) / 2, axes[0], anchor="middle", turn=-90))
    for j, name in enumerate(columns):
        x = left + side * (j + 0.5) + (4 if steep else 2)
        parts.append(_text(x, top - 5, short(name), anchor="start", turn=-90 if steep else -45, title=name))
    for i, name in enumerate(rows):
        y = top + side * i
        parts.append(_text(left - 6, y + side / 2 + 4, short(name), anchor="end", title=name))
        for j, text in enumerate(texts[i]):
            value, x = values[i, j], left + side * j
            if np.isfinite(value):
                shade = 0.5 * min(max(float(value), 0.0), 1.0) + 0.02  # not darker, so that numbers are legible
                hint = f"<title>{escape(name)}, {escape(columns[j])}: {escape(text)}</title>"
                parts.append(
                    f'<rect class="cell" x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" '
                    f'fill-opacity="{shade:.3f}">{hint}</rect>'
                )
            if size >= 7 or len(text) <= 2:  # smaller numbers are not legible
                parts.append(_text(x + side / 2, y + side / 2 + size * 0.36, text, anchor="middle", size=size))
    return _svg(parts, height, label)


def intervals(rows: Sequence[tuple[str, float, float, float]], label: str, *, percent: bool = False) -> str:
    """Draw a dot and an interval for each name, with a line at 0; without an interval if its ends are not finite."""
    lows, highs = [r[2] for r in rows if np.isfinite(r[2])], [r[3] for r in rows if np.isfinite(r[3])]
    low, high = min([0.0, *lows, *(r[1] for r in rows)]), max([0.0, *highs, *(r[1] for r in rows)])
    left = 12 + max(_long(short(r[0])) for r in rows)
    axis = _Axis(low, high, left, WIDTH - 14)
    step, top = 26, 8
    parts, bottom = _ticks(axis, top, top + step * len(rows), percent=percent)
    parts.append(_line("zero", axis(0), top, axis(0), bottom))
    for k, (name, mean, lower, upper) in enumerate(rows):
        y = top + step * (k + 0.5)
        parts.append(_text(left - 6, y + 4, short(name), anchor="end", title=name))
        if np.isfinite(lower) and np.isfinite(upper):
            parts.append(_line("bar", axis(lower), y, axis(upper), y))
        parts.append(_circle("dot", axis(mean), y, 4))
    summary = "; ".join(
        f"{name} {mean:.3g}" + (f" ({lower:.3g} to {upper:.3g})" if np.isfinite(lower) else "")
        for name, mean, lower, upper in rows
    )
    return _svg(parts, bottom + 22, f"{label}: {summary}")


def bars(rows: Sequence[tuple[str, float]], label: str, *, percent: bool = False, most: int = 14) -> str:
    """Draw a bar from 0 for each name, of which the first characters are shown."""
    left = 12 + max(_long(short(name, most)) for name, _ in rows)
    axis = _Axis(0.0, max([value for _, value in rows] + [1e-12]), left, WIDTH - 40)
    parts, step = [], 24
    for k, (name, value) in enumerate(rows):
        y = 6 + step * k
        parts.append(_text(left - 6, y + 14, short(name, most), anchor="end", title=name))
        long = max(axis(value) - left, 0.5)
        parts.append(f'<rect class="cell" x="{left:.1f}" y="{y}" width="{long:.1f}" height="{step - 7}"/>')
        shown = f"{100 * value:.0f}%" if percent else f"{value:.3g}"
        parts.append(_text(axis(value) + 5, y + 13, shown, anchor="start"))
    summary = "; ".join(f"{name} {value:.3g}" for name, value in rows)
    return _svg(parts, 8 + step * len(rows), f"{label}: {summary}")


def lines(
    curves: Sequence[tuple[str, np.ndarray, str]],
    label: str,
    *,
    x_name: str,
    y_name: str,
    band: np.ndarray | None = None,
    log: bool = False,
    square: bool = False,
    dots: bool = True,
    y_from: float | None = None,
    y_to: float | None = None,
    marks: Sequence[float] = (),
) -> str:
    """Draw curves (name, points, CSS class), with a band (x, low, high) behind them and vertical lines at `marks`.

    The x axis may be logarithmic.
    """
    points = np.concatenate([curve[np.isfinite(curve).all(axis=1)][:, :2] for _, curve, _ in curves])
    lows = [points[:, 1].min()] + ([] if band is None else [np.nanmin(band[:, 1])])
    highs = [points[:, 1].max()] + ([] if band is None else [np.nanmax(band[:, 2])])
    low, high = (min(lows) if y_from is None else y_from), (max(highs) if y_to is None else y_to)
    top, bottom = 10, (306 if square else 210)
    if square:  # the same range on both axes
        low, high = min(low, points[:, 0].min()), max(high, points[:, 0].max())
    up = _Axis(low, high, bottom, top)
    left = up.room()
    start, stop = (low, high) if square else (points[:, 0].min(), points[:, 0].max())
    across = _Axis(start, stop, left, WIDTH - 14, log=log)
    parts = _frame(across, up, left, top, bottom, x_name, y_name)

    def placed(points: Iterable[Sequence[float]]) -> list[tuple[float, float]]:
        # values beyond the range of the axis are drawn on its border
        return [(across(x), min(max(up(y), top), bottom)) for x, y in points]

    if band is not None:
        there = band[np.isfinite(band).all(axis=1)]
        edge = [(x, high) for x, _, high in there] + [(x, low) for x, low, _ in there[::-1]]
        parts.append(f'<polygon class="band" points="{_path(placed(edge))}"/>')
    parts += [_line("best", across(x), top, across(x), bottom) for x in marks]
    for _, curve, kind in curves:
        kept = placed(curve[np.isfinite(curve).all(axis=1)][:, :2])
        parts.append(f'<polyline class="line {kind}" points="{_path(kept)}"/>')
        if dots and kind != "ideal" and len(kept) <= 40:
            parts += [_circle(f"dot {kind}", x, y, 3) for x, y in kept]
    height = bottom + 44
    for k, (name, _, kind) in enumerate(curves if len(curves) > 1 else []):
        y = height + 16 * k
        parts.append(_line(f"line {kind}", left, y, left + 28, y))
        parts.append(_text(left + 34, y + 4, name, anchor="start"))
    return _svg(parts, height + 16 * (len(curves) if len(curves) > 1 else 0), label)


def scatter(x_values: np.ndarray, y_values: np.ndarray, label: str, *, x_name: str, y_name: str) -> str:
    """Draw at most 1,500 points, and the diagonal."""
    low, high = float(min(x_values.min(), y_values.min())), float(max(x_values.max(), y_values.max()))
    up = _Axis(low, high, 306, 10)
    across = _Axis(low, high, up.room(), WIDTH - 14)
    parts = _frame(across, up, up.room(), 10, 306, x_name, y_name)
    parts.append(_line("line ideal", across(low), up(low), across(high), up(high)))
    step = max(1, len(x_values) // 1500)  # more points only make the file larger
    pairs = zip(x_values[::step], y_values[::step], strict=True)
    parts += [_circle("point", across(x), up(y), 2.2) for x, y in pairs]
    return _svg(parts, 350, label)


def calibration(bins: np.ndarray, ends: np.ndarray, label: str, *, x_name: str, y_name: str) -> str:
    """Draw means (x, y, count) with intervals (low, high) of y and the diagonal, and the counts as bars below."""
    up, top, bottom = _Axis(0.0, 1.0, 240, 10), 10, 240
    left = up.room()
    across = _Axis(0.0, 1.0, left, WIDTH - 14)
    parts = _frame(across, up, left, top, bottom, x_name, y_name)
    parts.append(_line("line ideal", across(0), up(0), across(1), up(1)))
    base, room, most = 330, 36, float(bins[:, 2].max())
    parts.append(_line("zero", left, base, WIDTH - 14, base))
    for (x, y, count), (low, high) in zip(bins.tolist(), ends.tolist(), strict=True):
        parts.append(_line("bar", across(x), up(low), across(x), up(high)))
        parts.append(_circle("dot", across(x), up(y), 4))
        middle = min(int(x * 10), 9) / 10 + 0.05  # of the bin that the mean is in
        wide, tall = 0.8 * (across(0.1) - across(0)), max(room * count / most, 0.5)
        start = across(middle) - wide / 2
        parts.append(
            f'<rect class="cell" x="{start:.1f}" y="{base - tall:.1f}" width="{wide:.1f}" height="{tall:.1f}"/>'
        )
        shown = f"{count:,.0f}" if count < 10_000 else f"{count / 1000:,.0f}k"
        parts.append(_text(across(middle), base - tall - 3, shown, anchor="middle", size=9))
    parts.append(_text(11, base - room / 2, "samples", anchor="middle", turn=-90, size=9))
    summary = "; ".join(f"{x:.2f}: {y:.2f} of {count:.0f}" for x, y, count in bins.tolist())
    return _svg(parts, base + 6, f"{label}: {summary}")


MINI = 150  # width of a chart in a cell of a table


def mini_interval(mean: float, low: float, high: float, least: float, most: float, best: float | None = None) -> str:
    """Draw an interval in a cell of a table, with a line at the best score."""
    axis = _Axis(least, most, 6, MINI - 6, pad=0.0)
    drawn = "" if best is None else _line("best", axis(best), 0, axis(best), 16)
    if np.isfinite(low) and np.isfinite(high):
        drawn += _line("bar", axis(max(low, least)), 8, axis(min(high, most)), 8)
    drawn += _circle("dot", axis(mean), 8, 4)
    return f'<svg class="mini" viewBox="0 0 {MINI} 16" aria-hidden="true">{drawn}</svg>'


def mini_axis(least: float, most: float, *, percent: bool = False) -> str:
    """Draw the axis of intervals in the cells of a column."""
    axis = _Axis(least, most, 6, MINI - 6, pad=0.0)
    drawn, free = _line("grid", 6, 2, MINI - 6, 2), -np.inf
    for value in axis.ticks():
        text = f"{100 * value:.3g}" if percent else axis.text(value)
        half = _long(text) * 5 / 11  # at font size 10
        x = axis(value)
        drawn += _line("grid", x, 0, x, 5)
        at = min(max(x, half), MINI - half)  # within the cell
        if at - half > free:
            drawn += _text(at, 14, text, anchor="middle", size=10)
            free = at + half + 4
    return f'<svg class="mini" viewBox="0 0 {MINI} 16" aria-hidden="true">{drawn}</svg>'


def short(name: str, most: int = 14) -> str:
    """Return a name shortened to the width of a chart's margin."""
    return name if len(name) <= most else name[: most - 1] + "…"


# -- pieces
class _Axis:
    """Map from values to positions, linear or logarithmic."""

    def __init__(self, low: float, high: float, start: float, stop: float, *, log: bool = False, pad: float = 0.03):
        self.log = log and low > 0
        a, b = (np.log10(low), np.log10(high)) if self.log else (float(low), float(high))
        room = (b - a) * pad or max(abs(a) * 0.05, 1e-9)
        self.low, self.high = (a - room, b + room) if pad or a == b else (a, b)
        self.start, self.stop = start, stop

    def __call__(self, value: float) -> float:
        number = np.log10(value) if self.log else value
        return float(self.start + (number - self.low) / (self.high - self.low) * (self.stop - self.start))

    def ticks(self) -> list[float]:
        """Return 3 to 6 round numbers along the axis."""
        if self.log:
            first, last = int(np.floor(self.low)), int(np.ceil(self.high))
            few = int(np.floor(self.high)) - int(np.ceil(self.low)) < 2  # powers of ten along the axis
            values = [m * 10.0**p for p in range(first, last + 1) for m in ((1, 2, 5) if few else (1,))]
            return [v for v in values if self.low <= np.log10(v) <= self.high]
        span = self.high - self.low
        step = 10.0 ** np.floor(np.log10(span / 3))
        step *= next((m for m in (1, 2, 5, 10) if span / (step * m) <= 6), 10)
        first = np.ceil(self.low / step)
        self.step = step
        return [float(step * (first + k)) for k in range(int((self.high / step - first) + 1e-9) + 1)]

    def text(self, value: float) -> str:
        """Return a tick's number with as many digits as the step between ticks needs."""
        if self.log:
            return f"{value:,.0f}"
        largest = max(abs(self.low), abs(self.high))
        digits = max(0, int(np.ceil(-np.log10(self.step) - 1e-9)))
        if digits <= 4 and largest < 1e5:
            return f"{value + 0.0:,.{digits}f}"
        return f"{value:.{max(1, int(np.ceil(np.log10(largest / self.step))) + 1)}g}"

    def room(self) -> float:
        """Return the width that the numbers and the name of a vertical axis take."""
        return 24 + max([_long(self.text(value)) for value in self.ticks()], default=0.0)


def _frame(across: _Axis, up: _Axis, left: float, top: float, bottom: float, x_name: str, y_name: str) -> list[str]:
    """Draw grid, numbers and names of two axes."""
    parts, _ = _ticks(across, top, bottom)
    for value in up.ticks():
        y = up(value)
        parts.append(_line("grid", left, y, WIDTH - 14, y))
        parts.append(_text(left - 4, y + 4, up.text(value), anchor="end"))
    parts.append(_text((left + WIDTH - 14) / 2, bottom + 34, x_name, anchor="middle"))
    parts.append(_text(11, (top + bottom) / 2, y_name, anchor="middle", turn=-90))
    return parts


def _ticks(axis: _Axis, top: float, bottom: float, *, percent: bool = False) -> tuple[list[str], float]:
    """Draw lines and numbers of a horizontal axis, without numbers that would overlap the previous one."""
    parts, free = [], -np.inf
    for value in axis.ticks():
        x = axis(value)
        parts.append(_line("grid", x, top, x, bottom))
        shown = f"{100 * value:.3g}%" if percent else axis.text(value)
        half = _long(shown) / 2
        if x - half > free and x + half < WIDTH + 4:
            parts.append(_text(x, bottom + 15, shown, anchor="middle"))
            free = x + half + 5
    return parts, bottom


def _long(text: str) -> float:
    """Return the approximate width of a text at font size 11."""
    wide, narrow = "WMmw@%", "iljt.,:;'| I"
    return sum(12.0 if ord(c) > 0x2E80 else 10.0 if c in wide else 3.6 if c in narrow else 6.7 for c in text)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _circle(kind: str, x: float, y: float, radius: float) -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'


def _path(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _text(
    x: float, y: float, text: str, *, anchor: str, kind: str = "label", turn: int = 0, size: float = 11, title: str = ""
) -> str:
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    hint = f"<title>{escape(title)}</title>" if title and title != text else ""
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:.1f}"{turned}>'
        f"{hint}{escape(text)}</text>"
    )


def _svg(parts: Sequence[str], height: float, label: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )
