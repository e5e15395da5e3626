"""Colours and the stylesheet of all pictures: light, dark, and light on paper."""

from __future__ import annotations

PAPER, INK, FAINT, GRID = "paper", "ink", "faint", "grid"
SERIES = ("c1", "c2", "c3", "c4", "c5", "c6")
"""colours that series take in turn; c0 is grey, for what stays behind"""
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2")
"""of lines, so that they differ without colour too"""
NAMES = (PAPER, INK, FAINT, GRID, "c0", *SERIES)
_LIGHT = "#ffffff #1f2328 #57606a #d8dee4 #767d86 #1b6ca8 #b8491c #23774a #8644a0 #856300 #b02a5b"
_DARK = "#14181d #e6eaef #a3adb8 #333b45 #8d97a3 #6db3e8 #f29a6f #6cc998 #cda0e6 #d9b84a #f58bb0"
LIGHT = dict(zip(NAMES, _LIGHT.split(), strict=True))
DARK = dict(zip(NAMES, _DARK.split(), strict=True))
_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"


def _colours(scheme: dict[str, str]) -> str:
    return ".thresher-chart{" + ";".join(f"--chart-{name}:{colour}" for name, colour in scheme.items()) + "}"


def _paint(kind: str, what: str, colour: str, more: str = "") -> str:
    """A CSS rule. The plain colour comes first, for programs that do not support custom properties."""
    return f".thresher-chart {kind}{{{what}:{LIGHT[colour]};{what}:var(--chart-{colour}){more}}}"


def _stylesheet() -> str:
    rules = [
        _colours(LIGHT),
        f"@media (prefers-color-scheme:dark){{{_colours(DARK)}}}",
        f"@media print{{{_colours(LIGHT)}}}",
        f".thresher-chart text{{font:13px {_FONT};stroke:none}}",
        ".thresher-chart path{fill:none}",
        _paint(".paper", "fill", PAPER),
        _paint("text", "fill", INK),
        _paint("text.tick", "fill", FAINT, ";font-size:12px;font-variant-numeric:tabular-nums"),
        ".thresher-chart text.head{font-size:15px;font-weight:600}.thresher-chart text.sub{font-weight:600}",
        _paint(".grid", "stroke", GRID),
        _paint(".axis", "stroke", FAINT),
        _paint(".reference", "stroke", FAINT, ";stroke-width:1.2;stroke-dasharray:5 4"),
        _paint(".strip", "fill", "c0"),
        ".thresher-chart .line{stroke-width:2;stroke-linejoin:round;stroke-linecap:butt}",
        ".thresher-chart .thin{stroke-width:1.3}.thresher-chart .strong{stroke-width:3}",
        ".thresher-chart .area{opacity:.2}",
        *(f".thresher-chart .line.d{k}{{stroke-dasharray:{dash}}}" for k, dash in enumerate(DASHES) if dash),
    ]
    for colour in ("c0", *SERIES):
        rules += [
            _paint(f".line.{colour},.thresher-chart .whisker.{colour}", "stroke", colour),
            _paint(
                f".mark.{colour},.thresher-chart .area.{colour},.thresher-chart .bar.{colour}", "fill", colour
            ),
        ]
    rules += [_paint(".mark", "stroke", PAPER)]
    return "\n" + "\n".join(rules) + "\n"


STYLESHEET = _stylesheet()
"""What a page holds once that embeds pictures made with ``style=False``."""
