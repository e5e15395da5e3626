"""Loss against non-zero weights: the default rule's `l1` on six data sets, with a picture. Needs --data."""

from __future__ import annotations

from pathlib import Path

from benchmarks import report
from benchmarks.corpora import Corpus, corpora
from benchmarks.defaults import BATCH, OURS, Result, learners, online, ours
from benchmarks.report import Goal
from benchmarks.setting import Setting

SETS = ("RCV1-CCAT", "Criteo hashed", "IMDB words", "books", "w8a", "spambase")
STEPS = (0.5, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
PEERS = (BATCH, "vw", "vw --coin")
PICTURE = Path(__file__).parent.parent / "build" / "frontier.svg"
Points = dict[str, Result]


def run(setting: Setting) -> list[Goal]:
    """Train on each set with each `l1`, print and draw."""
    found = {}
    for corpus in corpora():
        if setting.data is not None and corpus.name in SETS and corpus.found(setting.data):
            found[corpus.name] = points(corpus, setting.data)
    if found:
        names = list(next(iter(found.values())))
        rows = [(one, *(f"{p[n].loss:.4g} @ {p[n].nonzero:,}" for n in names)) for one, p in found.items()]
        report.table("the default's l1, nothing else chosen: test loss @ weights", ("", *names), rows)
    if len(found) == len(SETS):
        draw(found, PICTURE)
        print(f"picture: {PICTURE}")
    return []


def points(corpus: Corpus, folder: Path) -> Points:
    """Score one set: the default rule with each `l1`, then its peers with their defaults."""
    parts, known = corpus.load(folder), learners() | online()
    found = {f"l1={step:g}": ours(corpus, parts, rule=f"ft-ftrl:l1={step}") for step in STEPS}
    return found | {name: known[name](corpus, parts) for name in PEERS if name in known}


def draw(found: dict[str, Points], path: Path) -> None:
    """Draw one panel per set, as SVG that depends only on the figures."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "thresher", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(10, 5.6), layout="constrained")
    for panel, (name, of_set) in zip(axes.flat, found.items(), strict=True):
        line = [of_set[f"l1={step:g}"] for step in STEPS]
        weights, losses = [p.nonzero for p in line], [p.loss for p in line]
        panel.plot(weights, losses, "o-", color="#1a6fb0", ms=4, label=f"{OURS}, l1 from 0.5 to 4")
        for step, x, y in zip(STEPS, weights, losses, strict=True):
            if step in (1.0, 2.0, 3.0):
                panel.annotate(f"{step:g}", (x, y), textcoords="offset points", xytext=(3, 5), fontsize=7)
        for peer, mark in zip(PEERS, "sD^", strict=True):
            if peer in of_set:
                at = of_set[peer]
                panel.plot([at.nonzero], [at.loss], mark, color="#b0491a", ms=5, label=peer)
        panel.set(title=name, xscale="log", xlabel="non-zero weights", ylabel="log loss on test rows")
        panel.grid(alpha=0.3)
    axes.flat[0].legend(fontsize=7)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
