"""Phishing sites, one by one, with river's data, metrics and evaluation.

Run it: ``python examples/river_phishing.py``.

The classifier of thresher stands where a linear model of river would. No scaler is needed, a penalty makes
weights exactly zero, and a frame of rows gives the same model as one row after the other.
"""

import pandas as pd
from river import datasets, evaluate, metrics

from thresher.river import Classifier

print(evaluate.progressive_val_score(datasets.Phishing(), Classifier(), metrics.ROCAUC()))

sparse = Classifier(l1=3.0)
print("with l1=3:", evaluate.progressive_val_score(datasets.Phishing(), sparse, metrics.ROCAUC()))
print(f"{sparse.model.nonzero} of {sparse.model.features_seen} features have a weight")

rows, labels = zip(*datasets.Phishing(), strict=True)
at_once, one_by_one = Classifier(), Classifier()
at_once.learn_many(pd.DataFrame(rows), pd.Series(labels))
for row, label in zip(rows, labels, strict=True):
    one_by_one.learn_one(row, label)
same = (at_once.model.weights()[1] == one_by_one.model.weights()[1]).all()
print("a frame at once:", "the same model" if same else "another model")
