"""Messages that tell users what to do, each with small data that provokes it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet


class Case(NamedTuple):
    remedy: str
    """the literal in the source"""
    files: dict[str, str | bytes]
    command: str
    fill: Mapping[str, str] = MappingProxyType({})
    """values of words in capitals"""
    then: str = ""
    """the command to run instead of taking options from the message, where the remedy is told in words"""
    mended: Mapping[str, str | bytes] = MappingProxyType({})
    """files changed as the message says"""
    before: tuple[str, ...] = ()
    """commands that prepare"""
    python: bool = True
    """whether the same is said in Python"""


def svm(n: int = 200, form: str = "{y} {a}:1 {b}:1 5:{v}", seed: int = 1, **more: Any) -> str:
    """Rows of a label and three features, two of them informative."""
    chance = np.random.default_rng(seed)
    rows = [(int(chance.random() < 0.5), chance.random()) for _ in range(n)]
    cells = (
        {
            "y": y,
            "a": 1 + y,
            "b": 3 + k % 2,
            "v": f"{v:.2f}",
            "k": k,
            "z": int(chance.random() < 0.5),
            "c": 2 + y,
            "h": 14102100 + k % 24,
            "d": f"{1 + k % 28:02}",
            "zip": 10000 + 317 * (k % 90),
        }
        for k, (y, v) in enumerate(rows)
    )
    return "".join(form.format(**one) + "\n" for one in cells)


def csv(head: str, form: str, n: int = 200) -> str:
    return f"{head}\n{svm(n, form)}"


def as_arrow(write: Any) -> bytes:
    """A table of Arrow as the bytes of a file."""
    table, out = pa.table({"label": [0, 1] * 100, "a": ["s1", "s2"] * 100}), pa.BufferOutputStream()
    if write is pa.ipc.new_file:
        with write(out, table.schema) as writer:
            writer.write_table(table)
    else:
        write(table, out)
    return bytes(out.getvalue())


PARQUET, ARROW = as_arrow(pyarrow.parquet.write_table), as_arrow(pa.ipc.new_file)
LONG = "".join(f'{{"label": {k % 2}, "a": "s{1 + k % 2}", "pad": "{"x" * 100_000}"}}\n' for k in range(12))
NUMBERS = csv("label,a,v", "{y},{a},{v}")
WEIGHTLESS = csv("label,x,w", "{y},{a},1") + svm(60, "{y},{a},0")
ROWS = svm()
ODD_CELLS = csv("label,a,v", "{y},{a},{v}").replace("1,2,0.5", "1,2,none,", 1)

CASES = [
    Case(
        "--replay has no effect with --passes {}: leave it out, or use --passes auto",
        {"d.svm": ROWS},
        "train d.svm -m m --replay 1MB --passes 1",
        then="train d.svm -m m --replay 1MB --passes auto",
    ),
    Case(
        "with {}, --passes auto is one pass, which keeps no rows: leave --replay out, or use --passes 5",
        {"d.svm": ROWS},
        "train d.svm -m m --rule sgd --replay 1MB",
        then="train d.svm -m m --rule sgd --passes 5",
    ),
    # columns
    Case(", or use --ignore {}", {"d.csv": csv("label,a,,", "{y},{a},1,")}, "train d.csv -m m"),
    Case(", or use --ignore {}", {"d.csv": csv("label,a,b,b", "{y},{a},1,2")}, "train d.csv -m m"),
    # samples
    Case("{}: use --sample {}", {"d.svm": ROWS}, "train d.svm -m m --sample 0=0.05"),
    Case(
        "leave {} out of --sample",
        {"d.svm": ROWS},
        "train d.svm -m m --sample 0=0.5,correct --loss hinge",
        then="train d.svm -m m --sample 0=0.5 --loss hinge",
    ),
    # calibration
    Case(
        "{} times those of the rows: for these, use --calibrate",
        {"d.svm": ROWS},
        "train d.svm -m m --loss logistic:positive=9",
        then="train d.svm -m m --loss logistic:positive=9 --calibrate",
    ),
    Case(
        "a calibration is learned from the margins of rows that are new: use --passes 1",
        {"d.svm": ROWS},
        "train d.svm -m m --rule sgd --calibrate --passes 2",
    ),
    Case(
        "a signed store flips half of the signs of weights: leave signed out of --store",
        {"d.svm": ROWS},
        "train d.svm -m m --nonnegative 1 --store hashed:10,signed",
        then="train d.svm -m m --nonnegative 1 --store hashed:10",
    ),
    Case(
        "one temperature cannot calibrate corrected intercepts: leave correct out of --sample",
        {"d.svm": ROWS},
        "train d.svm -m m --loss softmax --outputs classes:0-1 --sample 0=0.5,correct --calibrate",
        then="train d.svm -m m --loss softmax --outputs classes:0-1 --sample 0=0.5 --calibrate",
    ),
    Case(
        "a calibration is that of the last weights, not of their mean: leave --average out",
        {"d.svm": ROWS},
        "train d.svm -m m --rule sgd --calibrate --average",
        then="train d.svm -m m --rule sgd --calibrate",
    ),
    Case(
        "the mean of several margins has no calibration: leave out {}",
        {"d.svm": ROWS},
        "train d.svm -m e --rule sgd --calibrate --ensemble 2",
        then="train d.svm -m e --rule sgd --ensemble 2",
        python=False,
    ),
    # going on with other data
    Case(
        "{} has {} penalties from {} to {}; leave --l1 out",
        {"d.svm": ROWS, "new.svm": svm(seed=2)},
        "path new.svm -m f2 --continue f --l1 0.5:2:4",
        then="path new.svm -m f2 --continue f",
        before=("path d.svm -m f --l1 0.5:2:2 -q --state",),
        python=False,
    ),
    # exports
    Case(
        "column '{}' holds lists, which cannot be exported: use --ignore {}",
        {"d.jsonl": svm(form='{{"label": {y}, "tags": ["{a}", "{c}"], "b": {b}}}')},
        "export m --to c",
        then="train d.jsonl -m m --ignore tags",
        before=("train d.jsonl -m m -q",),
        python=False,
    ),
    Case(
        "keys of few bits may be those of several columns, which are centred: leave --bits out, or use"
        " --no-centre",
        {"d.csv": NUMBERS},
        "export m --to c",
        then="train d.csv -m m --bits 18 --no-centre",
        before=("train d.csv -m m --bits 18 -q",),
        python=False,
    ),
    Case(
        "products of ids cannot be exported: leave --interact out in training",
        {"d.svm": ROWS},
        "export m --to c",
        then="train d.svm -m m",
        before=("train d.svm -m m --interact '*,*' -q",),
        python=False,
    ),
    Case(
        "use --to c or --to js",
        {"d.csv": NUMBERS},
        "export m --to sql",
        then="export m --to c -o m.c",
        before=("train d.csv -m m --bins v -q",),
        python=False,
    ),
    Case(
        "{} categories have no names, which SQL needs: find them with thresher name, or train with --names",
        {"d.csv": csv("label,c", "{y},s{a}")},
        "export m --to sql",
        then="name m d.csv",
        before=("train d.csv -m m -q",),
        python=False,
    ),
    # hold-outs and folds
    Case(
        "--group keeps rows together that are drawn, but {} are held out, whatever their group:"
        " leave --group out, or draw rows, --holdout 0.1",
        {"d.csv": csv("label,u,x", "{y},u{k},{a}")},
        "train d.csv -m m --group u --holdout last:0.1",
        then="train d.csv -m m --group u --holdout 0.1",
    ),
    Case(
        "--folds {} follows the order of the data, which --order {} changes: leave --order out, {}",
        {"d.svm": ROWS},
        "cv d.svm --l1 0.1:1:2 --folds forward:3 --order once",
        then="cv d.svm --l1 0.1:1:2 --folds 3 --order once",
    ),
    Case(
        "the blocks of --folds {} are consecutive rows, and a group may be in several: leave --group out, {}",
        {"d.csv": csv("label,u,x", "{y},u{k},{a}")},
        "cv d.csv --l1 0.1:1:2 --folds forward:3 --group u",
        then="cv d.csv --l1 0.1:1:2 --folds 3 --group u",
    ),
    Case(
        "{} no columns, and the hold-out, {}, is a condition on one: hold out a share, --holdout 0.1,"
        " or the last rows, --holdout last:0.1",
        {"d.svm": ROWS},
        "train d.svm -m m --holdout 'day > 2'",
        then="train d.svm -m m --holdout last:0.1",
    ),
    Case(
        "hold out fewer, such as --holdout last:0.1",
        {"d.svm": ROWS},
        "train d.svm -m m --holdout last:200",
    ),
    Case(
        "hold out others, such as --holdout 0.1",
        {"d.csv": NUMBERS},
        "train d.csv -m m --holdout 'v < 2'",
    ),
    Case(
        "use another --seed, or hold out fewer",
        {"d.csv": csv("label,u,x", "{y},u,{a}")},
        "train d.csv -m m --group u --holdout 0.7",
        then="train d.csv -m m --group u --holdout 0.7 --seed 1",
    ),
    Case(
        "hold out the rows of another condition, or a share, --holdout 0.1",
        {"d.csv": NUMBERS},
        "train d.csv -m m --holdout 'v > 2'",
        then="train d.csv -m m --holdout 0.1",
    ),
    Case(
        "check the importances, or hold out other rows, such as --holdout 0.1",
        {"d.csv": WEIGHTLESS},
        "train d.csv -m m --weight w --holdout last:0.1",
        then="train d.csv -m m --weight w --holdout 0.1",
    ),
    Case(
        "check the importances, or take fewer --folds",
        {"d.csv": WEIGHTLESS},
        "cv d.csv --weight w --l1 0.1:1:2 --folds forward:4",
        then="cv d.csv --weight w --l1 0.1:1:2 --folds forward:2",
    ),
    Case(
        "take fewer --folds, or another --seed",
        {"d.svm": "".join(f"{int(k % 40 == 3)} {1 + k % 3}:1\n" for k in range(200))},
        "cv d.svm --l1 0.1:1:2 --folds 20",
        then="cv d.svm --l1 0.1:1:2 --folds 2",
    ),
    Case(
        "name theirs, --label, to evaluate",
        {"d.csv": csv("label,x", "{y},{a}"), "e.csv": csv("y,x", "{y},{a}")},
        "evaluate m e.csv",
        then="evaluate m e.csv --label y",
        before=("train d.csv -m m -q",),
    ),
    Case(
        ", --ignore {}",
        {"d.csv": csv("label,refund,v", "{y},r{y},{v}", 600)},
        "train d.csv -m m",
        then="train d.csv -m m --ignore refund",
    ),
    Case(
        "if they are not in the order of time, draw the rows to hold out, --holdout 0.1",
        {"d.svm": "".join(sorted(ROWS.splitlines(keepends=True)))},
        "train d.svm -m m --holdout last:0.2",
        then="train d.svm -m m --holdout 0.1",
    ),
    Case(
        "if the condition is not meant to do that, draw the rows to hold out, --holdout 0.1",
        {"d.csv": NUMBERS},
        "train d.csv -m m --holdout 'label = 1'",
        then="train d.csv -m m --holdout 0.1",
    ),
    Case(
        "if rows are not in the order of time, draw the folds, --folds {}",
        {"d.svm": "".join(sorted(ROWS.splitlines(keepends=True)))},
        "cv d.svm --l1 0.1:1:2 --folds forward:4",
        then="cv d.svm --l1 0.1:1:2 --folds 4",
    ),
    Case(
        "use another --seed, or leave --group out",
        {"d.csv": csv("label,u,x", "{y},u{y},{a}")},
        "cv d.csv --l1 0.1:1:2 --folds 2 --group u --seed 5",
        then="cv d.csv --l1 0.1:1:2 --folds 2",
    ),
    Case(
        "use another --seed, or leave --group out",
        {"d.csv": csv("label,u,x", "{y},u{h},{a}")},
        "train d.csv -m m --group u --holdout 0.1 --seed 3",
        then="train d.csv -m m --holdout 0.1 --seed 3",
    ),
    Case(
        "a base of 0; to add bases to the margin: --offset {}",
        {"d.vw": svm(form="{y} 1 0.5 |a {a} |b {b}").replace("0 1 0.5", "-1 1 0.25")},
        "train d.vw -m m",
    ),
    Case(
        "{}: leave --group out, or name what rows belong to",
        {"d.vw": svm(form="{y} |a {a} |b {b}").replace("0 |", "-1 |")},
        "train d.vw -m m --group c --holdout 0.1",
        then="train d.vw -m m --holdout 0.1",
    ),
    Case(
        "use --holdout 0.1, or leave {} out (a column can be left out with {})",
        {"d.csv": csv("label,u,x", "{y},u{k},{a}")},
        "train d.csv -m m --group u",
        then="train d.csv -m m --group u --holdout 0.1",
    ),
    Case(
        "use --holdout 0.1, or other data",
        {"d.svm": ROWS, "h.svm": "".join(row for row in ROWS.splitlines(keepends=True) if row[0] == "1")},
        "train d.svm -m m --holdout h.svm",
        then="train d.svm -m m --holdout 0.1",
    ),
    # learning: warnings
    Case(
        "give it more --rounds (currently {}), or a larger --tolerance",
        {"d.svm": ROWS},
        "boost d.svm -m m --rounds 1 --tolerance 1e-9",
        then="boost d.svm -m m --rounds 100 --tolerance 1e-9",
    ),
    Case(
        "labels are {} words ({}), but boost is for two classes: name them, --classes WORD,WORD, and leave"
        " out other rows, --on-error skip",
        {"d.csv": csv("label,a,v", "c{y},{a},{v}") + "c2,1,0\n"},
        "boost d.csv -m m",
        fill={"WORD,WORD": "c0,c1"},
    ),
    Case(
        "use a penalty above 0, --l1 or --l2",
        {"d.svm": svm(20, "{y} 1:{c}")},
        "boost d.svm -m m --l1 0",
        then="boost d.svm -m m --l2 0.1 --l1 0",
    ),
    Case(
        "hold out a larger share, such as --holdout 0.5, or use another --seed",
        {"d.csv": csv("label,u,x", "{y},u{b},{a}")},
        "train d.csv -m m --group u --holdout 0.1",
        then="train d.csv -m m --group u --holdout 0.5",
    ),
    Case(
        "shuffle the rows with --order once, or --order buffer:N for a stream",
        {"d.svm": "".join(sorted(ROWS.splitlines(True)))},
        "train d.svm -m m",
        {"buffer:N": "buffer:300"},
    ),
    Case(
        "{}: if they are two classes, use --outputs classes", {"d.svm": ROWS + "-1 1:1\n"}, "train d.svm -m m"
    ),
    Case(
        "use --ignore {} in place of --weight {}",
        {"d.csv": csv("label,n,a", "{y},{y}1,s{a}")},
        "train d.csv -m m --weight n",
        then="train d.csv -m m --ignore n",
    ),
    Case(
        "take --rule ft-ftrl or normalized, which need no such scale",
        {"d.csv": csv("label,n,a", "{y},{k}5,s{a}")},
        "train d.csv -m m --weight n --rule ftrl",
    ),
    Case(
        "divide {} by their largest values (--scale max-abs){}",
        {"d.csv": csv("label,site,hour", "{y},s{a},{h}")},
        "train d.csv -m m --rule ftrl",
    ),
    Case(
        "take --rule ft-ftrl or normalized, which need {}",
        {"d.csv": csv("label,site,hour", "{y},s{a},{h}")},
        "train d.csv -m m --rule ftrl",
    ),
    Case(
        "use --numeric {} --on-error skip to leave out such rows",
        {"d.csv": csv("label,a,v", "{y},{a},{v}") + "1,2,many\n"},
        "train d.csv -m m",
    ),
    Case(
        "use --missing {} for missing values",
        {"d.csv": csv("label,a,v", "{y},{a},{v}") + "1,2,NA\n0,1,?\n"},
        "train d.csv -m m",
    ),
    Case(
        "leave out columns that only identify rows with --ignore {}",
        {"d.csv": csv("label,a,user", "{y},{a},u{k}")},
        "train d.csv -m m",
    ),
    Case("{}: leave it out with --ignore {}", {"d.csv": csv(",label,a", "{k},{y},{a}")}, "train d.csv -m m"),
    Case(
        "{}: use --categorical {}, or --numeric {} if they are amounts",
        {"d.csv": csv("label,a,zip", "{y},{a},{zip}")},
        "train d.csv -m m",
    ),
    Case(
        "{}, which are part of the value in TSV: read the file with {} to remove them",
        {"d.tsv": csv("label\ta", '{y}\t"s{a}"')},
        "train d.tsv -m m",
    ),
    Case(
        "use --text {}",
        {"d.csv": csv("label,words", "{y},some words here and {k} more {a}")},
        "train d.csv -m m --rule ftrl",
    ),
    Case(
        "{}: if it is an example, use --no-header",
        {"d.csv": "".join(svm(form="{y},0.{a},0.{b},{v}").splitlines(True))},
        "train d.csv -m m --label 1",
    ),
    Case(
        ", or a lower --admit (currently {})",
        {"d.svm": ROWS},
        "train d.svm -m m --admit 255 --rule ftrl:l1=1e5",
        then="train d.svm -m m --admit 2 --rule ftrl:l1=1",
    ),
    Case(
        "use --passes {}, or --early-stop 1 to keep the best pass",
        {"d.svm": svm(120, "{z} {k}:1 {a}:0.5"), "h.svm": svm(120, "{z} {k}:1 {a}:0.5", 2)},
        "train d.svm -m m --passes 6 --holdout h.svm --rule sgd --rate constant:1",
    ),
    Case(
        "leave out what it does not know with --ignore {}",
        {
            "d.jsonl": svm(form='{{"label": {y}, "a": "s{a}"}}'),
            "e.jsonl": svm(form='{{"label": {y}, "a": "s{a}"}}') + '{"label": 1, "b": 2}\n',
        },
        "evaluate m e.jsonl",
        before=("train d.jsonl -m m -q",),
    ),
    Case(
        "{} there: add it, or leave it out of all files with --ignore {}",
        {"d.csv": NUMBERS, "e.csv": csv("label,a", "{y},{a}")},
        "train d.csv e.csv -m m",
        python=False,
    ),
    Case(
        "write plain numbers, such as 1234.5",
        {"d.csv": csv("label,a,v", "{y},s{a},{v}%")},
        "train d.csv -m m",
        mended={"d.csv": NUMBERS},
    ),
    Case(
        "turn them into numbers, such as days since the first, or into categories that come again, such as"
        " the weekday",
        {"d.csv": csv("label,a,v", "{y},s{a},2024-05-{d}")},
        "train d.csv -m m",
        mended={"d.csv": csv("label,a,v", "{y},s{a},{d}")},
    ),
    Case(
        "{}: such lines are skipped; remove them from the data",
        {"d.csv": NUMBERS + NUMBERS},
        "train d.csv -m m",
        mended={"d.csv": NUMBERS},
    ),
    Case(
        "replace them by null, and let the column hold numbers",
        {"d.jsonl": svm(form='{{"label": {y}, "v": "{v}"}}') + '{"label": 1, "v": "NA"}\n'},
        "train d.jsonl -m m",
        mended={"d.jsonl": svm(form='{{"label": {y}, "v": {v}}}') + '{"label": 1, "v": null}\n'},
    ),
    Case(
        "{}: store them as numbers",
        {"d.jsonl": svm(form='{{"label": {y}, "v": "{v}"}}')},
        "train d.jsonl -m m",
        mended={"d.jsonl": svm(form='{{"label": {y}, "v": {v}}}')},
    ),
    Case(
        "use a smaller {}",
        {"d.svm": ROWS},
        "train d.svm -m m --rule ftrl:l1=1e5",
        then="train d.svm -m m --rule ftrl:l1=1",
    ),
    Case(
        "{}: if it means that the label is missing, remove these rows",
        {"d.csv": csv("label,a", "w{y},s{a}") + "?,s1\n"},
        "train d.csv -m m",
        mended={"d.csv": csv("label,a", "w{y},s{a}")},
    ),
    Case(
        "use {} to learn from {}, or ",
        {"d.jsonl": LONG + '{"label": 1, "a": "s2", "late": "x"}\n'},
        "train d.jsonl -m m --ignore pad",
    ),
    Case(
        "use a smaller step size{}, or {}",
        {"d.svm": svm(form="{z} {a}:1 {b}:1 5:{v}")},
        "train d.svm -m m --rule sgd --rate constant:5",
        then="train d.svm -m m --rule sgd --rate constant:0.01",
    ),
    Case(
        "let thresher tune find a better setting",
        {"d.svm": svm(form="{z} {a}:1 {b}:1 5:{v}")},
        "train d.svm -m m --rule sgd --rate constant:5",
        then="tune d.svm -m n --budget 2",
    ),
    Case(
        "{} there: add it",
        {"d.csv": NUMBERS, "e.csv": csv("label,a", "{y},{a}")},
        "train d.csv e.csv -m m",
        mended={"e.csv": NUMBERS},
        python=False,
    ),
    # data
    Case(
        "name the label column (--label COL)",
        {"d.csv": csv("y,a", "{y},{a}")},
        "train d.csv -m m",
        {"COL": "y"},
    ),
    Case(
        "{}: n-grams need a text column (--text COL)",
        {"d.csv": csv("label,words", "{y},one w{a} of {b}")},
        "train d.csv -m m --ngrams words=1-2",
        {"COL": "words"},
    ),
    Case(
        "; if its values come late, give its kind, such as --categorical {}",
        {"d.jsonl": LONG + '{"label": 1, "a": "s2", "late": "x"}\n'},
        "train d.jsonl -m m --ignore pad --interact a,late",
    ),
    Case("Parquet: try --format parquet", {"d.txt": PARQUET}, "train d.txt -m m"),
    Case("Arrow: try --format arrow", {"d.txt": ARROW}, "train d.txt -m m"),
    Case(
        "tsv: quotes have no meaning, so line breaks cannot be quoted ({})",
        {"d.tsv": csv("label\ta", '{y}\t"s{a}"')},
        "train d.tsv -m m --quoted-newlines",
    ),
    Case(
        "{}: the hash vw is only for VW text; to shorten keys, use --bits alone",
        {"d.csv": NUMBERS},
        "train d.csv -m m --hash vw --bits 18",
        then="train d.csv -m m --bits 18",
    ),
    Case(
        "libffm: fields are whole numbers (--interact 3,7 or '*,*'), not '{}'",
        {"d.ffm": svm(form="{y} 3:{a}:1 7:{b}:1")},
        "train d.ffm -m m --interact a,b",
    ),
    Case(
        "; if the field is label:weight, use --label-weights",
        {"d.svm": svm(form="{y}:2 {a}:1 5:{v}")},
        "train d.svm -m m",
    ),
    Case(
        "svmlight has no namespaces: use --interact '*,*', not '{}'",
        {"d.svm": ROWS},
        "train d.svm -m m --interact a,b",
    ),
    Case(
        "ARFF: remove the header (sed '1,/^@data/Id; /^%/d') and use {}",
        {
            "d.arff": "% about\n@relation r\n@attribute y {0,1}\n@attribute a numeric\n@DATA\n% rows\n"
            + svm(form="{y},{a}")
        },
        "train d.arff -m m",
        {"N": "1"},
    ),
    Case(
        "a JSON array: write one object per line (jq -c '.[]') and use {}",
        {"d.json": "[\n" + svm(form='{{"y": {y}, "a": "s{a}"}},').rstrip(",\n") + "\n]\n"},
        "train d.json -m m",
        {"COL": "y"},
    ),
    Case(
        "JSON lines: try {}",
        {"d.txt": svm(form='{{"y": {y}, "a": "s{a}"}}')},
        "train d.txt -m m",
        {"COL": "y"},
    ),
    Case("{}: try {}", {"d.txt": svm(form="{y} |n w{a} w{b}")}, "train d.txt -m m"),
    Case(
        "numbers separated by blanks: replace them with commas (awk '{$1=$1}1' OFS=,) and try {}",
        {"d.txt": svm(form=" {y}  {a} {v}")},
        "train d.txt -m m",
        then="train d.txt -m m --format csv --no-header --label 1",
    ),
    Case("{}: try {}", {"d.txt": csv("y;a", "{y};{a}")}, "train d.txt -m m", {"COL": "y"}),
    Case(
        "{}: try {}",
        {"d.txt": svm(form="{y};{a};{v}")},
        "train d.txt -m m",
        {"N": "1"},
    ),
    Case(
        "quotes have no meaning in TSV: read it with {}",
        {"d.tsv": csv('"label"\t"a"', '{y}\t"s{a}"')},
        "train d.tsv -m m",
    ),
    Case(
        "{}: its lines end with \\r alone: convert them with tr '\\r' '\\n'".replace("\\\\", "\\"),
        {"d.csv": NUMBERS.replace("\n", "\r")},
        "train d.csv -m m",
    ),
    Case(
        "{}: one column, {}: is the delimiter '{}'? (--delimiter {})",
        {"d.csv": csv("label;a", "{y};{a}")},
        "train d.csv -m m",
    ),
    Case(
        "; to read it as a missing value: --missing {}",
        {"d.csv": NUMBERS + "1,2,NA\n"},
        "train d.csv -m m --numeric v",
    ),
    Case(
        "; write null for a missing value, or leave out such rows with --on-error skip",
        {"d.jsonl": '{"label": 1, "v": 0.5}\n{"label": 0, "v": "NaN"}\n' + '{"label": 1, "v": 0.25}\n' * 9},
        "train d.jsonl -m m --label label",
        then="train d.jsonl -m m --label label",
        mended={"d.jsonl": '{"label": 1, "v": 0.5}\n{"label": 0, "v": null}\n'},
    ),
    Case(
        "{}: leave it out of the data, or use --holdout 0.1",
        {"d.svm": svm()},
        "train d.svm -m m --holdout d.svm",
        then="train d.svm -m m --holdout 0.1",
    ),
    Case(
        "; to use words as labels, name them: --classes WORD,WORD,...",
        {"d.svm": svm(form="w{y} {a}:1 5:{v}")},
        "train d.svm -m m",
        {"WORD,WORD,...": "w0,w1"},
    ),
    Case(
        "{} is read as {}: for a table, add --format csv",
        {"e.data": NUMBERS.replace("v", "v: km", 1)},
        "train e.data -m m --numeric a",
    ),
    Case(
        "a label -1, 0 or 1 (for other classes: --classes A,B; for many: --outputs classes; for a "
        "number: --loss squared)",
        {"d.svm": svm(form="{c} {a}:1 5:{v}")},
        "train d.svm -m m --outputs one",
        {"A,B": "2,3"},
    ),
    Case(
        "convert it with iconv -f WINDOWS-1252 -t UTF-8",
        {"d.csv": csv("label,a,words", "{y},{a},café {b}").encode("latin-1")},
        "train d.csv -m m",
    ),
    Case(
        "convert it with iconv -f LATIN1 -t UTF-8",
        {"d.csv": csv("label,a,words", "{y},{a},caf\x81 {b}").encode("latin-1")},
        "train d.csv -m m",
    ),
    Case(
        "remove these bytes with iconv -c -f UTF-8 -t UTF-8",
        {"d.csv": csv("label,a,words", "{y},{a},café {b}").encode() + b"1,1,caf\xe9\n"},
        "train d.csv -m m",
    ),
    Case(
        "the quote is part of the cell: use --no-quoting{}",
        {"d.csv": csv("label,a,words", '{y},{a},"open {b}')},
        "train d.csv -m m",
    ),
    Case(
        " in place of --quoted-newlines",
        {"d.csv": csv("label,a,words", '{y},{a},"open {b}')},
        "train d.csv -m m --quoted-newlines",
        then="train d.csv -m m --no-quoting",
    ),
    Case(
        "use --no-quoting if it is part of a name",
        {"d.csv": csv('label,a,"words', "{y},{a},w{b}")},
        "train d.csv -m m",
    ),
    Case(
        "use --quoted-newlines",
        {"d.csv": csv('label,a,"two\nwords"', "{y},{a},w{b}")},
        "train d.csv -m m",
    ),
    Case(
        "write a quote inside a cell as two, in quotes, or leave out such lines with --on-error skip",
        {"d.csv": csv("label,a,words", '{y},{a},"in, {b}"') + '0,1,"open\n'},
        "train d.csv -m m",
        mended={"d.csv": csv("label,a,words", '{y},{a},"in, {b}"') + '0,1,"""open"\n'},
    ),
    Case(
        "cells are in quotes: read them with --quoting",
        {"d.csv": csv("label,a,words", '{y},{a},"in, {b}"')},
        "train d.csv -m m --no-quoting",
    ),
    Case(
        "the cell contains a line break: use --quoted-newlines",
        {"d.csv": csv("label,a,words", '{y},{a},"two\nlines {b}"')},
        "train d.csv -m m",
    ),
    Case(
        "{} label columns (--label a,b,...)",
        {"d.csv": csv("a,b,v", "{y},{a},{v}")},
        "train d.csv -m m --outputs values:2 --loss squared --label a",
        {"a,b,...": "a,b"},
    ),
    Case(
        "--id: in VW text, what identifies a row is its tag: use --id {}, not {}",
        {"d.vw": svm(form="{y} t{k}|n w{a} w{b}")},
        "predict m d.vw --id user",
        before=("train d.vw -m m -q",),
    ),
    Case(
        "--id: {} has no ids; every row gets a line, so leave --id out and join the lines by their numbers",
        {"d.svm": ROWS},
        "predict m d.svm --id user",
        then="predict m d.svm",
        before=("train d.svm -m m -q",),
    ),
    Case(
        "1se needs two rows or more that are held out: give --holdout",
        {"d.svm": ROWS},
        "path d.svm -m m --l1 0.5:1:2 --holdout none --choose 1se",
        then="path d.svm -m m --l1 0.5:1:2 --holdout every-10th --choose 1se",
    ),
    Case(
        "weights of a hashed store have no names, as features may share one: use --store growing",
        {"d.csv": NUMBERS},
        "train d.csv -m m --store hashed:9 --names",
    ),
    Case(
        "column '{}' is scaled by {}, but interactions are computed before that: leave numeric columns "
        "out of --interact ('{}'), or make '{}' categorical",
        {"d.csv": csv("label,a,b,v", "{y},{a},{b},{v}")},
        "train d.csv -m m --scale max-abs --interact a,b",
        then="train d.csv -m m --scale max-abs --interact a,b --categorical a,b",
    ),
    # commands
    Case(
        "weights are means over the folds, and a model of all rows has more: {}",
        {"d.svm": ROWS},
        "cv d.svm --folds 2 --l1 0.1:1:2 --choose nnz:2",
        then="cv d.svm --folds 2 --l1 0.1:1:2 --choose nnz:2 --model n",
    ),
    Case(
        "the data can be read only once: give the range of penalties, --l1 LO:HI:N",
        {"d.svm": ROWS},
        "path - -m m",
        {"LO:HI:N": "0.5:1:2"},
    ),
    Case(
        "{} differs between the models: leave it out of --rule, or give its range, --l1 LO:HI:N",
        {"d.svm": ROWS},
        "path d.svm -m m --rule ftrl:l1=1",
        then="path d.svm -m m --rule ftrl:l1=1 --l1 0.5:1:2",
    ),
    Case(
        "--init is for one model only: give a rule other than auto",
        {"d.svm": ROWS},
        "train d.svm -m n --init m --rule auto",
        then="train d.svm -m n --init m --rule ftrl",
        before=("train d.svm -m m -q",),
        python=False,
    ),
    Case(
        "--rule auto finds one model: give another --rule",
        {"d.svm": ROWS},
        "select d.svm -m m --rule auto",
        then="select d.svm -m m --rule ftrl --bags 4",
    ),
    Case(
        "a half selects {} of {} features, so no threshold keeps the expected number of false ones at {} or"
        " below, and none is kept: use --nonzero {}, or a larger --l1",
        {"d.svm": ROWS},
        "select d.svm -m m --rule sgd --bags 4 --nonzero 5",
    ),
    Case(
        "of the {} kept features, up to {} are expected to be false: a smaller bound, such as --false {},"
        " keeps those that are surer",
        {"d.svm": ROWS},
        "select d.svm -m m --bags 8",
    ),
    Case(
        "--rule auto finds one model: give another --rule, or leave out --ensemble",
        {"d.svm": ROWS},
        "train d.svm -m m --rule auto --ensemble 2",
        then="train d.svm -m m --rule ftrl --ensemble 2",
    ),
    Case(
        "--effects are of one model: leave out --interval",
        {"d.svm": ROWS},
        "weights n --interval 0.9 --effects d.svm",
        before=("train d.svm -m n -q --ensemble 8",),
        then="weights n --interval 0.9",
        python=False,
    ),
    Case(
        "--interval needs --output interval",
        {"d.svm": ROWS},
        "predict n d.svm --output margin --interval 0.8",
        before=("train d.svm -m n -q --ensemble 8",),
        then="predict n d.svm --output interval --interval 0.8",
        python=False,
    ),
    Case(
        "an interval needs bagged models, and the rows of these are {}: use thresher train --ensemble 64",
        {"d.svm": ROWS},
        "predict m d.svm --output interval",
        then="predict n d.svm --output interval",
        before=("train d.svm -m m -q --ensemble disjoint:8", "train d.svm -m n -q --ensemble 8"),
    ),
    Case(
        "an interval needs at least {} models, and the ensemble has {}: use thresher train --ensemble 64",
        {"d.svm": ROWS},
        "weights m --interval 0.9",
        then="weights n --interval 0.9",
        before=("train d.svm -m m -q --ensemble 2", "train d.svm -m n -q --ensemble 8"),
    ),
    Case(
        "{} is for an ensemble, and this is one model: use thresher train --ensemble N",
        {"d.svm": ROWS},
        "predict m d.svm --output spread",
        then="predict n d.svm --output spread",
        before=("train d.svm -m m -q", "train d.svm -m n -q --ensemble 2"),
    ),
    Case(
        "--top is for explanations: use --output explain, or leave it out",
        {"d.svm": ROWS},
        "predict m d.svm --top 3",
        before=("train d.svm -m m -q",),
        python=False,
    ),
    Case(
        "{}; use --output margin or {}",
        {"d.svm": ROWS},
        "predict m d.svm --output probability",
        before=("train d.svm -m m -q --loss hinge",),
    ),
    Case(
        "the data can be read only once: give the classes, --outputs classes:LO-HI or --classes A,B,...",
        {"d.svm": ROWS},
        "train - -m m --outputs classes",
        {"classes:LO-HI": "classes:0-1", "A,B,...": "0,1"},
        python=False,
    ),
    Case(
        "no column is called '{}'; for several columns, use --slice {}",
        {"d.csv": csv("label,a,v", "{y},{a},{v}")},
        "train d.csv -m m --slice a,v",
    ),
    Case(
        "--slice, --threshold and the options for reading need data: give --data TEST",
        {"d.svm": ROWS},
        "report m --threshold 0.5",
        {"TEST": "d.svm"},
        before=("train d.svm -m m -q",),
    ),
    Case(
        "--{} is varied by tune: leave it out; --rules names the rules to try",
        {"d.svm": ROWS},
        "tune d.svm -m m --alpha 1 --budget 2",
        then="tune d.svm -m m --rules ftrl --budget 2",
    ),
    Case("no such option: -h; did you mean --help?", {}, "train -h", then="train --help"),
    Case(" (see {} --help)", {}, "train", then="train --help"),
    Case(" (see thresher --help)", {}, "nothing", then="--help"),
    Case(
        "{}: {}: leave out --choose {}",
        {"d.svm": ROWS},
        "predict m d.svm --choose best",
        then="predict m d.svm",
        before=("train d.svm -m m -q",),
    ),
]
NAMES = [
    "user id",
    "a,b",
    "it's",
    'q"q',
    "$x",
    "-x",
    "--x",
    "7",
    "[z]",
    "a\\b",
    "x.",
    "or",
    "to,x",
    "is it",
    "x\ty",
    "\x7f",
]
"""Names of columns that a shell, Python or a list of columns might take for something else"""
OPTIONS = {
    **dict.fromkeys(("--average", "--cache", "--header", "--intercept", "--no-intercept", "--quiet"), ""),
    **dict.fromkeys(("--no-quoting", "--quoting", "--quoted-newlines"), ""),
    "--alpha": "0.5",
    "--batch": "2",
    "--bins": "a",
    "--categorical": "a",
    "--checkpoint-every": "100",
    "--delimiter": ",",
    "--dtype": "float64",
    "--early-stop": "1 --holdout 0.2",
    "--format": "csv",
    "--group": "v",
    "--holdout": "0.2",
    "--ignore": "a",
    "--init": "old",
    "--interact": "a,v",
    "--l1": "0.1",
    "--label": "label",
    "--loss": "hinge",
    "--missing": "NA",
    "--model": "other",
    "--ngrams": "words=1-2 --text a",
    "--numeric": "a",
    "--offset": "v",
    "--on-error": "skip",
    "--outputs": "classes",
    "--passes": "1",
    "--report-every": "100",
    "--rule": "ftrl",
    "--sample": "0=0.5",
    "--scale": "max-abs",
    "--seed": "1",
    "--text": "a",
    "--threads": "1",
    "--weight": "v",
    "--bits": "20",
    "--no-header": "--label 1 --on-error skip",
    "--order": "once",
    "--store": "hashed:9",
}
"""A value of each option of train that a hint names, with the options that it needs"""
FILLED = {
    "logistic:positive=N": "logistic:positive=2",
    "hashed:BITS": "hashed:9",
    "fobos:l2=L": "fobos:l2=1",
    "NEGATIVE,POSITIVE": "0,1",
}
STOPPED = "needs a run that was stopped"
ODD_FILES = "a file that another program wrote: tests/cli/test_odd_files.py"
OVERFLOWS = "a run that overflows, which plain Python warns of: tests/learning/test_divergence.py"
JUDGED = "asks the user to look at the data"
ELSEWHERE = {
    "; curl -d removes line ends: use --data-binary": "an option of curl: tests/serving/test_bodies.py",
    ", which {} defines: use --module {}": "tests/test_origins.py",
    "features that were never seen have a weight in this model, which cannot be exported: train with"
    " another --rule": "tests/exporting/test_c.py",
    "a server that learns needs a log: use --learn and --log DIR together": "tests/serving/test_server.py",
    "the log of a server, not a model: thresher log {} shows what it holds": "tests/serving/test_service.py",
    "{} has taken over: give it with --shadow again": "tests/serving/test_service.py",
    "{} is for a server that learns: use --learn and --log DIR": "tests/serving/test_server.py",
    "{} text: convert it with iconv -f {} -t UTF-8": ODD_FILES,
    "JSON in several lines: write one object per line (jq -c 'if type =="
    ' "array" then .[] else . end\')': ODD_FILES,
    "{}: its first line, {}, is for Excel: remove it (sed 1d) and use --delimiter {}": ODD_FILES,
    "{}: each row has one cell more than the header, as R writes row names:"
    " write the file with row.names = FALSE,"
    " or name that column (sed '1s/{}/row{}/') and use --ignore row": ODD_FILES,
    "{}: if its columns are separated by blanks, replace these (awk '{$1=$1}1' OFS=,)": ODD_FILES,
    "{}: is the delimiter a blank? (--delimiter ' ')": ODD_FILES,
    "{}: its columns are separated by blanks, and each row has one cell more than the header,"
    " as R writes row names: name that column (sed '1s/{}/row /') and use --delimiter ' '"
    " --ignore row": ODD_FILES,
    "a table with blanks between its columns: try {}": ODD_FILES,
    ": try --format {}": "what to take out of a message",
    "text whose lines end with \\r alone: convert them with tr '\\r' '\\n'": ODD_FILES,
    "{}, so nothing was learned: check the importances": JUDGED,
    "{}, because no row has a feature: check how the data are read": JUDGED,
    "remove it": "a column without a name, which options cannot name",
    "leave out the features with such values": "changes the data",
    ", or use --dtype float64": OVERFLOWS,
    ", or skip it with --ignore {}": "a sparse frame: tests/learning/test_sparse_frames.py",
    "labels were given beside the table in training: {},"
    " and leave --label out": "a model of Python: tests/learning/test_first_hour.py",
    "to count all rows alike, add it, with 1 in each row,"
    " or use --weight '' to evaluate": "an option with an empty value: tests/cli/test_importance.py",
    "{} adds models to {}, which does not have the others: run again without --resume": STOPPED,
    "the checkpoint goes on from another model, or from this one as it was before: give the same --continue,"
    " or leave it out": STOPPED,
    "the checkpoint was made with --order {}; leave --order out": STOPPED,
    "the checkpoint was made with --replay {}; leave --replay out": STOPPED,
    "{} is left from an interrupted run, from which --resume continues; this run"
    " starts anew and replaces it": STOPPED,
    "All weights are zero, so every prediction is the same."
    " Train with a smaller penalty (--l1), or on more data.": "a sentence of the page that report writes",
}
"""Remedies that are not executed here, and why"""
