"""The frontier as a picture: loss against number of weights, as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable

from thresher.lanes.frontier import Point

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 440, 70, 20, 30, 55
_INK, _LINE, _DOT, _CHOSEN = "#444444", "#1b6ca8", "#9cc3dd", "#c0562b"
Axis = Callable[[float], float]
Ends = tuple[float, float]


def measure_of(points: list[Point]) -> str:
    """The name of the loss that is drawn and used for choosing."""
    return "held-out loss" if any(point.holdout for point in points) else "progressive loss"


def drawn(point: Point) -> float | None:
    """The loss of a point, or None if it cannot be drawn."""
    return point.loss if point.loss < math.inf else None


def picture(points: list[Point], chosen: int) -> str:
    """The SVG. The axis of weights is logarithmic, with 0 in the place of 1 / 2."""
    shown = [(max(p.nonzero, 0.5), e, k) for k, p in enumerate(points) if (e := drawn(p)) is not None]
    weights, figures = _ends([w for w, _, _ in shown] or [1.0]), _ends([e for _, e, _ in shown] or [0.0])
    x, y = _x_axis(*weights), _y_axis(*figures)
    line = [(x(w), y(e)) for w, e in unbeaten([(w, e) for w, e, _ in shown])]
    body = [
        *_frame(measure_of(points), x, y, weights, figures),
        f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in line)}" fill="none" stroke="{_LINE}"'
        ' stroke-width="2"/>',
        *(_dot(x(w), y(e), points[k], k == chosen) for w, e, k in shown),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}"'
        f' viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12" fill="{_INK}">'
    )
    background = f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>'
    return "\n".join([head, background, *body, "</svg>", ""])


def unbeaten(places: list[Ends]) -> list[Ends]:
    """The Pareto front, in order of the first coordinate: no other point is lower in both."""
    found: list[Ends] = []
    for place in sorted(places):
        if not found or place[1] < found[-1][1]:
            found.append(place)
    return found


def _ends(values: list[float]) -> Ends:
    return min(values), max(values)


def _x_axis(low: float, high: float) -> Axis:
    first, last = math.log10(low), math.log10(max(high, 2 * low))
    return lambda value: _LEFT + (math.log10(value) - first) / (last - first) * (_WIDTH - _LEFT - _RIGHT)


def _y_axis(low: float, high: float) -> Axis:
    span = (high - low) or abs(high) or 1.0
    first, last = low - 0.05 * span, high + 0.05 * span
    return lambda value: _HEIGHT - _BOTTOM - (value - first) / (last - first) * (_HEIGHT - _TOP - _BOTTOM)


def _frame(measure: str, x: Axis, y: Axis, weights: Ends, figures: Ends) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    found = [f'<path d="M{_LEFT},{_TOP}V{bottom}H{right}" fill="none" stroke="{_INK}"/>']
    for tick in _ticks(*weights):
        found.append(f'<text x="{x(tick):.1f}" y="{bottom + 18}" text-anchor="middle">{tick:,.0f}</text>')
        found.append(f'<path d="M{x(tick):.1f},{bottom}v5" stroke="{_INK}"/>')
    for value in round_between(*figures):
        found.append(f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>')
        found.append(f'<path d="M{_LEFT - 4},{y(value):.1f}h4" stroke="{_INK}"/>')
    below = f'<text x="{(_LEFT + right) / 2:.0f}" y="{_HEIGHT - 12}" text-anchor="middle">'
    found.append(f"{below}weights that are not zero</text>")
    found.append(f'<text x="{_LEFT}" y="{_TOP - 12}">{measure}; the large dot is the one chosen</text>')
    return found


def round_between(low: float, high: float) -> list[float]:
    """Four to nine round numbers between `low` and `high`; one if these are equal.

    >>> round_between(0.0739, 0.3891)
    [0.1, 0.15, 0.2, 0.25, 0.3, 0.35]
    """
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = max(one * power for one in (1.0, 2.0, 5.0) if one * power <= (high - low) / 4)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten; if these are few, also 2 and 5 times them; if there are none, the ends."""
    powers = [10.0**k for k in range(12)]
    steps = powers if high > 100 * low else [step * power for power in powers for step in (1, 2, 5)]
    return [tick for tick in steps if low <= tick <= high] or [max(low, 1.0), high]


def _dot(x: float, y: float, point: Point, chosen: bool) -> str:
    color, radius = (_CHOSEN, 6) if chosen else (_DOT, 4)
    told = f"{point.spec}: {point.nonzero:,} weights, loss {point.loss:.6g}"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color}"><title>{told}</title></circle>'
