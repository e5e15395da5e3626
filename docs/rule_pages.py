"""Write docs/rules: a page for every rule, from its docstring and an example that is run, and the index.

``python docs/rule_pages.py [RULE...]`` (or ``make pages``) runs the examples of these rules, or of all.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from thresher.parts import REGISTRY, Description, describe

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "rules"
DATA = "examples/data/rcv1_train2000.dat.gz"
PREFACE = """\
Every rule has a page, written by `make pages` from the rule's docstring, which `thresher rules NAME`
prints too. Its example makes one pass over 1,600 stories of RCV1 and holds out 400 more. The settings were
chosen by eye and the sample is small, so do not rank rules by these figures:
[Which rule?](../which-rule.md) compares them on real data.

In the table and on the pages w stands for the weights, x for the features, g for the gradient of this
example's loss, times its importance, eta for the step size and t for the number of the example, which does
not count those of importance 0; soft(v, a) moves v towards zero by a, and stops at zero. With --batch, g is
the sum over a batch, and t counts batches. The intercept is one more coordinate, whose x is 1; unless a page
says otherwise, penalties, truncation, rounding, projections and stops at zero leave it alone."""
SPEEDS = ("seconds", "examples per second")

HINGE = "--loss hinge"
MISTAKES = "--loss perceptron"
RATE = "--rate inverse-sqrt:32"
# rule -> what its example says beside the data: values of fields, then further options
EXAMPLES: dict[str, tuple[str, str]] = {
    "adagrad-fobos": ("eta=1,l1=1e-4", ""),
    "adagrad-rda": ("eta=1,l1=1e-4", ""),
    "arow": ("r=1", HINGE),
    "averaged-perceptron": ("", MISTAKES),
    "clipped-subgradient": ("l1=1e-4", RATE),
    "cumulative": ("l1=1e-4", RATE),
    "eg": ("norm=1000,features=47236", "--rate inverse-sqrt:0.01"),
    "fobos": ("l1=1e-4", RATE),
    "fobos-l2norm": ("l2norm=1e-3", RATE),
    "fobos-linf": ("linf=1e-3", RATE),
    "ft-cumulative": ("l1=3e-4", RATE),
    "ft-fobos": ("l1=3e-4", RATE),
    "ftrl": ("alpha=10,l1=0.3", ""),
    "l1-ball": ("radius=200", RATE),
    "l2-ball": ("radius=30", RATE),
    "pa": ("", HINGE),
    "pa-i": ("C=0.3", HINGE),
    "pa-ii": ("C=0.3", HINGE),
    "pegasos": ("l2=1e-3", HINGE),
    "perceptron": ("", MISTAKES),
    "rda": ("l1=1e-4,gamma=0.02", ""),
    "rounding": ("theta=0.3,every=400", RATE),
    "sgd": ("", RATE),
    "simplex": ("features=5", "--no-intercept --loss wealth"),
    "stabilised": ("every=100,rejection=0.5,purging=0.6", RATE),
    "subgradient": ("l1=1e-4,theta=0.1", RATE),
    "truncated-gradient": ("gravity=1e-4,every=10", RATE),
}
# rules whose example is not on the stories
OTHER_DATA = {"simplex": "examples/data/prices.svm"}


class ExampleError(Exception):
    """An example that does not run."""


def rules() -> list[Description]:
    """Those of the package; others may have been registered beside them."""
    own = {name for name, cls in REGISTRY["rule"].items() if cls.__module__.startswith("thresher.")}
    return [describe("rule", name) for name in sorted(own)]


def command(rule: str) -> str:
    """The example, as a user would type it; a rule not in the table is shown with its defaults."""
    values, options = EXAMPLES.get(rule, ("", ""))
    spec = f"{rule}:{values}" if values else rule
    data = OTHER_DATA.get(rule, DATA)
    return f"thresher train {data} -m rcv1.model -q --holdout every-5th --rule {spec} {options}".rstrip()


def page(rule: Description) -> str:
    """All of a page before the figures of its example."""
    sections = [f"# {rule.name}", "## Update", _verbatim(rule.update)]
    if rule.lazy:
        sections += ["## Lazy update", _verbatim(rule.lazy[0].upper() + rule.lazy[1:])]
    if rule.notes:
        sections += ["## Notes", _verbatim(rule.notes)]
    sections += ["## Parameters", _parameters(rule)]
    if rule.reference:
        sections += ["## Reference", _escaped(" ".join(rule.reference.split()))]
    sections += ["## Example", f"```console\n$ {_typed(rule.name)}\n"]
    return "\n\n".join(sections)


def _typed(rule: str) -> str:
    return command(rule).replace(" --rule", " \\\n    --rule")


def _parameters(rule: Description) -> str:
    rows = [(f"`{p.name}`", f"`{p.default}`", p.limit) for p in rule.parameters]
    if rule.rate:
        rows.append(("`--rate`", f"`{rule.rate}`", "see `thresher rates`"))
    return _table(("parameter", "default", "must be"), rows) if rows else "None."


def index(found: list[Description]) -> str:
    """The table of all rules."""
    rows = [
        (f"[`{rule.name}`]({rule.name}.md)", _escaped(rule.line), _escaped(" ".join(rule.reference.split())))
        for rule in found
    ]
    return f"# All rules\n\n{PREFACE}\n\n{_table(('rule', 'update', 'reference'), rows)}\n"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))


def _verbatim(text: str) -> str:
    return f"```text\n{text}\n```"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it stands; what is between backticks stays code."""
    pieces = re.split(r"(`[^`]*`)", text)
    plain = r"([\\*_|<\[\]#])"
    return "".join(
        piece.replace("|", r"\|") if piece.startswith("`") else re.sub(plain, r"\\\1", piece)
        for piece in pieces
    )


def figures(rule: str) -> str:
    """What the example prints, speeds left out."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        words = command(rule).split()[1:]
        ran = subprocess.run(
            [sys.executable, "-m", "thresher", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode:
        raise ExampleError(f"{command(rule)}\n{ran.stderr.strip()}")
    return "".join(line for line in ran.stdout.splitlines(keepends=True) if not line.startswith(SPEEDS))


def main(chosen: list[str]) -> None:
    """Write the pages of the chosen rules, or of all, and the index; remove pages of rules that are gone.

    Exits with the errors of the examples that failed, whose pages are left as they were.
    """
    FOLDER.mkdir(exist_ok=True)
    found, failed = rules(), []
    for rule in [describe("rule", name) for name in chosen] or found:
        try:
            text = f"{page(rule)}{figures(rule.name)}```\n"
        except ExampleError as error:
            failed.append(str(error))
            continue
        (FOLDER / f"{rule.name}.md").write_text(text, encoding="utf-8")
    for path in FOLDER.glob("*.md"):
        if path.stem not in {"README", *(rule.name for rule in found)}:
            path.unlink()
    (FOLDER / "README.md").write_text(index(found), encoding="utf-8")
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main(sys.argv[1:])
