"""``python -m thresher`` is the command ``thresher``."""

from thresher.cli.main import run

run()
