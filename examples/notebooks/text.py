"""
Text
====

Posts to eight newsgroups of 1993, and later ones to test on: which group does a post belong to, and which
words say so? The posts ship with the project, as JSON lines: ``{"group": "sci.space", "text": "..."}``.
"""

# %%
# Eight groups
# ------------
#
# ``text=`` splits a column into words. Labels may be words too.

from pathlib import Path

import thresher

DATA = next(p / "examples" / "data" for p in (Path.cwd(), *Path.cwd().parents) if (p / "examples").is_dir())
train, test = DATA / "newsgroups_train.jsonl.gz", DATA / "newsgroups_test.jsonl.gz"

model = thresher.train(train, label="group", text="text", names=True)
figures = thresher.evaluate(model, test)
print(f"{figures['error']:.1%} wrong, {figures['base_error']:.1%} if one always says the same group")
print(f"{model.nonzero:,} weights for {model.features_seen:,} words and {len(model.classes)} groups")

# %%
# The heaviest words of each group:

weights = model.weights_frame()
print(weights.head())

# %%
# Why this group?
# ---------------
#
# The margin of a group is the sum of its words' weights, so each prediction can be taken apart.

post = [{"text": "The shuttle reached its orbit, but NASA lost the encrypted telemetry"}]
print(model.predict(post, output="label")[0])
reasons = model.explain(post, top=3)[0]
for feature in reasons["features"]:
    print(f"{feature['feature']:18} sci.space {feature['contribution']['sci.space']:+.2f}")

# %%
# Pairs of words
# --------------
#
# ``ngrams="words=1-2"`` adds pairs of neighbours. There are more than five times as many features, twice as
# many weights, and no fewer mistakes: with 1,600 posts, words alone are enough.

pairs = thresher.train(train, label="group", text="text", ngrams="words=1-2", names=True)
print(f"{thresher.evaluate(pairs, test)['error']:.1%} wrong, {pairs.nonzero:,} of {pairs.features_seen:,}")

# %%
# How few words are enough?
# -------------------------

frontier = thresher.path(train, label="group", text="text", holdout=0.2)
frontier

# %%
# A model of at most 300 weights, and what it costs:

small = frontier.model("nnz:300")
print(f"{small.nonzero} weights: {thresher.evaluate(small, test)['error']:.1%} wrong")
