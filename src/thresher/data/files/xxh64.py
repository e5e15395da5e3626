"""XXH64, the published 64-bit content hash (xxhash.com), as one compiled loop."""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.text.words import load_word
from thresher.engine.compile.jit import kernel, scalar

_P1, _P2, _P3, _P4, _P5 = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)
_U1, _U2 = np.uint64(_P1), np.uint64(_P2)
_LEFT, _RIGHT = np.uint64(31), np.uint64(33)
_MASK = (1 << 64) - 1
_STRIPE = 32


@scalar
def _mix_lane(lane, word):
    lane += word * _U2
    return ((lane << _LEFT) | (lane >> _RIGHT)) * _U1


@kernel
def absorb(lanes, start, size):
    """Mix `size` bytes (a multiple of 32) at address `start` into the four uint64 `lanes`."""
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    for at in range(0, size, 32):
        a = _mix_lane(a, load_word(start, at))
        b = _mix_lane(b, load_word(start, at + 8))
        c = _mix_lane(c, load_word(start, at + 16))
        d = _mix_lane(d, load_word(start, at + 24))
    lanes[0], lanes[1], lanes[2], lanes[3] = a, b, c, d


def _turn(word: int, by: int) -> int:
    return ((word << by) | (word >> (64 - by))) & _MASK


def _mixed(word: int) -> int:
    return _turn(word * _P2 & _MASK, 31) * _P1 & _MASK


class Hash64:
    """XXH64 with seed 0 of the bytes passed to `update`, in pieces of any size."""

    def __init__(self) -> None:
        self._lanes = np.array([(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK], np.uint64)
        self._tail = b""
        self.size = 0
        """bytes hashed so far"""

    def update(self, data: Any) -> None:
        """Add the bytes of any contiguous buffer."""
        given = np.frombuffer(data, np.uint8) if len(data) else np.zeros(0, np.uint8)
        self.size += len(given)
        if self._tail:
            missing = min(_STRIPE - len(self._tail), len(given))
            self._tail += given[:missing].tobytes()
            given = given[missing:]
            if len(self._tail) < _STRIPE:
                return
            self._absorb(np.frombuffer(self._tail, np.uint8))
        whole = len(given) // _STRIPE * _STRIPE
        self._absorb(given[:whole])
        self._tail = given[whole:].tobytes()

    def _absorb(self, stripes: NDArray[np.uint8]) -> None:
        if len(stripes):
            absorb(self._lanes, stripes.__array_interface__["data"][0], len(stripes))

    def digest(self) -> int:
        """The hash of the bytes so far."""
        a, b, c, d = (int(lane) for lane in self._lanes)
        if self.size >= _STRIPE:
            total = (_turn(a, 1) + _turn(b, 7) + _turn(c, 12) + _turn(d, 18)) & _MASK
            for lane in (a, b, c, d):
                total = ((total ^ _mixed(lane)) * _P1 + _P4) & _MASK
        else:
            total = _P5
        return _finished((total + self.size) & _MASK, self._tail)


def _finished(total: int, tail: bytes) -> int:
    at = 0
    while at + 8 <= len(tail):
        total ^= _mixed(int.from_bytes(tail[at : at + 8], "little"))
        total = (_turn(total, 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= len(tail):
        total ^= int.from_bytes(tail[at : at + 4], "little") * _P1 & _MASK
        total = (_turn(total, 23) * _P2 + _P3) & _MASK
        at += 4
    for code in tail[at:]:
        total = _turn(total ^ code * _P5 & _MASK, 11) * _P1 & _MASK
    total = (total ^ total >> 33) * _P2 & _MASK
    total = (total ^ total >> 29) * _P3 & _MASK
    return total ^ total >> 32
