"""Loops over examples before their keys become rows: copies, running scales, admission.

A rest is what float32 loses of a large number: a value x with |x| >= `FAR` of a column that may be centred is
stored as float32(x), and the rest x - float32(x) stands beside it, if that is not 0. Centring subtracts the
mean from the sum of both. A rest of NaN says that the number, in a matrix, is missing.

The origin of a column could not be taken from its first row instead: the model would then depend on which
rows are held out. What float32 loses is decided by the cell alone.

Admission counts in blocks: the four counters of a key share a cache line, so there is one miss instead of
four. A separate loop prefetches the lines of a row before the loop that counts, because a branch on the
content of a line would otherwise wait for each. If most features are new and the 16 MiB do not fit in the CPU
cache, this takes 36 ns per non-zero; 95 if the filter starts 16 bytes after the start of a cache line, as
NumPy's arrays do; 120 or more without the prefetch loop. If the filter is in the cache, it takes 8 or 9.
Raising only the lowest counters reduces false positives and never undercounts.
"""

from __future__ import annotations

import numpy as np

from thresher.engine.compile.jit import kernel, scalar
from thresher.engine.lookup import fetch, find, find_or_add, mix, scatter

FAR = 2.0**16
"""Below this size, no number has a rest: float32 keeps differences of 1/256 there."""
FARTHEST = 2.0**70
"""From this size on, no number has one, since digits of text may not be known to float64."""
_AHEAD, _LINE = 4, 8
"""How many rows ahead to prefetch; numbers of eight bytes in a cache line."""
_ONE = np.uint64(1)


@kernel
def copy_rows(starts, indices, data, rows, indptr, keys, values):
    """Copy `rows` of CSR arrays to the places in `indptr`."""
    for i in range(len(rows)):
        if i + _AHEAD < len(rows):
            for k in range(starts[rows[i + _AHEAD]], starts[rows[i + _AHEAD] + 1], _LINE):
                fetch(indices, np.uint64(k))
                fetch(data, np.uint64(k))
        begin, to = np.uint64(starts[rows[i]]), np.uint64(indptr[i])
        for k in range(indptr[i + 1] - indptr[i]):
            keys[to + np.uint64(k)] = indices[begin + np.uint64(k)]
            values[to + np.uint64(k)] = data[begin + np.uint64(k)]


@scalar
def rest_of(wide, value):
    """The rest (float32) of the float64 `wide`, which is stored as the float32 `value`; 0: none."""
    if FAR <= abs(value) < FARTHEST:
        return np.float32(wide - np.float64(value))
    return np.float32(0)


@scalar
def note_rest(far, key, wide, value):
    """Add the rest of a number, if any, to the list `far`: (n + 1, 2) rows and keys, and (n + 1,) rests.

    The first entry of each is not one: there is how many there are, and the row of those to come.
    """
    places, rests = far
    rest = rest_of(wide, value)
    if rest != np.float32(0):
        places[0, 0] += 1
        places[places[0, 0], 0], places[places[0, 0], 1] = places[0, 1], np.int64(key)
        rests[places[0, 0]] = rest


@scalar
def keep_rests(far, row):
    """Keep in a list of rests only those of rows before `row`."""
    places, rests = far
    count, places[0, 0] = places[0, 0], 0
    for k in range(1, count + 1):
        if places[k, 0] < row:
            places[0, 0] += 1
            kept = places[0, 0]
            places[kept, 0], places[kept, 1], rests[kept] = places[k, 0], places[k, 1], rests[k]


@kernel
def place_rests(rows, own, rests, indptr, keys, out):
    """Write `rests` (m,) to `out` (nnz,), beside the keys `own` (m,) of `rows` (m,) that exist."""
    for k in range(rows.size):
        if 0 <= rows[k] < indptr.size - 1:
            low, high = indptr[rows[k]], indptr[rows[k] + 1]
            while low < high:
                middle = (low + high) >> 1
                if keys[middle] < own[k]:
                    low = middle + 1
                else:
                    high = middle
            out[low] = rests[k]


LANES, LANE, LINE = np.uint64(4), np.uint64(16), np.uint64(64)
"""A key has a counter in each of four lanes of 16, which together fill one cache line."""
MET, ADMITTED = range(2)  # columns of `counts`
ROWS, MEAN, SQUARES, MISSING = range(4)  # columns of `sums`
COUNT, ZEROS, CENTRE = range(3)  # columns of `means`
SPARE = 2.0
"""A column may be zero in this many examples, or in a tenth of them, and still be centred."""
UNDECIDED = 100.0
"""After this many examples it is settled which columns are centred."""


@kernel
def scale_by_largest(largest, columns, values, out):
    """Write ``x / largest[c]`` to `out`, after updating `largest` (columns + 1) with |x|; x where c = 0."""
    for p in range(values.size):
        c, x = columns[p], float(values[p])
        if c > 0:
            largest[c] = max(largest[c], abs(x))
            if largest[c] > 0.0:
                x = x / largest[c]
        out[p] = x


@scalar
def pass_zeros(sums, c, rows):
    """Bring column c up to the first `rows` examples: those since its last value are zeros.

    Merges the mean and the sum of squared deviations of two groups: Chan, Golub and LeVeque (1983), 2.1.
    """
    before, mean = sums[c, ROWS], sums[c, MEAN]
    if before < rows and mean != 0.0:
        sums[c, SQUARES] += mean * mean * before * (rows - before) / rows
        sums[c, MEAN] = mean * before / rows
    sums[c, ROWS] = rows


@scalar
def divisor(sums, c):
    """The standard deviation of column c; if it never varied, its magnitude, or 1 if that is 0 too."""
    if sums[c, SQUARES] > 0.0:
        return np.sqrt(sums[c, SQUARES] / sums[c, ROWS])
    magnitude = abs(sums[c, MEAN])
    return magnitude if magnitude > 0.0 else 1.0


@kernel
def scale_by_deviation(sums, before, columns, indptr, values, out):
    """Write ``x / divisor(sums, c)`` to `out`, after updating `sums` (columns + 1, 3) with x; x where c = 0.

    `before` is the number of examples before the first of these.
    """
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            c, x = columns[p], float(values[p])
            if c > 0:
                pass_zeros(sums, c, float(before + i))
                sums[c, ROWS] += 1.0  # Welford 1962
                away = x - sums[c, MEAN]
                sums[c, MEAN] += away / sums[c, ROWS]
                sums[c, SQUARES] += away * (x - sums[c, MEAN])
                x = x / divisor(sums, c)
            out[p] = x


@kernel
def deviations(sums, rows, out):
    """Write the divisor of each column after `rows` examples to `out` (columns,); changes `sums`."""
    for c in range(1, out.size + 1):
        pass_zeros(sums, c, float(rows))
        out[c - 1] = divisor(sums, c)


@scalar
def measure(means, c, x):
    """Add an example with value x to the mean of column c; whether the column is still centred."""
    count, zeros = means[c, COUNT] + 1.0, means[c, ZEROS]
    if x == 0.0:
        zeros += 1.0
    means[c, COUNT], means[c, ZEROS] = count, zeros
    means[c, CENTRE] += (x - means[c, CENTRE]) / count
    if x == 0.0 and count <= UNDECIDED and zeros > SPARE and zeros > count / 10.0:
        means[c, COUNT] = -1.0
    return means[c, COUNT] > 0.0


@scalar
def number_of(p, gaps, values, rests):
    """The number of entry `p`, with its rest; NaN if it is missing."""
    x = np.float64(values[p])  # numba's float(...) of a float32 is one
    if rests.size > 0:
        x += np.float64(rests[p])
    return np.nan if gaps and x == 0.0 else x


@scalar
def keep_other(p, gaps, keys, values, rests, out, of_kept, kept):
    """Write entry `p`, which is not centred, as entry `out`, unless it is missing; return the next `out`."""
    kept[out], of_kept[out], x = keys[p], values[p], number_of(p, gaps, values, rests)
    return out + np.uint64(x == x)


@kernel
def add_spreads(sums, columns, gaps, values, rests):
    """Add entries of examples to `sums` (columns + 1, 4), which are of the numbers that are there, not 0.

    These have the number of such entries, their mean and squared deviations, and the number that is missing.
    """
    for p in range(values.size):
        c, x = columns[p], number_of(p, gaps, values, rests)
        if x != x:
            sums[c, MISSING] += 1.0
        elif x != 0.0:
            sums[c, ROWS] += 1.0  # Welford 1962
            away = x - sums[c, MEAN]
            sums[c, MEAN] += away / sums[c, ROWS]
            sums[c, SQUARES] += away * (x - sums[c, MEAN])


@kernel
def centre(columns, means, counts, gaps, indptr, keys, values, rests, ends, of_kept, kept):
    """Write examples to `ends`, `kept` and `of_kept`, with x - mean for x in each column; return the number.

    `columns` (m,) are keys, which ascend like those of an example, and `means` (m, 3). If it `counts`,
    x is added to the mean first, and a column that is zero too often leaves: its count becomes -1, and its
    values are raw from this example on. In other columns and in absent ones x is 0, but with `gaps` a stored
    0 is missing: it is neither counted nor kept. What is 0 once it is centred is left out. If there are
    `rests` (nnz,), these are added to x, which is missing if that gives NaN.
    """
    out, one = np.uint64(0), np.uint64(1)
    for i in range(indptr.size - 1):
        p, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for c in range(np.uint64(columns.size)):
            column = columns[c]
            while p < end and keys[p] < column:
                out = keep_other(p, gaps, keys, values, rests, out, of_kept, kept)
                p += one
            there = p < end and keys[p] == column
            x = number_of(p, gaps, values, rests) if there else 0.0
            centred = means[c, COUNT] >= 0.0 and x == x
            if centred and (not counts or measure(means, c, x)):
                kept[out], of_kept[out] = column, np.float32(x - means[c, CENTRE])
                out += np.uint64(of_kept[out] != np.float32(0))
            elif there:
                out = keep_other(p, gaps, keys, values, rests, out, of_kept, kept)
            p += np.uint64(there)
        while p < end:
            out = keep_other(p, gaps, keys, values, rests, out, of_kept, kept)
            p += one
        ends[i + 1] = out
    return out


@kernel
def one_row(given, numbers, small, limit, columns, means, counts, raw, own, tables, most, rows):
    """Sort the features of one row, centre them (see `centre`), and look up their rows in a growing index.

    `given` holds how many there are, how many rows the index uses, and the keys; `numbers` their values. The
    row is written to `own`: ends, values and keys; `rows` are those of its keys. If it `counts`, the row is
    added to the means, and new keys to the index. Returns the number of features, that of rows in use, and
    whether more has to be done before it is looked up: a column has left, a value is `limit` or more in
    magnitude, or the index has no room. If a key is repeated, or is at most `small`, it returns -1 and
    changes nothing.
    """
    keys, (ends, sorted_keys, values, rests) = given[2:], raw
    count, used, more = np.int64(given[0]), np.int64(given[1]), False
    for k in range(1, count):
        key, number, p = keys[k], numbers[k], k
        while p > 0 and keys[p - 1] > key:
            keys[p], numbers[p] = keys[p - 1], numbers[p - 1]
            p -= 1
        keys[p], numbers[p] = key, number
    for k in range(count):
        if keys[k] <= small or (k > 0 and keys[k] == keys[k - 1]):
            return np.int64(-1), used, more
        sorted_keys[k], values[k] = keys[k], np.float32(numbers[k])
        rests[k] = rest_of(numbers[k], values[k])
    ends[1] = count
    total = np.int64(centre(columns, means, counts, False, ends, sorted_keys, values, rests, *own))
    own_ends, own_values, own_keys = own
    for k in range(total):
        more |= abs(own_values[k]) >= limit
    if counts:
        for c in range(columns.size):
            more |= means[c, COUNT] < 0.0
        if not more:
            done, used = find_or_add(*tables, used, most, own_keys, own_ends, 0, 1, rows)
            more = done == 0
    else:
        find(tables[0], tables[1], own_keys[:total], rows[:total])
    return total, used, more


@scalar
def line_of(mixed, size):
    """The start of the cache line of a key (mixed) among `size` counters."""
    return (((mixed >> np.uint64(32)) * (np.uint64(size) // LINE)) >> np.uint64(32)) * LINE


@scalar
def counter_of(mixed, line, lane):
    """The position of the counter of a key (mixed) in a lane of its cache line."""
    lane = np.uint64(lane)
    return line + lane * LANE + ((mixed >> (LANES * lane)) & (LANE - np.uint64(1)))


@kernel
def admit(counters, needed, chance, seed, before, indptr, keys, values, counts, ends, kept, of_kept):
    """Count every key; write the admitted ones to `kept`, their values to `of_kept`, and indptr to `ends`.

    A key is admitted once `needed` occurrences have been counted, including this one. Each is counted with
    probability `chance`, drawn from `seed` and the number of the example; `before` is the number of examples
    before the first of these. With chance 0 nothing is counted.

    Of the counters of a key, only the smallest are incremented: none then underestimates any of its keys, and
    few overestimate them (Estan and Varghese 2002, conservative update).
    """
    out = 0
    ends[0] = 0
    for i in range(indptr.size - 1):
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        touched = np.uint8(0)  # fetch cache lines in parallel: twice as fast
        for p in range(begin, end):
            touched |= counters[line_of(scatter(mix(keys[p] ^ seed)), counters.size)]
        ends[i + 1] = touched  # keeps the loop from being optimised away
        for p in range(begin, end):
            kept[out] = keys[p]
            of_kept[out] = values[p]
            mixed = scatter(mix(keys[p] ^ seed))
            line = line_of(mixed, counters.size)
            first, second = counters[counter_of(mixed, line, 0)], counters[counter_of(mixed, line, 1)]
            third, fourth = counters[counter_of(mixed, line, 2)], counters[counter_of(mixed, line, 3)]
            lowest = np.int64(min(min(first, second), min(third, fourth)))
            admitted, drawn = lowest >= needed, chance >= 1.0
            if not admitted and not drawn:
                bits = scatter(mix(mixed ^ scatter(mix(np.uint64(before + i) + seed))))
                drawn = float(bits >> np.uint64(11)) * 2.0**-53 < chance
            if not admitted and drawn:
                for lane in range(4):
                    place = counter_of(mixed, line, lane)
                    if counters[place] == lowest:
                        counters[place] += np.uint8(1)
                if lowest == 0:
                    counts[MET] += 1
                if lowest + 1 >= needed:
                    counts[ADMITTED] += 1
                    admitted = True
            if admitted:
                out += 1
        ends[i + 1] = out
