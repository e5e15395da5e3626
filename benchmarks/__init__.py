"""Speed, memory and accuracy compared with other learners: ``python -m benchmarks --help``.

Each subject has a module with ``run(setting)``. `measure` takes the times, `report` prints, `loads` generates
the data, `peers` runs the other learners, and `limits` does the same work in plain C.
"""
