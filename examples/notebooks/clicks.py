"""
Click logs
==========

A log of ad views comes in daily files: which ad was shown on which site at what hour, and whether it was
clicked. We want the probability of a click, from a model that is small, and that goes on learning when the
next day arrives.

Real logs are large and private, so this one is made: four days of 20,000 views. That has an advantage. The
true probability of each click is known, so we can see how close the model comes.
"""

# %%
# The log
# -------

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import thresher

folder = Path(tempfile.mkdtemp())
random = np.random.default_rng(1)
SITES, ADS, USERS, VIEWS = 8, 60, 5_000, 20_000

of_site = random.normal(0, 0.5, SITES)
of_ad = random.normal(0, 0.7, ADS)
together = np.where(random.random((SITES, ADS)) < 0.1, 2.0, 0.0)  # some ads do well on some sites
chance = {}
for day in range(1, 5):
    site, ad = random.integers(SITES, size=VIEWS), (ADS * random.random(VIEWS) ** 2).astype(int)
    hour, user = random.integers(24, size=VIEWS), random.integers(USERS, size=VIEWS)
    margin = -3 + of_site[site] + of_ad[ad] + together[site, ad] + 0.4 * ((hour > 18) & (hour < 23))
    chance[day] = 1 / (1 + np.exp(-margin))
    log = pd.DataFrame(
        {
            "click": (random.random(VIEWS) < chance[day]).astype(int),
            "site": [f"site {k}" for k in site],
            "ad": [f"ad {k}" for k in ad],
            "hour": [f"{k} h" for k in hour],
            "user": [f"user {k}" for k in user],
        }
    )
    log.to_parquet(folder / f"day-{day}.parquet")
print(log.head())
print(f"share of clicks: {log.click.mean():.4f}")

# %%
# A model with nothing chosen
# ---------------------------
#
# Columns of text are categorical: each value becomes a feature. ``names=True`` keeps their names. Data on
# disk are read as they are, and never have to fit in memory.

days = [str(folder / f"day-{day}.parquet") for day in (1, 2, 3)]
model = thresher.train(days, label="click", names=True)
model

# %%
# There are more than five thousand different values, and most of them, above all the users, tell nothing
# about clicks. At its default strength, ``l1=1``, the penalty keeps out only half of them; we shall come to
# that.
#
# How good is the model on a day that it has not seen? The log loss of the true probabilities is the limit.

tomorrow = str(folder / "day-4.parquet")
clicked = pd.read_parquet(tomorrow).click.to_numpy()


def log_loss(p: np.ndarray) -> float:
    """The mean log loss of the last day."""
    return float(-np.log(np.where(clicked, p, 1 - p)).mean())


def compare(model: thresher.Model) -> None:
    """Print how close the model is to the truth."""
    none, ours = log_loss(np.full(VIEWS, clicked.mean())), log_loss(model.predict_proba(tomorrow)[:, 1])
    possible = none - log_loss(chance[4])
    share = (none - ours) / possible
    print(f"log loss {ours:.4f}: {share:.0%} of what there is to know, {model.nonzero} weights")


compare(model)

# %%
# Ads on sites
# ------------
#
# A linear model adds the effect of the site to that of the ad. That some ads do well on *some* sites, it
# can only learn from features for pairs.

pairs = thresher.train(days, label="click", interact="site,ad", names=True)
compare(pairs)

# %%
# As small as it gets
# -------------------
#
# ``thresher.path`` learns sixteen penalties in one reading, and judges them on rows that are held out: here
# the last fifth, which is the newest. A star marks the one it chooses.

frontier = thresher.path(days, label="click", interact="site,ad", holdout="last:0.2")
frontier

# %%
# Others can be chosen by their size, or as the smallest whose loss is within 1 % of the best.

small = frontier.choose("within:1%")
compare(small)

# %%
# The penalty did more than make the model small: without the weights of thousands of users, which were
# noise, it is also a little closer to the truth.
#
# What speaks for a click most? Of the 47 pairs that we made, these eight:

thresher.name_features(small, days)
frame = small.weights_frame()
frame[frame.weight > 0].head(8)

# %%
# Are the probabilities right?
# ----------------------------
#
# An auction needs more than a ranking: of the views with a probability of 0.1, a tenth should be clicked.

p = small.predict_proba(tomorrow)[:, 1]
for low, high in ((0, 0.03), (0.03, 0.06), (0.06, 0.12), (0.12, 1)):
    here = (p >= low) & (p < high)
    predicted, observed, truth = p[here].mean(), clicked[here].mean(), chance[4][here].mean()
    print(f"predicted {predicted:.3f}  clicked {observed:.3f}  truth {truth:.3f}")

# %%
# Nearly: right in the middle, and too low at both ends. Below 3 % the model says 2.1 % on average, and the
# truth is 2.9 %: pairs that happened to have no click in three days have weights that are too low.

# %%
# Go on tomorrow
# --------------
#
# The model keeps all that learning needs. When the fourth day is over, it goes on, and becomes the model
# that all four days would have made, bit for bit.

first = thresher.train(days, label="click", interact="site,ad", passes=1)
tonight = thresher.train(tomorrow, continue_from=first, passes=1)
at_once = thresher.train([*days, tomorrow], label="click", interact="site,ad", passes=1)
print(tonight.weights_frame().equals(at_once.weights_frame()))
shutil.rmtree(folder)
