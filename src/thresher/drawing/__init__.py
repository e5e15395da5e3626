"""Pictures as SVG: charts of lines, dots and bands, and bars with names. Knows nothing of models."""

from thresher.drawing.charts import Bar, Panel, Series, bars, chart, panels
from thresher.drawing.scales import Axis
from thresher.drawing.svg import STYLESHEET

__all__ = ["STYLESHEET", "Axis", "Bar", "Panel", "Series", "bars", "chart", "panels"]
