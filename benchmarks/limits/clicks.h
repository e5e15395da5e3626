/* Rows of the click log as 64-bit keys: column 1 is the label, 2 to 14 are counts in bins, 15 to 40 are
   categories. The key of a category, or of the number of a bin, is its hash, seeded by the hash of the
   name of its column. Every value is 1, so none is kept. The text must end with a newline. */
#ifndef CLICKS_H
#define CLICKS_H
#include "hash.h"

#define COLUMNS 40
#define COUNTS 14   /* columns before the categories, with the label */
#define BINS 2048   /* more than any 64-bit number needs */
#define SMALL 1024  /* bins of smaller numbers are in a table */
#define CHUNK 16384 /* rows */

typedef struct {
    char names[COLUMNS][8]; /* padded */
    size_t sizes[COLUMNS];  /* of names */
    uint64_t seeds[COLUMNS], keys[COUNTS][BINS];
    uint16_t bins[SMALL];
} columns;

static inline uint16_t bin_of(uint64_t count) {
    double log_of = count > 2 ? log((double)count) : 0;
    return (uint16_t)(count > 2 ? (uint64_t)(log_of * log_of) + 2 : count);
}

static inline columns *make_columns(void) {
    columns *all = allocate(sizeof *all);
    memset(all, 0, sizeof *all);
    for (uint64_t k = 0; k < SMALL; k++) all->bins[k] = bin_of(k);
    for (int c = 0; c < COLUMNS; c++) {
        all->sizes[c] = (size_t)snprintf(all->names[c], sizeof all->names[c], "%d", c + 1);
        all->seeds[c] = hash(all->names[c], all->sizes[c], 0);
        for (int k = 0; c < COUNTS && k < BINS; k++) {
            char digits[16] = {0};
            all->keys[c][k] = hash(digits, (size_t)snprintf(digits, sizeof digits, "%d", k), all->seeds[c]);
        }
    }
    return all;
}

static inline uint64_t key_of_count(const columns *all, int column, uint64_t count) {
    return all->keys[column][count < SMALL ? all->bins[count] : bin_of(count)];
}

/* In each byte of x that equals `sought`, the highest bit; only the first such byte is exact. */
static inline uint64_t equals(uint64_t x, char sought) {
    const uint64_t ones = 0x0101010101010101ull;
    x ^= ones * (unsigned char)sought;
    return (x - ones) & ~x & ones << 7;
}

/* The first place at or after p of one of two characters. The text must contain one. */
static inline const char *find(const char *p, char one, char other) {
    for (;; p += 8) {
        uint64_t x = word(p, 8), found = equals(x, one) | equals(x, other);
        if (found) return p + (__builtin_ctzll(found) >> 3);
    }
}

/* Digits at *at, which is moved past them. */
static inline uint64_t whole(const char **at) {
    uint64_t count = 0;
    for (unsigned d; (d = digit(*at)) < 10; ++*at) count = count * 10 + d;
    return count;
}

/* One line of tab-separated text: keys in the order of columns, and a label of -1 or 1; returns where the
   next line starts. Keys need room for COLUMNS. */
static inline const char *read_click(const columns *all, const char *p, uint64_t *keys, size_t *count,
                                     float *label) {
    size_t n = 0;
    *label = *p == '1' ? 1.0f : -1.0f;
    p++;
    for (int c = 1; c < COUNTS; c++) {
        const char *first = ++p;
        uint64_t count_of = whole(&p);
        keys[n] = key_of_count(all, c, count_of);
        n += p > first;
    }
    for (int c = COUNTS; c < COLUMNS; c++) {
        const char *first = ++p;
        p = find(p, '\t', '\n');
        keys[n] = hash(first, (size_t)(p - first), all->seeds[c]);
        n += p > first;
    }
    *count = n;
    return p + 1;
}

/* A sum that tells whether two readers have found the same keys. */
static inline uint64_t sum_of(const uint64_t *keys, size_t n) {
    uint64_t sum = 0;
    for (size_t k = 0; k < n; k++) sum += keys[k] >> 44;
    return sum;
}

typedef const char *(*reader)(const columns *, const char *, uint64_t *, size_t *, float *);

/* Times reading all rows of a file in memory; keys of CHUNK rows are kept at a time. `read` is inlined. */
static inline int time_reading(const char *name, reader read, int argc, char **argv) {
    if (argc < 2) return fprintf(stderr, "usage: %s FILE [REPS]\n", name), 2;
    int reps = argc > 2 ? atoi(argv[2]) : 5;
    const columns *all = make_columns();
    size_t size, rows = 0, nnz = 0;
    const char *text = read_file(argv[1], &size), *end = text + size;
    uint64_t *keys = allocate(CHUNK * COLUMNS * sizeof *keys), sum = 0;
    float *labels = allocate(CHUNK * sizeof *labels);
    double *took = allocate((size_t)reps * sizeof *took), spent = 0;
    for (int r = 0; r < reps; r++) {
        rows = nnz = sum = 0;
        double start = wall(), before = cpu();
        for (const char *p = text; p < end;) {
            size_t have = 0, n;
            for (size_t i = 0; i < CHUNK && p < end; i++, rows++, have += n)
                p = read(all, p, keys + have, &n, labels + i);
            nnz += have;
            sum += sum_of(keys, have);
        }
        took[r] = wall() - start;
        spent += cpu() - before;
    }
    double t = median(took, reps);
    printf("%s wall_s=%.4f cpu_s=%.4f mb_per_s=%.1f ns_per_nnz=%.3f rows=%zu nnz=%zu sum=%llu\n", name, t,
           spent / reps, (double)size / t / 1e6, t / (double)nnz * 1e9, rows, nnz, (unsigned long long)sum);
    return 0;
}
#endif
