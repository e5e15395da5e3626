"""Pictures as SVG: charts of lines, dots and bands. Knows nothing of models."""

from thresher.drawing.charts import Panel, Series, chart, panels
from thresher.drawing.scales import Axis
from thresher.drawing.svg import STYLESHEET

__all__ = ["STYLESHEET", "Axis", "Panel", "Series", "chart", "panels"]
