"""The report: one self-contained HTML page about a model. Knows nothing of the command line."""
