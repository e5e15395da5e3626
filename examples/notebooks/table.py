"""
A small table
=============

569 tumours, 30 measurements of each: malignant or benign? With so few rows, three questions matter more than
speed: is the figure we quote right, which columns are needed, and how sure is a single prediction?

The table is the one of Wolberg, Street and Mangasarian that ships with scikit-learn.
"""

# %%
# A figure to quote
# -----------------
#
# Ten folds are learned side by side, for sixteen penalties. Columns need no scaling: the default rule
# measures them itself. ``order="once"`` shuffles the rows.

from sklearn.datasets import load_breast_cancer

import thresher

table = load_breast_cancer(as_frame=True).frame
judged = thresher.cv(table, label="target", order="once")
judged

# %%
# The starred row is the best of sixteen on the same folds, so a little optimistic; its neighbours, and the
# standard errors, show by how little.

# %%
# Which columns?
# --------------
#
# A sparse model always keeps some columns. Would it keep the same columns on other patients?
# ``thresher.select`` learns from many halves of the rows, and keeps what survives in most of them.

selection = thresher.select(table, label="target", order="once", names=True, bags=32, false=1)
selection

# %%
# Columns that say nearly the same, such as radius, perimeter and area of a cell, take each other's place
# from half to half: that one of them is not kept does not mean that it is of no use.

# %%
# How sure is it?
# ---------------
#
# Thirty-two models of bootstrap samples disagree where the table says little. We hold out every fifth
# patient.

test, train = table[::5], table.drop(table.index[::5])
models = thresher.ensemble(train, models=32, label="target", order="once")
intervals = models.interval(test, level=0.9)
print("probability of a benign tumour, and its interval")
for (probability, low, high), label in list(zip(intervals, test.target, strict=True))[:8]:
    print(f"{probability:.3f}  {low:.3f} to {high:.3f}   {'benign' if label else 'malignant'}")

# %%
# What an interval is good for: a doctor looks again at each patient whose interval holds one half.

doubtful = (intervals[:, 1] < 0.5) & (intervals[:, 2] > 0.5)
wrong = (intervals[:, 0] > 0.5) != (test.target == 1)
print(f"{doubtful.sum()} of {len(test)} are looked at again")
print(f"{wrong.sum()} predictions are wrong, {(wrong & doubtful).sum()} of them among these")

# %%
# Beside scikit-learn
# -------------------
#
# The estimators fit into pipelines and searches. For such a table, one would usually take a batch solver
# with its penalty chosen by cross-validation, on standardised columns:

from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from thresher.sklearn import SparseOnlineClassifier

X, y, X_test = train.drop(columns="target"), train.target, test.drop(columns="target")
ours = SparseOnlineClassifier(random_state=0).fit(X, y)
batch = LogisticRegressionCV(
    l1_ratios=(1,), solver="liblinear", scoring="neg_log_loss", use_legacy_attributes=False, random_state=0
)
theirs = make_pipeline(StandardScaler(), batch).fit(X, y)
for name, fitted in (("thresher, nothing chosen", ours), ("LIBLINEAR, penalty chosen", theirs)):
    print(f"{name:26} log loss {log_loss(test.target, fitted.predict_proba(X_test)):.4f}")

# %%
# On 114 patients that is no difference; the benchmarks compare the two on eight such tables.
