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
print(f"{figures['error']:.1%} wrong, {figures['base_error']:.1%} by always naming the same group")
print(f"{model.nonzero:,} weights for {model.features_seen:,} words and {len(model.classes)} groups")

# %%
# The words that speak most for each group:

weights = model.weights_frame()
for group, heaviest in weights[weights.weight > 0].groupby("output"):
    print(f"{group:22}", ", ".join(heaviest.feature.str.removeprefix("text=")[:5]))

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
# ``ngrams="words=1-2"`` adds pairs of neighbours. There are more than five times as many features, nearly
# twice as many weights, and no fewer mistakes: with 1,600 posts, words alone are enough.

pairs = thresher.train(train, label="group", text="text", ngrams="words=1-2", names=True)
print(f"{thresher.evaluate(pairs, test)['error']:.1%} wrong, {pairs.nonzero:,} of {pairs.features_seen:,}")

# %%
# How few words are enough?
# -------------------------

frontier = thresher.path(train, label="group", text="text", holdout=0.2, l1="0.25:4:10")
frontier

# %%
# Here, the more the better: eight groups share 11,735 words, most of them rare, and every stronger penalty
# costs something. What a budget costs on the later posts:

for budget in (10_000, 3_000, 1_000, 300):
    small = frontier.choose(f"nnz:{budget}")
    error = thresher.evaluate(small, test)["error"]
    print(f"at most {budget:6,}: {small.nonzero:5,} weights, {error:.1%} wrong")

# %%
# The question for one group, ``sci.crypt`` or not, is another matter: there 10 words make hardly more
# mistakes than 357. *Start here*, the first page of this documentation, shows it.
