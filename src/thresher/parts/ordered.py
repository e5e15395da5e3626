"""A common threshold over all coordinates: a heap of the live ones that lies in columns of the state.

Rows hold v (the weight, moved away from zero by the threshold so far), `key` = |v| as it is counted,
`place` (of the row in the heap, from 1; 0: not in it) and `heap` (the row that stands at this place of
the heap: the one column that belongs to a number, not to a row). The least key stands first. A weight is
v moved back by the threshold as it is now, zero once |v| is no larger: nothing has to be written when the
threshold moves, and a coordinate leaves the heap when it dies.
"""

from __future__ import annotations

from thresher.engine.jit import helper, scalar

V, KEY, PLACE, HEAP = range(4)
COLUMNS = ("v", "key", "place", "heap")


@scalar
def beyond(v, threshold):
    """The weight: v less the threshold, zero where |v| is no larger."""
    return v - max(-threshold, min(v, threshold))


@scalar
def raised(w, threshold):
    """The v of a weight."""
    return w + threshold if w > 0 else w - threshold


@helper
def sift_up(S, place, row):
    """Put `row` at `place` or above it."""
    key = S[row, KEY]
    while place > 1:
        parent = place >> 1
        other = int(S[parent - 1, HEAP])
        if S[other, KEY] <= key:
            break
        S[place - 1, HEAP], S[other, PLACE] = other, place
        place = parent
    S[place - 1, HEAP], S[row, PLACE] = row, place


@helper
def sift_down(S, place, row, count):
    """Put `row` at `place` or below it, in a heap of `count`."""
    key = S[row, KEY]
    while 2 * place <= count:
        child = 2 * place
        other = int(S[child - 1, HEAP])
        if child < count:
            second = int(S[child, HEAP])
            if S[second, KEY] < S[other, KEY]:
                child, other = child + 1, second
        if S[other, KEY] >= key:
            break
        S[place - 1, HEAP], S[other, PLACE] = other, place
        place = child
    S[place - 1, HEAP], S[row, PLACE] = row, place


@helper
def remove(S, row, count):
    """Take `row` out of a heap of `count`."""
    place, last = int(S[row, PLACE]), int(S[count - 1, HEAP])
    S[row, PLACE] = 0.0
    if last != row:
        if S[last, KEY] < S[row, KEY]:
            sift_up(S, place, last)
        else:
            sift_down(S, place, last, count - 1)


@helper
def rekey(S, row, key, count):
    """Give a row of the heap another key."""
    place, before = int(S[row, PLACE]), S[row, KEY]
    S[row, KEY] = key
    if key < before:
        sift_up(S, place, row)
    else:
        sift_down(S, place, row, count)


@helper
def push(S, row, key, count):
    """Put `row` into a heap of `count`."""
    S[row, KEY] = key
    sift_up(S, count + 1, row)


@helper
def rebuild(S, rows):
    """Make a heap again of the rows that were in one; returns how many those are."""
    count = 0
    for row in range(rows):
        if S[row, PLACE] > 0:
            S[count, HEAP] = row
            count += 1
            S[row, PLACE] = count
    for place in range(count >> 1, 0, -1):
        sift_down(S, place, int(S[place - 1, HEAP]), count)
    return count


@helper
def absorb(S, rows, begin, end, threshold, total, count, limit):
    """Take up the rows just written: ``(total, count)`` of the live weights, `total` the sum of them.

    A coordinate that was dead comes to life only if it exceeds what the live ones alone make the next
    threshold: any part of them is a lower bound (Michelot 1986; Condat 2016), so most never enter.
    """
    for p in range(begin, end):
        row = rows[p]
        if S[row, PLACE] > 0:
            key = abs(S[row, V])
            total += key - S[row, KEY]
            if key > threshold:
                rekey(S, row, key, count)
            else:
                remove(S, row, count)
                count -= 1
    for p in range(begin, end):
        row = rows[p]
        size = abs(S[row, V]) - threshold
        if S[row, PLACE] == 0 and size > 0 and size * (count + 1) > total + size - limit:
            push(S, row, abs(S[row, V]), count)
            total += size
            count += 1
    return total, count


@helper
def lower(S, threshold, total, count, limit):
    """How far the threshold must rise for the live weights to add up to `limit`, and how many live on.

    Takes those that die out of the heap: the projection of Duchi et al. (ICML 2008), Figure 2, on an
    ordered set.
    """
    while count > 0:
        least = S[int(S[0, HEAP]), KEY] - threshold
        if least * count > total - limit:
            break
        remove(S, int(S[0, HEAP]), count)
        total -= least
        count -= 1
    return ((total - limit) / count if count > 0 else 0.0), count
