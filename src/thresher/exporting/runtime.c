/* A model in C99, written by thresher. It needs the C library and libm, and any number of threads can use it.
 *
 *   thresher_margins(row, margins)      the weighted sums, one for each output
 *   thresher_predict(row, predictions)  probabilities, or means
 *   thresher_label(margins)             the number of a class in thresher_labels
 *
 * A row is an array of cells, one for each of thresher_columns; or, if features have ids, three arguments: the
 * ids, the values, and how many there are. The first two functions return 0; 1 + the number of the column whose
 * cell is wrong; or -1 if memory is lacking or a value, sum or product is not finite in float.
 *
 * With THRESHER_MAIN the file is a program that predicts the rows on standard input, of which THRESHER_READS
 * tells the format: cc -std=c99 -O2 -DTHRESHER_MAIN model.c -o model -lm
 */

/* @macros */

#ifndef THRESHER_API
#define THRESHER_API
#endif
#ifndef THRESHER_DIGITS
#define THRESHER_DIGITS 9
#endif

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined __clang__ || !(defined __GNUC__ || defined __TINYC__) /* which do not know the pragma */
#pragma STDC FP_CONTRACT OFF
#endif

#if THRESHER_COLUMNS

/* A value of a row: text of any bytes, or, if that is NULL, a number. Text of size 0 and NaN are missing. */
typedef struct {
    const char *text;
    size_t size;
    double number;
} thresher_cell;
#endif

enum { IGNORED, NUMERIC, BINS, CATEGORICAL, TEXT };

typedef struct {
    int kind, spelled; /* spelled: whether values have one spelling, as 1 for 1.0; 2: they are finite numbers */
    uint64_t key, seed;
} column;

typedef struct {
    const char *text;
    size_t size;
} name;

typedef struct {
    int32_t first, last, lower; /* characters of words, and what makes them lower case */
} letter_range;

typedef struct {
    uint64_t key;
    uint32_t place;
    double mean;
} centred;

typedef struct {
    uint64_t key;
    double divisor;
} scaled;

/* The weights of a model. */
typedef struct {
    uint32_t count, shift, centred_count, scaled_count;
    const uint64_t *keys;           /* (count), ascending */
    const uint32_t *begins;         /* where the keys begin whose first bits are these */
    const thresher_weight *weights; /* (count, outputs) */
    const thresher_weight *intercepts;
    const centred *means;
    const scaled *divisors;
} table;

/* ==== the model ==== */

/* @model */

/* ==== how it predicts ==== */

#if THRESHER_COLUMNS || defined THRESHER_MAIN

/* ---- reading numbers: the nearest float, whatever the locale ---- */

enum { LIMBS = 34, MOST_DIGITS = 130, SURE_DIGITS = 19 };

typedef struct {
    uint32_t limb[LIMBS];
} big;

static void big_times(big *x, uint32_t by, uint32_t add)
{
    uint64_t carry = add;
    for (int k = 0; k < LIMBS; k++) {
        carry += (uint64_t)x->limb[k] * by;
        x->limb[k] = (uint32_t)carry;
        carry >>= 32;
    }
}

static void big_scale(big *x, int tens, int twos)
{
    for (; tens > 0; tens--) big_times(x, 10, 0);
    for (; twos > 0; twos -= twos < 31 ? twos : 31) big_times(x, (uint32_t)1 << (twos < 31 ? twos : 31), 0);
}

/* A number as text: [at, end) are its digits, perhaps with a point; the value is 0.DIGITS times 10^power. */
typedef struct {
    const char *at, *end;
    int digits, power, negative;
    uint64_t mantissa; /* of the first 19 digits at most */
} decimal;

/* Compare a decimal of which the first `most` digits count with m * 2^k: negative, zero or positive. */
static int compared(const decimal *number, int most, uint64_t m, int k)
{
    big left = {{0}}, right = {{0}};
    int taken = 0, tens;
    for (const char *at = number->at; at < number->end && taken < most; at++) {
        if (*at == '.' || (taken == 0 && *at == '0')) continue;
        big_times(&left, 10, (uint32_t)(*at - '0'));
        taken++;
    }
    if (number->digits > taken && most == MOST_DIGITS) { /* more digits: a little more than these */
        big_times(&left, 10, 1);
        taken++;
    }
    tens = number->power - taken;
    right.limb[0] = (uint32_t)m;
    right.limb[1] = (uint32_t)(m >> 32);
    big_scale(&left, tens > 0 ? tens : 0, k < 0 ? -k : 0);
    big_scale(&right, tens < 0 ? -tens : 0, k > 0 ? k : 0);
    for (int j = LIMBS - 1; j >= 0; j--)
        if (left.limb[j] != right.limb[j]) return left.limb[j] < right.limb[j] ? -1 : 1;
    return 0;
}

/* Compare a decimal with the number half way between the float with these bits and the next larger one. */
static int beyond_half(const decimal *number, int most, uint64_t bits, int wide)
{
    const int size = wide ? 52 : 23, bias = wide ? 1075 : 150;
    const uint64_t hidden = (uint64_t)1 << size, field = bits >> size, low = bits & (hidden - 1);
    const uint64_t m = field ? low | hidden : low;
    return compared(number, most, 2 * m + 1, (int)(field ? field : 1) - bias - 1);
}

/* The bits of the float (or, if wide, double) nearest to a decimal, given those of one near it; ties to even. */
static uint64_t settled(const decimal *number, int most, uint64_t bits, int wide)
{
    for (;;) {
        int side;
        if (!wide && bits == 0x7f800000) return bits; /* infinity */
        side = beyond_half(number, most, bits, wide);
        if (side > 0 || (side == 0 && bits & 1)) {
            bits++;
            continue;
        }
        if (bits == 0) return bits;
        side = beyond_half(number, most, bits - 1, wide);
        if (side > 0 || (side == 0 && (bits & 1) == 0)) return bits;
        bits--;
    }
}

static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double times_ten_to(double x, int power)
{
    for (; power > 22; power -= 22) x *= 1e22;
    for (; power < -22; power += 22) x /= 1e22;
    return power < 0 ? x / POWERS[-power] : x * POWERS[power];
}

static float float_of(const decimal *number)
{
    const int sure = number->digits < SURE_DIGITS ? number->digits : SURE_DIGITS, power = number->power - sure;
    double near;
    uint64_t bits;
    uint32_t half;
    float found;
    if (number->digits == 0 || number->power < -50) return 0;
    if (number->power > 40) return INFINITY;
    near = times_ten_to((double)number->mantissa, power);
    if (number->digits == sure && number->mantissa < (uint64_t)1 << 53 && power >= -22 && power <= 22) {
        memcpy(&bits, &near, sizeof bits);
        if ((bits & 0x1fffffff) != 0x10000000) return (float)near;
    }
    found = near < 3.4028234e38 ? (float)near : 3.4028234e38f;
    memcpy(&half, &found, sizeof half);
    half = (uint32_t)settled(number, MOST_DIGITS, half, 0);
    memcpy(&found, &half, sizeof found);
    return found;
}

/* Read [+-]digits[.digits][e[+-]digits], all of it; whether it is that. */
static int read_decimal(const char *at, const char *end, decimal *out)
{
    int seen = 0, dot = 0, exponent = 0, negative;
    out->negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    out->at = at;
    out->digits = out->power = 0;
    out->mantissa = 0;
    for (; at < end && ((*at >= '0' && *at <= '9') || (*at == '.' && !dot)); at++) {
        if (*at == '.') {
            dot = 1;
            continue;
        }
        seen = 1;
        if (*at == '0' && out->digits == 0) {
            out->power -= dot;
            continue;
        }
        if (out->digits++ < SURE_DIGITS) out->mantissa = out->mantissa * 10 + (uint64_t)(*at - '0');
        out->power += !dot;
    }
    out->end = at;
    if (!seen) return 0;
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        negative = at < end && *at == '-';
        if (at < end && (*at == '-' || *at == '+')) at++;
        if (at == end) return 0;
        for (; at < end && *at >= '0' && *at <= '9'; at++)
            if (exponent < 1000000000 / 10) exponent = exponent * 10 + (*at - '0');
        out->power += negative ? -exponent : exponent;
    }
    return at == end;
}

#endif

#if THRESHER_COLUMNS

/* The nearest double to the first 19 digits of a decimal from 1 to 10^22. */
static double double_of(const decimal *number)
{
    const int sure = number->digits < SURE_DIGITS ? number->digits : SURE_DIGITS;
    double found = times_ten_to((double)number->mantissa, number->power - sure);
    uint64_t bits;
    memcpy(&bits, &found, sizeof bits);
    bits = settled(number, SURE_DIGITS, bits, 1);
    memcpy(&found, &bits, sizeof found);
    return found;
}

/* ---- cells ---- */

static int is_blank(char code)
{
    return code == ' ' || code == '\t';
}

/* Whether a word in any case is this one, in lower case. */
static int is_word(const char *at, size_t size, const char *word)
{
    if (size != strlen(word)) return 0;
    for (size_t k = 0; k < size; k++)
        if ((at[k] | 32) != word[k]) return 0;
    return 1;
}

/* A cell as a number: 0 if it is not finite. A double keeps what the float loses. */
static int number_of(const thresher_cell *cell, float *value, double *wide)
{
    const char *at = cell->text, *end = at + cell->size;
    decimal found;
    if (!at) {
        *wide = cell->number;
        *value = (float)cell->number;
        return isfinite(*value) != 0;
    }
    while (at < end && is_blank(*at)) at++;
    while (at < end && is_blank(end[-1])) end--;
    if (read_decimal(at, end, &found)) {
        const float size = float_of(&found);
        *value = found.negative ? -size : size;
        *wide = *value;
        if (size >= 65536.0f && size < 1180591620717411303424.0f)
            *wide = found.negative ? -double_of(&found) : double_of(&found);
        return isfinite(size) != 0;
    }
    for (at = cell->text, end = at + cell->size; at < end && *at == ' ';) at++;
    while (at < end && end[-1] == ' ') end--;
    *value = is_word(at, (size_t)(end - at), "true");
    *wide = *value;
    return *value != 0 || is_word(at, (size_t)(end - at), "false");
}

/* ---- murmur ---- */

static uint64_t turned(uint64_t word, int by)
{
    return word << by | word >> (64 - by);
}

static uint64_t finished(uint64_t word)
{
    word = (word ^ word >> 33) * UINT64_C(0xff51afd7ed558ccd);
    word = (word ^ word >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return word ^ word >> 33;
}

/* Up to eight bytes as a word; compilers make one instruction of eight. */
static uint64_t word_of(const unsigned char *text, size_t size)
{
    uint64_t word = 0;
    if (size == 8)
        return (uint64_t)text[0] | (uint64_t)text[1] << 8 | (uint64_t)text[2] << 16 | (uint64_t)text[3] << 24
               | (uint64_t)text[4] << 32 | (uint64_t)text[5] << 40 | (uint64_t)text[6] << 48 | (uint64_t)text[7] << 56;
    for (size_t k = 0; k < size; k++) word |= (uint64_t)text[k] << (8 * k);
    return word;
}

/* The first half of MurmurHash3 x64_128, with a seed of 64 bits. */
static uint64_t murmur(const char *name, size_t size, uint64_t seed)
{
    const uint64_t a = UINT64_C(0x87c37b91114253d5), b = UINT64_C(0x4cf5ad432745937f);
    const unsigned char *text = (const unsigned char *)name;
    uint64_t h = seed, k = seed, low, high;
    size_t left = size;
    for (; left >= 16; left -= 16, text += 16) {
        h ^= turned(word_of(text, 8) * a, 31) * b;
        h = (turned(h, 27) + k) * 5 + 0x52dce729;
        k ^= turned(word_of(text + 8, 8) * b, 33) * a;
        k = (turned(k, 31) + h) * 5 + 0x38495ab5;
    }
    low = word_of(text, left < 8 ? left : 8);
    high = left > 8 ? word_of(text + 8, left - 8) : 0;
    k ^= turned(high * b, 33) * a;
    h ^= turned(low * a, 31) * b;
    h ^= size;
    k ^= size;
    h += k;
    k += h;
    return finished(h) + finished(k);
}
#endif

/* ---- features of a row ---- */

/* What a float loses of a large number, which counts where a mean is subtracted. */
static float lost(double wide, float value)
{
    const float size = fabsf(value);
    return THRESHER_CENTRED && size >= 65536.0f && size < 1180591620717411303424.0f ? (float)(wide - (double)value) : 0;
}

typedef struct {
    uint64_t key;
    uint32_t place; /* of the weight, from 1; 0: none */
    float value, rest;
} entry;

typedef struct {
    entry *at;
    size_t count, room;
    int failed;
    entry own[THRESHER_ROOM];
} list;

static void list_open(list *row)
{
    row->at = row->own;
    row->count = 0;
    row->room = THRESHER_ROOM;
    row->failed = 0;
}

static void list_close(list *row)
{
    if (row->at != row->own) free(row->at);
}

/* Make room for `more` entries; the arrays of a table of few columns are never too small. */
static int list_fits(list *row, size_t more)
{
    entry *found;
    if (row->room - row->count >= more) return 1;
    found = more < SIZE_MAX / sizeof *found / 4 - row->count ? malloc(2 * (row->count + more) * sizeof *found) : NULL;
    if (!found) {
        row->failed = 1;
        return 0;
    }
    memcpy(found, row->at, row->count * sizeof *found);
    list_close(row);
    row->at = found;
    row->room = 2 * (row->count + more);
    return 1;
}

static void list_add(list *row, uint64_t key, uint32_t place, float value, float rest)
{
    entry *last;
    if (!list_fits(row, 1)) return;
    last = &row->at[row->count++];
    last->key = key;
    last->place = place;
    last->value = value;
    last->rest = rest;
}

/* Sort entries by key; equal keys keep their order. `room` has as many entries. */
static void sort(entry *at, size_t count, entry *room)
{
    const size_t half = count / 2;
    size_t i, j, k;
    if (count <= 24) {
        for (i = 1; i < count; i++) {
            const entry one = at[i];
            for (j = i; j > 0 && at[j - 1].key > one.key; j--) at[j] = at[j - 1];
            at[j] = one;
        }
        return;
    }
    sort(at, half, room);
    sort(at + half, count - half, room);
    memcpy(room, at, half * sizeof *at);
    for (i = 0, j = half, k = 0; i < half; k++) at[k] = j < count && at[j].key < room[i].key ? at[j++] : room[i++];
}

/* Sort the entries from `first` on, and add up those of equal keys. */
static void list_merge(list *row, size_t first)
{
    size_t last = first;
    if (!list_fits(row, row->count - first)) return;
    sort(row->at + first, row->count - first, row->at + row->count);
    for (size_t k = first + 1; k < row->count; k++) {
        if (row->at[k].key == row->at[last].key) {
            row->at[last].value += row->at[k].value;
            row->failed |= !isfinite(row->at[last].value);
        } else
            row->at[++last] = row->at[k];
    }
    if (row->count > first) row->count = last + 1;
}

/* ---- one model: its weights, and the margins they give ---- */

/* The place of a key among the weights, from 1; 0: it has none. */
static uint32_t place_of(const table *from, uint64_t key)
{
    const uint64_t bucket = key >> from->shift;
    uint32_t low, high;
    if (from->count == 0 || key > from->keys[from->count - 1]) return 0;
    low = from->begins[bucket];
    high = from->begins[bucket + 1];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (from->keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < from->count && from->keys[low] == key ? low + 1 : 0;
}

static uint32_t weight_of(const table *from, uint64_t key, float *value)
{
#if THRESHER_HASHED
    uint64_t word = key ^ THRESHER_HASH_SEED;
    word = (word ^ word >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    if (THRESHER_SIGNED) {
        word = (word ^ word >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
        word ^= word >> 32;
        if ((word & 1) == 0) *value = -*value;
    }
    return place_of(from, word >> (64 - THRESHER_HASHED));
#else
    (void)value;
    return place_of(from, key);
#endif
}

#if THRESHER_CENTRED
/* Subtract means, as in learning: a missing cell adds nothing, an absent value is 0. Keys are sorted. */
static void centre(const table *from, const list *row, list *out)
{
    size_t p = 0;
    for (uint32_t c = 0; c <= from->centred_count; c++) {
        const centred *one = &from->means[c];
        const int last = c == from->centred_count;
        for (; p < row->count && (last || row->at[p].key < one->key); p++)
            if (!THRESHER_GAPS || row->at[p].value != 0) list_add(out, row->at[p].key, row->at[p].place, row->at[p].value, 0);
        if (!last) {
            const int there = p < row->count && row->at[p].key == one->key;
            const double x = there ? (double)row->at[p].value + (double)row->at[p].rest : 0.0;
            const float small = (float)(x - one->mean);
            if (!(THRESHER_GAPS && there && x == 0) && small != 0) list_add(out, one->key, one->place, small, 0);
            p += (size_t)there;
        }
    }
}
#endif

#if THRESHER_SCALED
static float divided(const table *from, uint64_t key, float value)
{
    uint32_t low = 0, high = from->scaled_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (from->divisors[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == from->scaled_count || from->divisors[low].key != key) return value;
    return (float)((double)value / from->divisors[low].divisor);
}
#endif

#if THRESHER_HASHED
/* Add up the values of features that share a weight, at the first of them. */
static void list_share(const table *from, list *row)
{
    size_t last = 0;
    for (size_t k = 0; k < row->count; k++) {
        size_t j = 0;
        row->at[k].place = weight_of(from, row->at[k].key, &row->at[k].value);
        while (j < last && row->at[j].place != row->at[k].place) j++;
        if (j < last)
            row->at[j].value += row->at[k].value;
        else
            row->at[last++] = row->at[k];
    }
    row->count = last;
}
#endif

/* Add the margins of a row to `margins`, or store the `first` ones: 0, or -1 if they cannot be computed. */
static int add_margins(const table *from, const list *row, int first, double margins[THRESHER_OUTPUTS])
{
    list picked, *used = &picked;
    double sums[THRESHER_OUTPUTS] = {0};
#if THRESHER_CENTRED
    list moved;
#endif
    list_open(&picked);
    for (size_t k = 0; k < row->count; k++) {
        float value = row->at[k].value;
        const uint32_t place = weight_of(from, row->at[k].key, &value);
        if (place) list_add(&picked, row->at[k].key, place, row->at[k].value, row->at[k].rest);
    }
    list_merge(&picked, 0);
#if THRESHER_CENTRED
    list_open(&moved);
    centre(from, &picked, &moved);
    moved.failed |= picked.failed;
    list_close(&picked);
    used = &moved;
#endif
#if THRESHER_SCALED
    for (size_t k = 0; k < used->count; k++) used->at[k].value = divided(from, used->at[k].key, used->at[k].value);
#endif
#if THRESHER_HASHED
    list_share(from, used);
#endif
    for (size_t k = 0; k < used->count; k++) {
        const thresher_weight *weights = from->weights + (size_t)(used->at[k].place - 1) * THRESHER_OUTPUTS;
        for (int j = 0; j < THRESHER_OUTPUTS; j++) {
            const THRESHER_ROUNDED thresher_weight product = (thresher_weight)(weights[j] * used->at[k].value);
            sums[j] += (double)product;
        }
    }
    for (int j = 0; j < THRESHER_OUTPUTS; j++) {
        const double sum = sums[j] + (double)from->intercepts[j];
        margins[j] = first ? sum : margins[j] + sum;
    }
    list_close(used);
    return used->failed ? -1 : 0;
}

static int margins_of(const list *row, double margins[THRESHER_OUTPUTS])
{
    int failed = row->failed ? -1 : 0;
    for (int m = 0; m < THRESHER_MODELS && !failed; m++) failed = add_margins(&tables[m], row, m == 0, margins);
    for (int j = 0; j < THRESHER_OUTPUTS && THRESHER_MODELS > 1; j++) margins[j] /= THRESHER_MODELS;
    return failed;
}

#if THRESHER_SPELLED

/* ---- one spelling for each value of a category: 1.0 is 1, TRUE is true ---- */

static int is_digit(char code)
{
    return code >= '0' && code <= '9';
}

static const char *digits_from(const char *at, const char *end)
{
    while (at < end && is_digit(*at)) at++;
    return at;
}

static char *put_zeros(char *to, int count)
{
    while (count-- > 0) *to++ = '0';
    return to;
}

/* Replace the digits of a large whole number by all those of the nearest double. */
static void spell_whole(char *digits, int *count, int *exponent)
{
    uint64_t mantissa = 0;
    double size;
    int k;
    for (k = 0; k < *count; k++) mantissa = mantissa * 10 + (uint64_t)(digits[k] - '0');
    size = (double)mantissa * POWERS[*exponent];
    if (size < 9007199254740992.0 || size > 1.84e19) return;
    for (k = 0; k < *exponent; k++) mantissa *= 10;
    mantissa = (uint64_t)(double)mantissa;
    for (*count = 0, size = 1; size <= (double)mantissa; size *= 10) ++*count;
    for (k = *count - 1; k >= 0; k--, mantissa /= 10) digits[k] = (char)('0' + mantissa % 10);
    *exponent = 0;
}

/* Write a number without needless zeros, as JavaScript does: its size; 0: it is none, or too long. */
static size_t spell_number(const char *at, const char *end, char *room)
{
    const char *stop;
    char digits[64], *to = room;
    int count = 0, seen = 0, whole = 1, exponent = 0, fraction = 0, negative = *at == '-', before;
    if (negative || *at == '+') at++;
    for (stop = at; stop < end && (is_digit(*stop) || (*stop == '.' && whole)); stop++) {
        if (*stop == '.') {
            whole = 0;
            continue;
        }
        seen = 1;
        fraction += !whole;
        if (count == 0 && *stop == '0') continue;
        if (count < 40) digits[count] = *stop;
        if (count < 41) count++;
    }
    if (stop < end) {
        const int minus = stop + 1 < end && stop[1] == '-';
        const char *first = stop + 1 + (minus || (stop + 1 < end && stop[1] == '+'));
        whole = 0;
        if ((*stop | 32) != 'e' || first >= end || end - first > 6 || digits_from(first, end) != end) return 0;
        for (; first < end; first++) exponent = exponent * 10 + *first - '0';
        if (minus) exponent = -exponent;
    }
    if (!seen || count > 40) return 0;
    for (exponent -= fraction; count > 0 && digits[count - 1] == '0'; exponent++) count--;
    if (count == 0) {
        room[0] = '0';
        return 1;
    }
    if (!whole && count < 20 && 0 <= exponent && exponent < 20) spell_whole(digits, &count, &exponent);
    if (negative) *to++ = '-';
    before = count + exponent;
    if (0 < before && before <= 21) {
        const int first = before < count ? before : count;
        memcpy(to, digits, (size_t)first);
        to = put_zeros(to + first, before - count);
        if (count <= before) return (size_t)(to - room);
        *to++ = '.';
        memcpy(to, digits + before, (size_t)(count - before));
        return (size_t)(to + count - before - room);
    }
    if (-6 < before && before <= 0) {
        to = put_zeros(to, 1);
        *to++ = '.';
        to = put_zeros(to, -before);
        memcpy(to, digits, (size_t)count);
        return (size_t)(to + count - room);
    }
    *to++ = digits[0];
    if (count > 1) {
        *to++ = '.';
        memcpy(to, digits + 1, (size_t)(count - 1));
        to += count - 1;
    }
    *to++ = 'e';
    if (before <= 0) *to++ = '-';
    exponent = before > 0 ? before - 1 : 1 - before;
    for (count = 1; count * 10 <= exponent; count *= 10) continue;
    for (; count > 0; count /= 10) *to++ = (char)('0' + exponent / count % 10);
    return (size_t)(to - room);
}

/* The spelling of a value, in `room` of 128 bytes or in the cell itself. */
static void spell(const char **text, size_t *size, char *room)
{
    const char *at = *text, *end = at + *size, *stop;
    size_t found = 0;
    while (at < end && *at == ' ') at++;
    while (at < end && end[-1] == ' ') end--;
    if (at == end) return;
    stop = digits_from(at, end);
    if (stop == end && end - at <= 21 && (*at != '0' || end - at == 1)) {
        *text = at;
        *size = (size_t)(end - at);
        return;
    }
    if (is_digit(*at) || ((*at == '+' || *at == '-' || *at == '.') && end - at > 1)) found = spell_number(at, end, room);
    if (!found) {
        static const char *const words[] = {"true", "false", "nan", "inf", "-inf"};
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            if (is_word(at, (size_t)(end - at), words[k])) {
                found = strlen(words[k]);
                memcpy(room, words[k], found);
            }
    }
    if (found) {
        *text = room;
        *size = found;
    }
}
#endif

#if THRESHER_TEXTS

/* ---- n-grams of texts ---- */

/* What a character is in a word: its lower case, or -1 where no word has it. */
static long letter_of(long code)
{
    size_t low = 0, high = sizeof letters / sizeof *letters;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (letters[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == sizeof letters / sizeof *letters || code < letters[low].first) return -1;
    return THRESHER_LOWER ? code + letters[low].lower : code;
}

/* The character at `at`, or -1 if it is not UTF-8; `size` gets its bytes. */
static long decoded(const unsigned char *at, const unsigned char *end, int *size)
{
    const int bytes = *at < 0x80 ? 1 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
    long code = bytes == 1 ? *at : *at & (0xff >> (bytes + 1));
    *size = 1;
    if (bytes == 1) return code;
    if (*at < 0xc2 || *at > 0xf4 || end - at < bytes) return -1;
    for (int k = 1; k < bytes; k++) {
        if ((at[k] & 0xc0) != 0x80) return -1;
        code = code << 6 | (at[k] & 0x3f);
    }
    if ((bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000)) return -1;
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return -1;
    *size = bytes;
    return code;
}

static char *encoded(long code, char *to)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    if (code < 0x800)
        *to++ = (char)(0xc0 | code >> 6);
    else {
        if (code < 0x10000)
            *to++ = (char)(0xe0 | code >> 12);
        else {
            *to++ = (char)(0xf0 | code >> 18);
            *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (code & 0x3f));
    return to;
}

/* Add the keys of all runs of `low` to `high` pieces, without their last `gap` bytes. */
static void add_runs(list *row, const char *words, const size_t *begins, size_t count, size_t low, size_t high,
                     size_t gap, uint64_t seed)
{
    for (size_t first = 0; high && first < count; first++)
        for (size_t length = low; length <= high && length <= count - first; length++) {
            const size_t size = begins[first + length] - gap - begins[first];
            list_add(row, murmur(words + begins[first], size, seed), 0, 1, 0);
        }
}

static void add_text(list *row, const char *text, size_t size, uint64_t seed)
{
    const size_t start = row->count;
    const unsigned char *at = (const unsigned char *)text, *end = at + size;
    char *words = malloc(2 * size + 18), *place = words, *begin = words;
    size_t *begins = malloc((2 * size + 3) * sizeof *begins), count = 0;
    double squares = 0;
    if (!words || !begins) row->failed = 1;
    for (size_t letters_seen = 0; !row->failed && at <= end;) {
        int bytes = 1;
        const long letter = at < end ? letter_of(decoded(at, end, &bytes)) : -1;
        if (letter >= 0) {
            place = encoded(letter, place);
            letters_seen++;
        } else {
            if (letters_seen >= THRESHER_SHORTEST) {
                begins[count++] = (size_t)(begin - words);
                *place++ = ' ';
                begin = place;
            }
            place = begin;
            letters_seen = 0;
        }
        at += bytes;
    }
    if (!row->failed) {
        begins[count] = (size_t)(begin - words);
        add_runs(row, words, begins, count, THRESHER_WORDS_LOW, THRESHER_WORDS_HIGH, 1, seed);
        if (THRESHER_CHARS_HIGH) {
            const size_t stop = begins[count] ? begins[count] - 1 : 0;
            count = 0;
            for (size_t k = 0; k < stop; k++)
                if ((words[k] & 0xc0) != 0x80) begins[count++] = k;
            begins[count] = stop;
            add_runs(row, words, begins, count, THRESHER_CHARS_LOW, THRESHER_CHARS_HIGH, 0, seed ^ 1);
        }
        list_merge(row, start);
    }
    free(words);
    free(begins);
    for (size_t k = start; k < row->count; k++) {
        float *value = &row->at[k].value;
        if (THRESHER_SCALE == 1) *value = 1;
        if (THRESHER_SCALE == 2) *value = (float)(1.0 + log((double)*value));
        squares += (double)*value * (double)*value;
    }
    if (THRESHER_NORM && squares > 0) {
        const double by = 1.0 / sqrt(squares);
        for (size_t k = start; k < row->count; k++) row->at[k].value = (float)((double)row->at[k].value * by);
    }
}
#endif

/* ---- from margins to predictions ---- */

#if THRESHER_LINK == 5
#define THRESHER_LOG_ODDS(m) (THRESHER_LINK_BY * (m) + THRESHER_LINK_PLUS)
#else
#define THRESHER_LOG_ODDS(m) (m)
#endif

static void thresher_link(double margins[THRESHER_OUTPUTS])
{
#if THRESHER_LINK == 4
    for (int j = 0; j < THRESHER_OUTPUTS; j++) margins[j] *= THRESHER_LINK_BY;
    double top = margins[0], total = 0;
    for (int j = 1; j < THRESHER_OUTPUTS; j++) top = margins[j] > top ? margins[j] : top;
    for (int j = 0; j < THRESHER_OUTPUTS; j++) total += margins[j] = exp(margins[j] - top);
    for (int j = 0; j < THRESHER_OUTPUTS; j++) margins[j] /= total;
#else
    for (int j = 0; j < THRESHER_OUTPUTS; j++) {
        const double m = margins[j];
#if THRESHER_LINK == 1
        const double e = exp(THRESHER_LINK_BY * -fabs(m));
        margins[j] = m > 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
#elif THRESHER_LINK == 2
        margins[j] = 0.5 * (1.0 + (m < -1.0 ? -1.0 : m > 1.0 ? 1.0 : m));
#elif THRESHER_LINK == 3
        margins[j] = exp(m + THRESHER_LINK_BY);
#elif THRESHER_LINK == 5
        const double z = THRESHER_LOG_ODDS(m), e = exp(-fabs(z));
        margins[j] = z > 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
#else
        margins[j] = m;
#endif
    }
#endif
}

#if THRESHER_LABELS
THRESHER_API int thresher_label(const double margins[THRESHER_OUTPUTS])
{
    int best = 0;
    if (THRESHER_OUTPUTS == 1) return THRESHER_LOG_ODDS(margins[0]) > 0;
    for (int j = 1; j < THRESHER_OUTPUTS; j++)
        if (margins[j] > margins[best]) best = j;
    return best;
}
#endif

#if THRESHER_COLUMNS

/* ---- from cells to features ---- */

#if THRESHER_MISSING
static int means_missing(const thresher_cell *cell)
{
    for (int k = 0; k < THRESHER_MISSING; k++)
        if (cell->size == missing[k].size && memcmp(cell->text, missing[k].text, cell->size) == 0) return 1;
    return 0;
}
#endif

#if THRESHER_BINNED
static uint64_t bin_key(float value, uint64_t seed)
{
    const double size = fabs((double)value), root = size > 2 ? log(size) : 0;
    char name[24], *at = name + sizeof name;
    long bin = size > 2 ? (long)(root * root) + 2 : (long)size;
    const int negative = value < 0 && bin > 0;
    do {
        *--at = (char)('0' + bin % 10);
        bin /= 10;
    } while (bin);
    if (negative) *--at = '-';
    return murmur(at, (size_t)(name + sizeof name - at), seed);
}
#endif

/* Add the features of a cell: 0, or 1 if it is not what its column holds. */
static int add_cell(list *row, const column *of, thresher_cell cell)
{
    float value;
    double wide;
    size_t blanks = 0;
    int empty;
#if THRESHER_SPELLED
    char room[128];
#endif
#if THRESHER_MISSING
    if (cell.text && means_missing(&cell)) cell.size = 0;
#endif
#if THRESHER_SPELLED
    if (cell.text && of->spelled) spell(&cell.text, &cell.size, room);
    if (cell.text && of->spelled == 2
        && (is_word(cell.text, cell.size, "nan") || is_word(cell.text, cell.size, "inf") || is_word(cell.text, cell.size, "-inf")))
        return 1;
#endif
    while (cell.text && blanks < cell.size && is_blank(cell.text[blanks])) blanks++;
    empty = cell.text ? blanks == cell.size : isnan(cell.number);
    if (of->kind == IGNORED || (empty && !(of->kind == NUMERIC && THRESHER_GAPS))) return 0;
    if (of->kind == CATEGORICAL || of->kind == TEXT) {
        if (!cell.text) return 1;
#if THRESHER_TEXTS
        if (of->kind == TEXT) {
            add_text(row, cell.text, cell.size, of->seed);
            return 0;
        }
#endif
        list_add(row, murmur(cell.text, cell.size, of->seed), 0, 1, 0);
        return 0;
    }
    value = 0;
    wide = 0;
    if (!empty && !number_of(&cell, &value, &wide)) return 1;
#if THRESHER_BINNED
    if (of->kind == BINS) {
        list_add(row, bin_key(value, of->seed), 0, 1, 0);
        return 0;
    }
#endif
    if (empty || value != 0) {
        list_add(row, of->key, 0, value, lost(wide, value));
    }
    return 0;
}

#if THRESHER_PRODUCTS
static void add_product(list *row, const entry *a, const entry *b, const entry *c)
{
    const uint64_t two = finished(a->key) + finished(b->key);
    const uint64_t sum = c ? two + finished(c->key) + UINT64_C(0xd1b54a32d192ed03) : two + UINT64_C(0x9e3779b97f4a7c15);
    float value = a->value * b->value;
    if (c) value = value * c->value;
    row->failed |= !isfinite(value);
    list_add(row, finished(sum) & THRESHER_MASK, 0, value, 0);
}

/* Products of the features [begins[c], begins[c + 1]) of columns; of the same column, each pair once. */
static void add_products(list *row, const size_t begins[THRESHER_COLUMNS + 1])
{
    for (int p = 0; p < THRESHER_PRODUCTS; p++) {
        const int s = products[p][0], t = products[p][1], u = products[p][2];
        const size_t same_s = columns[s].kind == NUMERIC || columns[s].kind == TEXT ? 0 : 1;
        const size_t same_t = columns[t].kind == NUMERIC || columns[t].kind == TEXT ? 0 : 1;
        for (size_t i = begins[s]; i < begins[s + 1]; i++)
            for (size_t j = s == t ? i + same_s : begins[t]; j < begins[t + 1]; j++) {
                entry a = row->at[i], b = row->at[j];
                if (u < 0) {
                    add_product(row, &a, &b, NULL);
                    continue;
                }
                for (size_t k = u == t ? j + same_t : u == s ? i + same_s : begins[u]; k < begins[u + 1]; k++) {
                    const entry c = row->at[k];
                    add_product(row, &a, &b, &c);
                    if (row->failed) return;
                }
            }
        if (row->failed) return;
    }
}
#endif

THRESHER_API int thresher_margins(const thresher_cell cells[THRESHER_COLUMNS], double margins[THRESHER_OUTPUTS])
{
    list row;
    int failed = 0;
#if THRESHER_PRODUCTS
    size_t begins[THRESHER_COLUMNS + 1];
#endif
    list_open(&row);
    for (int c = 0; c < THRESHER_COLUMNS && !failed; c++) {
#if THRESHER_PRODUCTS
        begins[c] = row.count;
        begins[c + 1] = row.count;
#endif
        if (add_cell(&row, &columns[c], cells[c])) failed = c + 1;
#if THRESHER_PRODUCTS
        begins[c + 1] = row.count;
#endif
    }
    if (THRESHER_MASK != UINT64_MAX)
        for (size_t k = 0; k < row.count; k++) row.at[k].key &= THRESHER_MASK;
#if THRESHER_PRODUCTS
    if (!failed) add_products(&row, begins);
#endif
    if (!failed) failed = margins_of(&row, margins);
    list_close(&row);
    return failed;
}

THRESHER_API int thresher_predict(const thresher_cell cells[THRESHER_COLUMNS], double predictions[THRESHER_OUTPUTS])
{
    const int failed = thresher_margins(cells, predictions);
    if (!failed) thresher_link(predictions);
    return failed;
}
#else

THRESHER_API int thresher_margins(const uint64_t *keys, const double *values, size_t count,
                                  double margins[THRESHER_OUTPUTS])
{
    list row;
    int failed;
    list_open(&row);
    for (size_t k = 0; k < count; k++) {
        const float value = (float)values[k];
        row.failed |= !isfinite(value);
        list_add(&row, keys[k], 0, value, lost(values[k], value));
    }
    failed = margins_of(&row, margins);
    list_close(&row);
    return failed;
}

THRESHER_API int thresher_predict(const uint64_t *keys, const double *values, size_t count,
                                  double predictions[THRESHER_OUTPUTS])
{
    const int failed = thresher_margins(keys, values, count, predictions);
    if (!failed) thresher_link(predictions);
    return failed;
}
#endif

#ifdef THRESHER_MAIN

/* ---- a program that predicts the rows on standard input ---- */

#include <stdio.h>

typedef struct {
    char *at;
    size_t size, room;
    unsigned long number;
} buffer;

/* Read a line without its end: 0 at the end of the input. */
static int read_line(buffer *line)
{
    int code;
    line->size = 0;
    line->number++;
    while ((code = getc(stdin)) != EOF && code != '\n') {
        if (line->size == line->room) {
            char *larger = realloc(line->at, line->room = 2 * line->room + 256);
            if (!larger) exit(1);
            line->at = larger;
        }
        line->at[line->size++] = (char)code;
    }
    if (line->size && line->at[line->size - 1] == '\r') line->size--;
    return code != EOF || line->size > 0;
}

static void print_row(int failed, const double *margins, const char *wanted)
{
    double found[THRESHER_OUTPUTS];
    memcpy(found, margins, sizeof found);
    if (*wanted != 'm') thresher_link(found);
#if THRESHER_LABELS
    if (*wanted == 'l') {
        puts(failed ? "nan" : thresher_labels[thresher_label(margins)]);
        return;
    }
#elif THRESHER_LISTED
    if (*wanted == 'l') {
        const char *between = "";
        for (int j = 0; j < THRESHER_OUTPUTS; j++)
            if (margins[j] > 0) {
                printf("%s%s", between, thresher_outputs[j]);
                between = ",";
            }
        puts(failed ? "nan" : "");
        return;
    }
#endif
    for (int j = 0; j < THRESHER_OUTPUTS; j++) {
        if (j) putchar('\t');
        if (failed)
            fputs("nan", stdout);
        else
            printf("%.*g", THRESHER_DIGITS, found[j]);
    }
    putchar('\n');
}

#if THRESHER_COLUMNS

/* Cut a line into cells, in place, and count them: SIZE_MAX if it is not well quoted. With `most` 0, it is only
 * measured, and stays as it is. */
static size_t cells_of(buffer *line, thresher_cell *cells, size_t most)
{
    char *at = line->at, *end = at + line->size, *to;
    size_t count = 0;
    for (;; at++) {
        thresher_cell cell = {at, 0, 0};
        if (THRESHER_QUOTES && at < end && *at == '"') {
            cell.text = to = ++at;
            for (; at < end && (*at != '"' || (at + 1 < end && at[1] == '"')); at++) {
                at += *at == '"';
                if (most) *to++ = *at;
            }
            cell.size = (size_t)(to - cell.text);
            if (at == end || (++at < end && *at != THRESHER_DELIMITER)) return SIZE_MAX;
        } else {
            while (at < end && *at != THRESHER_DELIMITER) at++;
            cell.size = (size_t)(at - cell.text);
        }
        if (count < most) cells[count] = cell;
        count++;
        if (at >= end) return count;
    }
}

static int predict_input(const char *wanted)
{
    static buffer line;
    size_t width = THRESHER_COLUMNS;
    int place[THRESHER_COLUMNS], waiting = 1, bad = 0;
    thresher_cell *cells, row[THRESHER_COLUMNS];
    do {
        if (!read_line(&line)) return 0;
    } while (line.size == 0);
    cells = malloc((line.size + 2 + THRESHER_COLUMNS) * sizeof *cells);
    if (!cells) return 1;
#if THRESHER_HEADER
    int known = 0;
    waiting = 0;
    if (line.size >= 3 && memcmp(line.at, "\xef\xbb\xbf", 3) == 0) memmove(line.at, line.at + 3, line.size -= 3);
    width = cells_of(&line, cells, line.size + 2);
    if (width == SIZE_MAX) {
        fprintf(stderr, "line %lu: the header is not well quoted\n", line.number);
        return 2;
    }
    for (int c = 0; c < THRESHER_COLUMNS; c++) {
        place[c] = -1;
        for (int k = 0; k < (int)width; k++)
            if (cells[k].size == thresher_columns[c].size
                && memcmp(cells[k].text, thresher_columns[c].text, thresher_columns[c].size) == 0) {
                if (place[c] >= 0) {
                    fprintf(stderr, "line %lu: two columns are called '%s'\n", line.number, thresher_columns[c].text);
                    return 2;
                }
                place[c] = k;
            }
        known += place[c] >= 0;
    }
    if (!known) {
        fprintf(stderr, "line %lu: the header names no column of the model, such as '%s'; this program reads %s\n",
                line.number, thresher_columns[0].text, THRESHER_READS);
        return 2;
    }
    for (int c = 0; c < THRESHER_COLUMNS; c++)
        if (place[c] < 0) fprintf(stderr, "no column '%s': its cells are missing\n", thresher_columns[c].text);
#else
    width = cells_of(&line, cells, 0);
    for (int c = 0; c < THRESHER_COLUMNS; c++) place[c] = places[width == THRESHER_WIDTH][c];
    if (width != THRESHER_WIDTH && width != THRESHER_BARE_WIDTH) {
        fprintf(stderr, "line %lu: the training data had %d columns; this program reads %s\n", line.number, THRESHER_WIDTH,
                THRESHER_READS);
        return 2;
    }
#endif
    for (; waiting || read_line(&line); waiting = 0) {
        double margins[THRESHER_OUTPUTS] = {0};
        int failed;
        if (line.size == 0 && width > 1) continue; /* of one column, it is a row whose cell is missing */
        failed = cells_of(&line, cells, width) != width || memchr(line.at, 0, line.size) ? -2 : 0;
        for (int c = 0; c < THRESHER_COLUMNS; c++)
            row[c] = place[c] < 0 || failed ? (thresher_cell){"", 0, 0} : cells[place[c]];
        if (!failed) failed = thresher_margins(row, margins);
        if (failed > 0)
            fprintf(stderr, "line %lu: column '%s': not a finite number\n", line.number, thresher_columns[failed - 1].text);
        else if (failed)
            fprintf(stderr, "line %lu: %s\n", line.number, failed == -2 ? "not a row of cells" : "a value is not finite");
        print_row(failed, margins, wanted);
        bad |= failed != 0;
    }
    free(cells);
    return bad;
}
#else

/* Read a whole number below 2^64; whether it is that. */
static int read_whole(const char *at, const char *end, uint64_t *out)
{
    if (at < end && *at == '+') at++;
    *out = 0;
    if (at == end) return 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        const uint64_t digit = (uint64_t)(*at - '0');
        if (*out > (UINT64_MAX - digit) / 10) return 0;
        *out = *out * 10 + digit;
    }
    return at == end;
}

/* Read a finite float; whether it is that. */
static int read_float(const char *at, const char *end, double *out)
{
    decimal number;
    if (!read_decimal(at, end, &number)) return 0;
    *out = float_of(&number);
    if (!isfinite(*out)) return 0;
    if (number.negative) *out = -*out;
    return 1;
}

/* Whether this is a label, with its weight perhaps: if labels are words, any word, else a
   number, or a list of numbers if a row has several. */
static int is_label(const char *at, const char *end)
{
    const char *colon = memchr(at, ':', (size_t)(end - at));
    double number;
    if (colon && (!read_float(colon + 1, end, &number) || number < 0)) return 0;
    if (THRESHER_WORDS) return !memchr(at, 0, (size_t)(end - at));
    for (end = colon ? colon : end;; at++) {
        const char *comma = THRESHER_LISTS ? memchr(at, ',', (size_t)(end - at)) : NULL;
        if (!read_float(at, comma ? comma : end, &number)) return 0;
        if (!comma) return 1;
        at = comma;
    }
}

/* Read ID:VALUE ..., perhaps after a label and qid:GROUP, up to a comment: 0 if it is something else. */
static int features_of(const buffer *line, uint64_t *keys, double *values, size_t *count)
{
    const char *start = line->at, *end = start + line->size, *at, *stop;
    int grouped = 0;
    while (start < end && (*start == ' ' || *start == '\t')) start++;
    for (*count = 0, at = start;; at = stop) {
        const char *colon;
        while (at < end && (*at == ' ' || *at == '\t')) at++;
        if (at == end || *at == '#') return 1;
        for (stop = at; stop < end && *stop != ' ' && *stop != '\t' && *stop != '#'; stop++) continue;
        colon = memchr(at, ':', (size_t)(stop - at));
        if (*count == 0 && !grouped && stop - at > 4 && memcmp(at, "qid:", 4) == 0) {
            if (!read_float(at + 4, stop, values)) return 0;
            grouped = 1;
            continue;
        }
        if (at == start && (!colon || THRESHER_LABEL_WEIGHTS)) {
            if (!is_label(at, stop)) return 0;
            continue;
        }
        if (!colon || !read_whole(at, colon, keys + *count) || !read_float(colon + 1, stop, values + *count)) return 0;
        ++*count;
    }
}

static int predict_input(const char *wanted)
{
    static buffer line;
    int bad = 0;
    while (read_line(&line)) {
        double margins[THRESHER_OUTPUTS] = {0};
        uint64_t *keys;
        double *values;
        size_t count, blanks = 0;
        int failed;
        while (blanks < line.size && (line.at[blanks] == ' ' || line.at[blanks] == '\t')) blanks++;
        if (blanks == line.size || line.at[blanks] == '#') continue;
        keys = malloc((line.size + 1) * sizeof *keys);
        values = malloc((line.size + 1) * sizeof *values);
        if (!keys || !values) return 1;
        failed = !features_of(&line, keys, values, &count);
        if (!failed) failed = thresher_margins(keys, values, count, margins);
        if (failed) fprintf(stderr, "line %lu: not %s\n", line.number, THRESHER_READS);
        print_row(failed, margins, wanted);
        bad |= failed != 0;
        free(keys);
        free(values);
    }
    return bad;
}
#endif

/* The argument says what to print, as of thresher predict --output: margin (the default), probability or label. */
int main(int count, char **arguments)
{
    const char *wanted = count > 1 ? arguments[1] : "margin";
    if (count > 2 || (strcmp(wanted, "margin") && strcmp(wanted, "probability") && strcmp(wanted, "label"))) {
        fprintf(stderr, "usage: %s [margin|probability|label] < DATA\nDATA: %s\n", arguments[0], THRESHER_READS);
        return 2;
    }
    if (*wanted == 'p' && !THRESHER_PROBABILITIES) {
        fputs("this model's loss gives no probabilities; use margin or label\n", stderr);
        return 2;
    }
    return predict_input(wanted);
}
#endif
