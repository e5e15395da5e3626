"""``thresher from-vw``: the command for what a command of Vowpal Wabbit does."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections import deque
from difflib import get_close_matches
from itertools import product
from typing import NamedTuple, TypedDict

import click

from thresher.cli.parser import Argument, command
from thresher.options import kinds
from thresher.options.option import Options, UsageError
from thresher.options.option import command as line_of

_NONE, _TASK = "left out, since it has no counterpart", "thresher has no counterpart, so there is no command"
_MODEL = "the model keeps what it has"
_TABLE = (
    ("quiet", "-q", ""),
    ("random_seed N", "--seed {}", _MODEL),
    ("noconstant", "--no-intercept", _MODEL),
    ("bootstrap N", "--ensemble {}", _MODEL),
    ("c/cache cache_file N", "", "rows are kept for later passes without it"),
    ("k/kill_cache", "", "a cache that does not fit the data is never used"),
    ("compressed", "", "compression is recognised by content"),
    ("save_resume preserve_performance_counters", "", "a model keeps all that it needs to go on"),
    ("P/progress N", "", "the table has lines at 1, 2, 4 and so on, or every --report-every N rows"),
    ("sparse_weights", "", "only features that were met have weights"),
    ("b/bit_precision N", "", "keys have 64 bits and do not collide; --store hashed:{} has a fixed size"),
    ("hash N", "", "whole numbers in the unnamed namespace are ids, other names are hashed"),
    ("a/audit", "", "thresher predict MODEL DATA --output explain shows the terms of predictions"),
    (
        "bfgs binary daemon d/data N early_terminate N f/final_regressor N foreground h/help holdout_off"
        " holdout_period N i/initial_regressor N invert_hash N link N no_stdin passes N port N"
        " p/predictions N probabilities r/raw_predictions N readable_model N t/testonly version",
        *("", ""),
    ),
    (
        "adaptive coin cubic N... ftrl ftrl_alpha N ftrl_beta N initial_t N interactions N... invariant l1 N"
        " l2 N l/learning_rate N loss_function N multilabel_oaa N ngram N... normalized oaa N power_t N"
        " q/quadratic N... quantile_tau N sgd",
        *("", _MODEL),
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
        " csoaa N csoaa_ldf N csv dsjson ect N emt explore_eval experimental_igl flatbuffer ksvm lda N"
        " log_multi N memory_tree N multiworld_test N new_mf N ot N plt N recall_tree N search N"
        " search_task N slates warm_cb N wap_ldf N",
        *("", _TASK),
    ),
)
"""Options of Vowpal Wabbit (letter/name; N: a value; N...: several), words for them, a remark"""
_LOSSES = {one: one for one in ("squared", "logistic", "hinge", "quantile", "poisson")}
_LOSSES |= {"classic": "squared", "expectile": "squared"}
_KINDS: dict[str, kinds.Kind] = {
    name: kind
    for names, kind in (
        ("passes early_terminate ngram bit_precision", kinds.Whole(1)),
        ("oaa multilabel_oaa bootstrap holdout_period", kinds.Whole(2)),
        ("random_seed port", kinds.Whole(0)),
        ("learning_rate initial_t ftrl_alpha", kinds.Number("a number above 0", lambda x: 0 < x < math.inf)),
        ("l1 l2 ftrl_beta power_t", kinds.Number("a number of at least 0", lambda x: 0 <= x < math.inf)),
        ("quantile_tau", kinds.Number("a number between 0 and 1", lambda x: 0 < x < 1)),
        ("link", kinds.Choice(("identity", "logistic", "poisson", "glf1"))),
        ("loss_function", kinds.Choice((*_LOSSES,))),
    )
    for name in names.split()
}
_HEAD = 1 << 20
_VALUED = re.compile(rb"\|([^\s|:]*)[^\s|]*[ \t][^|\n]*?:")
_ENDS = re.compile(r"[-<]|.*[./]")
"""A namespace with a word that has a value; a word that is not one more value, but an option or a file"""


class _Known(NamedTuple):
    letter: str
    takes: str
    words: str
    remark: str


_KNOWN = {
    found[2]: _Known(found[1] or "", found[3] or "", words, remark)
    for names, words, remark in _TABLE
    for found in re.finditer(r"(?:(\w)/)?(\w\w+)(?: (N(?:\.\.\.)?))?", names)
}
_LETTERS = {one.letter: name for name, one in _KNOWN.items() if one.letter}


def _given(words: list[str]) -> dict[str, list[str]]:
    """The options by name, each with its values. `UsageError`."""
    found, rest = dict[str, list[str]](), deque(enumerate(words, 1))
    if words and os.path.basename(words[0]) == "vw":
        rest.popleft()
    if not rest:
        raise UsageError("COMMAND: expected a command of Vowpal Wabbit, such as 'vw -d DATA -f MODEL'")
    while rest:
        place, word = rest.popleft()
        if word != "<" and not word.strip("();<>|&"):
            raise UsageError(f"word {place}, {word}: give the vw command alone; of the shell, only < FILE")
        name, value = "data", "" if word == "<" else word
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
        elif word.startswith("-") and word != "-":
            name, value = _LETTERS.get(word[1], word), word[2:]
        if name not in _KNOWN:
            near = "".join(f"; did you mean --{one}?" for one in get_close_matches(name, _KNOWN, 1))
            raise UsageError(f"word {place}, {word}: Vowpal Wabbit has no such option{near}")
        _, takes, _, remark = _KNOWN[name]
        values = [value] if value else []
        while takes and rest:
            after = rest[0][1]
            if values and (takes == "N" or _ENDS.match(after) or os.path.isfile(after)):
                break
            values.append(rest.popleft()[1])
        if remark == _TASK or bool(takes) != bool(values):
            wrong = _TASK if remark == _TASK else "a value is missing" if takes else "it takes no value"
            raise UsageError(f"word {place}, {word}: {wrong}")
        for value in values if name in _KINDS else ():
            try:
                _KINDS[name].read(value if takes == "N" or value[:1].isdigit() else value[1:])
            except kinds.WrongValueError as error:
                raise UsageError(f"--{name}: expected {error.wanted}, found '{value}'{error.near}") from error
        found.setdefault(name, []).extend(values or [""])
    return found


class _Translation:
    """The commands for some options, and what is said of these."""

    def __init__(self, given: dict[str, list[str]]) -> None:
        from thresher.data.features.crossing import namespaces_in
        from thresher.data.files.streams import head_of

        self._given, self._files, self.remarks = given, given.get("data", ["-"]), list[str]()
        first = self._files[0]
        head = head_of(first, _HEAD, {}) if os.path.isfile(first) else b""
        self._spaces = namespaces_in(head, "vw")
        self._valued = {str(name, "utf-8", "backslashreplace") for name in _VALUED.findall(head)}
        for name, values in given.items():
            if _KNOWN[name].remark not in ("", _MODEL):
                self._say(name, _KNOWN[name].remark.format(*values))

    def _say(self, name: str, remark: str) -> None:
        self.remarks.append(f"--{name}: {remark}")

    def _has(self, *names: str) -> bool:
        return any(name in self._given for name in names)

    def _last(self, name: str, otherwise: str = "") -> str:
        return self._given.get(name, [otherwise])[-1]

    def commands(self) -> list[str]:
        """The commands, in order. `UsageError`."""
        if self._has("help", "version"):
            return [f"thresher --{'help' if self._has('help') else 'version'}"]
        start, model = self._last("initial_regressor", "vw.model"), self._last("final_regressor", "vw.model")
        if self._has("daemon"):
            words = ["--port", self._last("port")] if self._has("port") else []
            words += [] if self._has("testonly") else ["--learn", "--log", "log"]
            return [line_of("serve", [start], words)]
        if self._has("testonly"):
            where = self._last("predictions") or self._last("raw_predictions")
            output = self._output() if self._has("predictions") else []
            words = [*output, "-o", where] if where else []
            return [line_of("predict" if where else "evaluate", [start, *self._files], words)]
        if self._has("predictions", "raw_predictions"):
            how = " ".join(["thresher predict MODEL DATA", *self._output()])
            self._say("predictions", f"not made while learning: use {how}, on other rows")
        elif self._last("link", "identity") != "identity":
            self._say("link", "it changes predictions, not what is learned: give it with -t, -i and -p")
        files = [self._last(name) for name in ("invert_hash", "readable_model") if self._has(name)]
        if files[1:]:
            self._say("readable_model", f"{files[0]} has the same weights")
        boosts, words = self._has("bfgs"), ["--format", "vw"]
        out, why = {"initial_regressor", "random_seed", "bootstrap"}, "thresher boost has no counterpart"
        if self._has("initial_regressor") and not boosts:
            words += ["--continue", start]
            out, why = {name for name, one in _KNOWN.items() if one.remark == _MODEL}, _MODEL
        else:
            words += self._recipe() + self._features()
            out = out if boosts else set()
        if left := [f"--{name}" for name in self._given if name in out]:
            self.remarks.append(f"{', '.join(left)}: left out, since {why}")
        words += self._passes() + (["--names"] if files and not boosts else [])
        for name in self._given:
            words += [] if name in out else _KNOWN[name].words.format(self._last(name)).split()
        made = line_of("boost" if boosts else "train", [*self._files, "-m", model], words)
        return [made, *(f"{line_of('weights', [model], [])} > {shlex.quote(file)}" for file in files[:1])]

    def _output(self) -> list[str]:
        """What is predicted, if not margins."""
        link, classes = self._last("link"), self._has("binary", "oaa", "multilabel_oaa")
        if link == "glf1":
            self._say("link", "glf1 has no counterpart: margins")
        if self._has("probabilities") or (link == "logistic" and not classes):
            return ["--output", "probability"]
        return ["--output", "label"] if classes or link == "poisson" else []

    def _passes(self) -> list[str]:
        if self._has("bfgs"):
            self._say("bfgs", "thresher boost ends at the optimum, however many passes that takes")
            return []
        words, period = ["--passes", self._last("passes", "1")], self._last("holdout_period", "10")
        if words[1] == "1" or self._has("holdout_off"):
            return words
        self._say("passes", f"one of {period} rows is held out, as there; without --holdout all are learned")
        return [*words, "--holdout", f"every-{period}th", "--early-stop", self._last("early_terminate", "3")]

    def _recipe(self) -> list[str]:
        """Loss, outputs, rule and rate. `UsageError`."""
        rules = [f"--{name}" for name in ("bfgs", "coin", "ftrl", "sgd") if self._has(name)]
        if rules[1:]:
            raise UsageError(f"{', '.join(rules)}: give only one of them")
        name, outputs = self._last("loss_function", "squared"), list[str]()
        if self._has("quantile_tau") and name != "quantile":
            raise UsageError("--quantile_tau: it needs --loss_function quantile")
        if name == "expectile":
            self._say("loss_function", "expectile has no counterpart: squared")
        loss = _LOSSES[name]
        if self._has("oaa"):
            outputs = ["--outputs", f"classes:{self._last('oaa')}"]
        elif self._has("multilabel_oaa"):
            outputs = ["--outputs", f"labels:0-{int(self._last('multilabel_oaa')) - 1}"]
        boosts_hinge = loss == "hinge" and self._has("bfgs")
        if boosts_hinge or (outputs and loss not in ("logistic", "hinge")):
            self._say("loss_function", f"logistic is learned, since {loss} cannot be")
            loss = "logistic"
        loss = "softmax" if self._has("oaa") and self._has("probabilities") else loss
        tau = f":tau={self._last('quantile_tau', '0.5')}" if loss == "quantile" else ""
        return ["--loss", loss + tau, *outputs, *self._rule()]

    def _rule(self) -> list[str]:
        has, last = self._has, self._last
        l1, l2, eta = last("l1", "0"), last("l2", "0"), last("learning_rate", "0.5")
        power = f"power:eta0={eta},t0={last('initial_t', '1')},p={last('power_t', '0.5')}"
        if has("bfgs"):
            return ["--l1", l1, "--l2", l2]
        if has("ftrl"):
            own = "".join(f"{one}={last(f'ftrl_{one}')}," for one in ("alpha", "beta") if has(f"ftrl_{one}"))
            return ["--rule", f"ftrl:{own}l1={l1},l2={l2}"]
        if has("coin"):
            if has("l1", "l2"):
                self._say("coin", "the rule coin has no penalty")
            return ["--rule", "coin"]
        alone = not has("adaptive", "normalized", "invariant", "sgd")
        adaptive, normalized = alone or has("adaptive"), alone or has("normalized")
        if normalized and not has("l1", "l2"):
            return ["--rule", f"normalized:eta={eta}{'' if adaptive else ',adaptive=false'}"]
        if normalized:
            self._say("l1", "the rule normalized has no penalty; the default, ft-ftrl, has: leave --rule out")
        if adaptive:
            return ["--rule", f"adagrad-fobos:eta={eta},l1={l1},l2={l2}"]
        rule = f"fobos:l1={l1},l2={l2}" if has("l1", "l2") else "sgd"
        return ["--rule", rule, "--rate", power]

    def _features(self) -> list[str]:
        """Interactions and n-grams."""
        from thresher.data.feature_specs import as_list

        words, crossed, texts = list[str](), set[tuple[str, ...]](), dict[str, int]()
        for name in ("quadratic", "cubic", "interactions"):
            for spec in self._given.get(name, ()):
                if len(spec) not in (2, 3):
                    self._say(name, f"{spec} is left out: a product has two or three factors")
                    continue
                for factors in product(*map(self._called, spec)):
                    if tuple(sorted(factors)) not in crossed:
                        crossed.add(tuple(sorted(factors)))
                        words += ["--interact", as_list(factors)]
        for one in self._given.get("ngram", ()):
            letter, size = ("", one) if one[0].isdigit() else (one[0], one[1:])
            named = self._called(letter) if letter or not self._spaces else self._spaces
            texts |= dict.fromkeys(named, int(size))
        if valued := self._valued & texts.keys():
            self._say("ngram", f"left out for {', '.join(sorted(valued))}, whose words have values")
            texts = {name: size for name, size in texts.items() if name not in valued}
        if texts:
            longest = max(texts.values())
            if not self._spaces:
                self._say("ngram", "a word of these namespaces has no value, such as word:2")
            if min(texts.values()) < longest:
                sizes = ", ".join(f"{name} {size}" for name, size in texts.items())
                self._say("ngram", f"one length, {longest}, holds for all; Vowpal Wabbit takes {sizes}")
            spec = f"words=1-{longest},tokens=blanks,case,shortest=1"
            words += ["--text", as_list(texts), "--ngrams", spec]
        return words

    def _called(self, letter: str) -> list[str]:
        """The namespaces that begin with a letter."""
        if letter == ":":
            return ["*"]
        found = [name for name in self._spaces if name.startswith(letter)]
        if not found:
            self.remarks.append(f"namespace {letter or 'NAME'}: give its whole name; the data do not show it")
        return found or [letter or "NAME"]


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
    made = _Translation(_given(words))
    commands = made.commands()
    for remark in dict.fromkeys(made.remarks):
        click.echo(f"note: {remark}", err=True)
    for one in commands:
        click.echo(one)
