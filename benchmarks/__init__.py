"""Speed, memory and accuracy beside other learners, in one run: ``python -m benchmarks --help``.

One module a subject, each with ``run(setting)``; `measure` takes times, `report` prints, `loads` makes
the data, `peers` are the other learners, `limits` is the same work in plain C.
"""
