"""``thresher from-vw``: the command for what a command of Vowpal Wabbit does."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections import deque
from difflib import get_close_matches
from itertools import product
from typing import TypedDict

import click

from thresher.cli.parser import Argument, command
from thresher.options import kinds
from thresher.options.option import Options, UsageError
from thresher.options.option import command as line_of

_NONE, _TASK = "left out, since it has no counterpart", "thresher has no counterpart, so there is no command"
_KEPT = "the model keeps what it has"
_TABLE = (
    ("quiet", "-q", ""),
    ("random_seed W0", "--seed {}", _KEPT),
    ("noconstant", "--no-intercept", _KEPT),
    ("bootstrap E", "--ensemble {}", _KEPT),
    ("c/cache cache_file N", "", "rows are kept for later passes without it"),
    ("k/kill_cache", "", "a cache that does not fit the data is never used"),
    ("compressed", "", "compression is recognised by content"),
    ("save_resume preserve_performance_counters", "", "a model keeps all that it needs to go on"),
    ("P/progress N", "", "the table has lines at 1, 2, 4 and so on, or every --report-every N rows"),
    ("sparse_weights", "", "only features that were met have weights"),
    ("b/bit_precision W1", "", "keys have 64 bits and do not collide; --store hashed:{} has a fixed size"),
    ("hash N", "", "whole numbers in the unnamed namespace are ids, other names are hashed"),
    ("a/audit", "", "thresher predict MODEL DATA --output explain shows the terms of predictions"),
    ("bfgs", "", "rows are learned one by one; thresher boost DATA -m MODEL solves to the optimum"),
    ("link LINK", "", "it changes what -p prints, and only losses of classes have probabilities"),
    ("invert_hash N readable_model N", "--names", ""),
    (
        "binary daemon d/data N early_terminate W1 f/final_regressor N foreground holdout_off"
        " holdout_period W2 i/initial_regressor N no_stdin passes W1 port W0 p/predictions N"
        " probabilities r/raw_predictions N t/testonly",
        *("", ""),
    ),
    (
        "adaptive coin cubic N... ftrl ftrl_alpha R1 ftrl_beta R0 initial_t R0 interactions N..."
        " invariant l1 R0 l2 R0 l/learning_rate R1 loss_function LOSS multilabel_oaa W2 ngram W1..."
        " normalized oaa W2 power_t R0 q/quadratic N... quantile_tau TAU sgd",
        *("", _KEPT),
    ),
    (
        "adax affix N... autolink N boosting N chain_hash confidence conjugate_gradient constant N"
        " decay_learning_rate N dictionary N... dictionary_path N... driver_output_off dropout examples N"
        " expectile_q N experimental_full_name_interactions N... feature_limit N... feature_mask N"
        " freegrad hash_seed N hessian_on hexfloat_weights holdout_after N id N ignore N... ignore_linear"
        " N... initial_pass_length N initial_weight N inpass input_feature_regularizer N json keep N..."
        " l1_state N l2_state N leave_duplicate_interactions limit_output N log_level N log_output N"
        " logistic_max N logistic_min N lrq N... lrqdropout lrqfa N marginal N max_prediction N meanfield"
        " mem N min_prediction N multitask named_labels N nn N no_bias_regularization normal_weights"
        " num_children N oaa_subsample N OjaNewton output_feature_regularizer_binary N"
        " output_feature_regularizer_text N permutations pid_file N pistol port_file N predict_only_model"
        " random_weights rank N redefine N... replay_b N replay_c N replay_m N save_per_pass scores skips"
        " N... sort_features spelling N... stage_poly stage_size N strict_parse svrg termination N top N"
        " truncated_normal_weights",
        *("", _NONE),
    ),
    (
        "active active_cover audit_regressor N automl N cats N cats_pdf N cats_tree N cb N cb_adf"
        " cb_explore N cb_explore_adf cbify N cbify_ldf cbzo ccb_explore_adf classweight N cs_active N"
        " csoaa N csoaa_ldf N csv dsjson ect N emt explore_eval experimental_igl flatbuffer h/help ksvm lda N"
        " log_multi N memory_tree N multiworld_test N new_mf N ot N plt N recall_tree N search N"
        " search_task N slates version warm_cb N wap_ldf N",
        *("", _TASK),
    ),
)
"""Options of Vowpal Wabbit (letter/name, the kind of value; ...: several), words for them, a remark"""
_LINKS = {"identity": "margin", "logistic": "probability", "poisson": "label"}
_KINDS: dict[str, kinds.Kind] = {
    "N": kinds.Text(kinds.text),
    "W0": kinds.Whole(0),
    "W1": kinds.Whole(1),
    "W2": kinds.Whole(2),
    "E": kinds.Whole(2, 999),
    "R0": kinds.Number("a number of at least 0", lambda x: 0 <= x < math.inf),
    "R1": kinds.Number("a number above 0", lambda x: 0 < x < math.inf),
    "TAU": kinds.Number("a number between 0 and 1", lambda x: 0 < x < 1),
    "LINK": kinds.Choice((*_LINKS,)),
    "LOSS": kinds.Choice(("squared", "logistic", "hinge", "quantile", "poisson")),
}
_OPTION = re.compile(r"(?:(\w)/)?(\w{2,})(?: (N|[WR]\d|E|TAU|LINK|LOSS)(\.\.\.)?(?= |$))?")
_KNOWN = {
    found[2]: (found[3] or "", bool(found[4]), words, remark)
    for names, words, remark in _TABLE
    for found in _OPTION.finditer(names)
}
_LETTERS = {found[1]: found[2] for names, *_ in _TABLE for found in _OPTION.finditer(names) if found[1]}
_HEAD = 1 << 20
_VALUED = re.compile(rb"\|([^\s|:]*)[^\s|]*[ \t][^|\n]*?:")
_ENDS = re.compile(r"[-<]|.*[./]")
"""A namespace with a word that has a value; a word that is not one more value, but an option or a file"""


def _lettered(size: str) -> tuple[str, str]:
    return ("", size) if size[:1].isdigit() else (size[:1], size[1:])


class _Given(dict[str, list[str]]):
    """Options by name, each with its values, and what is said of them."""

    def __init__(self, words: list[str]) -> None:
        """`UsageError`."""
        super().__init__()
        self.notes, rest = dict[str, None](), deque(enumerate(words, 1))
        if words and os.path.basename(words[0]) == "vw":
            rest.popleft()
        if not rest:
            raise UsageError("COMMAND: expected a command of Vowpal Wabbit, such as 'vw -d DATA -f MODEL'")
        while rest:
            place, word = rest.popleft()
            if word != "<" and not word.strip("();<>|&"):
                raise UsageError(
                    f"word {place}, {word}: give the vw command alone; of the shell, only < FILE"
                )
            name, value = "data", "" if word == "<" else word
            if word.startswith("--"):
                name, _, value = word[2:].partition("=")
            elif word.startswith("-") and word != "-":
                name, value = _LETTERS.get(word[1], word), word[2:]
            if name not in _KNOWN:
                near = "".join(f"; did you mean --{one}?" for one in get_close_matches(name, _KNOWN, 1))
                raise UsageError(f"word {place}, {word}: Vowpal Wabbit has no such option{near}")
            (kind, several, _, remark), values = _KNOWN[name], [value] if value else []
            while kind and rest:
                after = rest[0][1]
                if values and (not several or _ENDS.match(after) or os.path.isfile(after)):
                    break
                values.append(rest.popleft()[1])
            if remark == _TASK or bool(kind) != bool(values):
                wrong = "a value is missing" if kind else "it takes no value"
                raise UsageError(f"word {place}, {word}: {_TASK if remark == _TASK else wrong}")
            for value in values if kind else ():
                try:  # the letter of a namespace may stand before the length of n-grams
                    _KINDS[kind].read(_lettered(value)[1] if name == "ngram" else value)
                except kinds.WrongValueError as error:
                    wanted = f"expected {error.wanted}, found '{value}'{error.near}"
                    raise UsageError(f"--{name}: {wanted}") from error
            self.setdefault(name, []).extend(values or [""])
            if remark not in ("", _KEPT):
                self.say(name, remark.format(*values))

    def has(self, *names: str) -> bool:
        """Whether one of these options was given."""
        return not self.keys().isdisjoint(names)

    def last(self, name: str, otherwise: str = "") -> str:
        """The value of an option: the last that was given."""
        return self.get(name, [otherwise])[-1]

    def say(self, name: str, remark: str) -> None:
        """Say something of an option."""
        self.notes[f"--{name}: {remark}"] = None

    def leave_out(self, why: str, *names: str) -> None:
        """Leave options out, and say so."""
        if found := [f"--{name}" for name in [*self] if name in names and self.pop(name)]:
            self.notes[f"{', '.join(found)}: left out, since {why}"] = None


def _commands(given: _Given) -> list[str]:
    """The commands, in order. `UsageError`."""
    data, start = given.get("data", ["-"]), given.last("initial_regressor", "vw.model")
    learns = not given.has("testonly")
    if given.has("daemon"):
        port = ["--port", given.last("port")] if given.has("port") else []
        return [line_of("serve", [start], [*port, *(["--learn", "--log", "log"] if learns else [])])]
    where, output = given.last("predictions") or given.last("raw_predictions"), list[str]()
    if given.has("predictions"):
        classes = given.has("binary", "oaa", "multilabel_oaa")
        said = "label" if classes else _LINKS[given.last("link", "identity")]
        said = "probability" if given.has("probabilities") else said
        output = [] if said == "margin" else ["--output", said]
    if not learns:
        name, words = ("predict", [*output, "-o", where]) if where else ("evaluate", [])
        return [line_of(name, [start, *data], words)]
    if where:
        how = " ".join(["thresher predict MODEL DATA", *output])
        given.say("predictions", f"not made while learning: use {how}, on other rows")
    words, model = ["--format", "vw"], given.last("final_regressor", "vw.model")
    if given.has("initial_regressor"):
        given.leave_out(_KEPT, *(name for name, (*_, remark) in _KNOWN.items() if remark == _KEPT))
        words += ["--continue", start]
    else:
        words += [*_recipe(given), *_rule(given), *_features(given, data[0])]
    if given.has("bootstrap"):
        given.leave_out("thresher name MODEL DATA names an ensemble", "invert_hash", "readable_model")
    words += ["--passes", passes := given.last("passes", "1")]
    if passes != "1" and not given.has("holdout_off"):
        period = given.last("holdout_period", "10")
        given.say("passes", f"one of {period} rows is held out, as there; without --holdout all are learned")
        words += ["--holdout", f"every-{period}th", "--early-stop", given.last("early_terminate", "3")]
    own = [_KNOWN[name][2].format(given.last(name)) for name in given]
    words += [word for one in dict.fromkeys(own) for word in one.split()]
    files = [given.last(name) for name in ("invert_hash", "readable_model") if name in given]
    made = line_of("train", [*data, "-m", model], words)
    return [made, *(f"{line_of('weights', [model], [])} > {shlex.quote(file)}" for file in files)]


def _recipe(given: _Given) -> list[str]:
    """Loss and outputs."""
    loss, outputs = given.last("loss_function", "squared"), list[str]()
    if given.has("oaa"):
        outputs = ["--outputs", f"classes:{given.last('oaa')}"]
    elif given.has("multilabel_oaa"):
        outputs = ["--outputs", f"labels:0-{int(given.last('multilabel_oaa')) - 1}"]
    if outputs and loss not in ("logistic", "hinge"):
        given.say("loss_function", f"logistic is learned, since {loss} cannot be")
        loss = "logistic"
    loss = "softmax" if given.keys() >= {"oaa", "probabilities"} else loss
    return ["--loss", loss + f":tau={given.last('quantile_tau', '0.5')}" * (loss == "quantile"), *outputs]


def _rule(given: _Given) -> list[str]:
    """Rule and rate. `UsageError`."""
    l1, l2, eta = given.last("l1", "0"), given.last("l2", "0"), given.last("learning_rate", "0.5")
    penalised, steps = given.has("l1", "l2"), given.has("adaptive", "normalized", "invariant", "sgd")
    if given.has("ftrl"):
        own = "".join(
            f"{name[5:]}={given.last(name)}," for name in ("ftrl_alpha", "ftrl_beta") if name in given
        )
        return ["--rule", f"ftrl:{own}l1={l1},l2={l2}"]
    if given.has("coin"):
        if penalised:
            given.say("coin", "the rule coin has no penalty")
        return ["--rule", "coin"]
    adaptive, normalized = (given.has(name) or not steps for name in ("adaptive", "normalized"))
    if normalized and not penalised:
        return ["--rule", f"normalized:eta={eta}{'' if adaptive else ',adaptive=false'}"]
    if normalized:
        given.say("l1", "the rule normalized has no penalty; the default, ft-ftrl, has: leave --rule out")
    if adaptive:
        return ["--rule", f"adagrad-fobos:eta={eta},l1={l1},l2={l2}"]
    rule, initial = f"fobos:l1={l1},l2={l2}" if penalised else "sgd", given.last("initial_t", "1")
    if not float(initial):
        raise UsageError("--initial_t: with 0 no step is above 0: leave it out, or give a larger number")
    return ["--rule", rule, "--rate", f"power:eta0={eta},t0={initial},p={given.last('power_t', '0.5')}"]


def _features(given: _Given, file: str) -> list[str]:
    """Interactions and n-grams; `file` shows the names of namespaces."""
    from thresher.data.feature_specs import as_list
    from thresher.data.features.crossing import namespaces_in
    from thresher.data.files.streams import head_of

    head = head_of(file, _HEAD, {}) if os.path.isfile(file) else b""
    spaces = namespaces_in(head)

    def called(letter: str) -> list[str]:
        """The namespaces that begin with a letter."""
        if letter == ":":
            return ["*"]
        if not (found := [name for name in spaces if name.startswith(letter)]):
            given.notes[f"namespace {letter or 'NAME'}: give its whole name; the data do not show it"] = None
        return found or [letter or "NAME"]

    crossed, texts = dict[tuple[str, ...], list[str]](), dict[str, int]()
    for name in ("quadratic", "cubic", "interactions"):
        for spec in given.get(name, ()):
            if len(spec) not in (2, 3):
                given.say(name, f"{spec} is left out: a product has two or three factors")
                continue
            for factors in product(*map(called, spec)):
                crossed.setdefault(tuple(sorted(factors)), ["--interact", as_list(factors)])
    words = [word for one in crossed.values() for word in one]
    for one in given.get("ngram", ()):
        letter, size = _lettered(one)
        texts |= dict.fromkeys(called(letter), int(size))
    valued = {str(name, "utf-8", "backslashreplace") for name in _VALUED.findall(head)} & texts.keys()
    if valued:
        given.say("ngram", f"left out for {', '.join(sorted(valued))}, whose words have values")
        texts = {name: size for name, size in texts.items() if name not in valued}
    if not texts:
        return words
    longest = max(texts.values())
    if not spaces:
        given.say("ngram", "a word of these namespaces has no value, such as word:2")
    if min(texts.values()) < longest:
        sizes = ", ".join(f"{name} {size}" for name, size in texts.items())
        given.say("ngram", f"one length, {longest}, holds for all; Vowpal Wabbit takes {sizes}")
    spec = f"words=1-{longest},tokens=blanks,case,shortest=1"
    return [*words, "--text", as_list(texts), "--ngrams", spec]


class FromVwCommand(TypedDict, total=False):
    """``thresher from-vw`` has no options."""


_WORDS = Argument(
    "COMMAND...",
    "A command of Vowpal Wabbit: in quotes, or its words after --; with or without vw in front.",
    True,
)


@command(FromVwCommand, _WORDS)
def from_vw(words: list[str], options: Options) -> None:
    """Print the command for what a command of Vowpal Wabbit does; run nothing.

    If the data are there, namespaces get their whole names. What has no counterpart, or needs none, is said
    on standard error.
    """
    line = shlex.shlex(words[0], posix=True, punctuation_chars=True)
    line.whitespace_split, line.commenters = True, ""
    try:
        words = [*line] if len(words) == 1 else words
    except ValueError as error:
        raise UsageError(f"COMMAND: {error}") from error
    given = _Given(words)
    commands = _commands(given)
    for note in given.notes:
        click.echo(f"note: {note}", err=True)
    for one in commands:
        click.echo(one)
