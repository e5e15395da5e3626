"""svmlight text: good and bad lines, and a simple reference parser."""

import re

import numpy as np

from tests.data.lines import Tested, Variant
from tests.data.reference import NUMBER, BadLineError, Row, float32_of, label_of
from thresher.data.layout import Layout


def _whole(text: str) -> int:
    if not re.fullmatch(r"\+?[0-9]+", text):
        raise BadLineError(text)
    return int(text)


def _head(tokens: list[str], domain: str, weighted: bool) -> tuple[np.float32, np.float32]:
    """Label and weight, removed from the front of the tokens of a line."""
    first = tokens[0]
    begins_feature = first.startswith("qid:") or (not weighted and re.match(r"\+?[0-9]+:", first))
    if domain == "open" and begins_feature:
        return np.float32(0), np.float32(1)
    label_text, colon, weight_text = tokens.pop(0).partition(":")
    if colon and not weighted:
        raise BadLineError(first)
    label = label_of(label_text, domain)
    weight = float32_of(weight_text) if colon else np.float32(1)
    if weight < 0:
        raise BadLineError(weight_text)
    return label, weight


def parse_line(line: bytes, domain: str, weighted: bool = False) -> Row | None:
    """The example on a line (without its newline), or None; raises `BadLineError`.

    With `weighted`, the line may begin with ``label:weight``.
    """
    text = line.removesuffix(b"\r").partition(b"#")[0].decode("latin-1")
    tokens = [token for token in re.split("[ \t]+", text) if token]
    if not tokens:
        return None
    label, weight = _head(tokens, domain, weighted and text[0] not in " \t")
    if tokens and tokens[0].startswith("qid:") and not NUMBER.fullmatch(tokens.pop(0)[4:]):
        raise BadLineError(text)
    features: dict[int, np.float32] = {}
    keys = []
    for token in tokens:
        key_text, _, value_text = token.partition(":")
        key, value = _whole(key_text), float32_of(value_text)
        if key >= 2**64:
            raise BadLineError(token)
        with np.errstate(over="ignore"):
            features[key] = features[key] + value if key in features else value
        keys.append(key)
    if not all(np.isfinite(value) for value in features.values()):
        raise BadLineError(text)
    return Row(label, weight, dict(sorted(features.items())), keys != sorted(set(keys)))


def some_svmlight(count: int, seed: int) -> list[bytes]:
    random, lines = np.random.default_rng(seed), []
    for _ in range(count):
        ids = random.integers(0, 2 ** int(random.integers(1, 64)), random.integers(0, 9), np.uint64)
        head = str(random.choice(["-1", "1", "+1", "0 qid:3", "1 qid:-1", "1 qid:1.0 +7:1"]))
        lines.append(" ".join([head, *(f"{i}:{random.normal():.6g}" for i in ids)]).encode())
    return lines


def _weighted(count: int, seed: int) -> list[bytes]:
    lines = some_svmlight(count, seed)
    return [line.replace(b"+1", b"1:0.5").replace(b"0 qid", b"-1:2 qid") for line in lines]


_BAD = (
    *(b"x 1:1", b"nan 1:1", b"3 1:1", b"1x 1:1", b"1e39 1:1", b"1:-1 1:1", b"1:x 1:1", b"1 qid:x 1:1"),
    *(b"1 5", b"1 5:", b"1 5:x", b"1 5:inf", b"1 5:1e39", b"1 -3:1", b"1 w:1", b"1 18446744073709551616:1"),
    *(b"1 5:1x", b"1 3:3e38 3:3e38", b"\xff\xfe", b"1 5:1.5.5", b"1 3:1\r 4:1"),
    *(b"1:1 3:1", b" 1:1 3:1", b"qid:1 3:1", b"1 +:1", b"1 qid:: 3:1", b"1 3:1\0", b"1 3:1 \0 4:1", b"1\0"),
)
_TOKENS = (
    *(b"1", b"-1", b":", b"1:", b":0.5", b":-1e-3", b"12345678:0.12345678", b"qid:1", b"#", b"1e39", b"nan"),
    *(b"18446744073709551616:", b"-", b".", b"+", b"\t", b"\r", b"\0", b"1:0.5", b"qid:-1.5"),
)


def _parse(line: bytes, domain: str, layout: Layout) -> Row | None:
    return parse_line(line, domain, layout.label_weights)


_WEIGHTS = Layout("svmlight", label_weights=True)
TESTED = Tested(
    some_svmlight,
    _BAD,
    (b"", b" \t", b"# words 1:2", b"\r"),
    _parse,
    _TOKENS,
    variants={"label weights": Variant(_WEIGHTS, _weighted, but=(b"1:1 3:1",))},
    fuzzed={"weights": _WEIGHTS},
)
