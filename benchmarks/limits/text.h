/* Shared code of the references: clocks, reading a file into memory, parsing svmlight text. */
#ifndef TEXT_H
#define TEXT_H
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PADDING 64 /* zero bytes after every text, so that reading a token cannot run past its end */

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double wall(void) { return seconds(CLOCK_MONOTONIC); }

static inline double cpu(void) { return seconds(CLOCK_PROCESS_CPUTIME_ID); }

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts v. */
static inline double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, ascending);
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void *allocate(size_t bytes) {
    void *p = malloc(bytes);
    if (!p) die("malloc");
    return p;
}

static inline char *read_file(const char *path, size_t *size) {
    struct stat status;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &status)) die(path);
    char *text = allocate((size_t)status.st_size + PADDING);
    size_t have = 0;
    while (have < (size_t)status.st_size) {
        ssize_t got = read(file, text + have, (size_t)status.st_size - have);
        if (got <= 0) break;
        have += (size_t)got;
    }
    close(file);
    memset(text + have, 0, PADDING);
    *size = have;
    return text;
}

static inline unsigned digit(const char *p) { return (unsigned)(unsigned char)*p - '0'; }

static const double inverse[] = {1e0,   1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8,  1e-9,
                                 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19};
#define PLACES (int)(sizeof inverse / sizeof *inverse)

/* A decimal number: all its digits as one integer, times a power of ten. Moves *at past it. */
static inline double number(const char **at) {
    const char *p = *at;
    int negative = 0, places = 0; /* digits after the point, minus the exponent */
    uint64_t digits = 0;
    unsigned d;
    if (*p == '-') negative = 1, p++;
    else if (*p == '+') p++;
    while ((d = digit(p)) < 10) digits = digits * 10 + d, p++;
    if (*p == '.') {
        const char *first = ++p;
        while ((d = digit(p)) < 10) digits = digits * 10 + d, p++;
        places = (int)(p - first);
    }
    if ((*p | 32) == 'e') {
        int written = 0, below = 0;
        p++;
        if (*p == '-' || *p == '+') below = *p++ == '-';
        for (unsigned d; (d = digit(p)) < 10; p++) written = written * 10 + (int)d;
        places += below ? written : -written;
    }
    *at = p;
    double value = (double)digits;
    if (places > 0) value *= places < PLACES ? inverse[places] : pow(10, -places);
    else if (places < 0) value *= pow(10, -places);
    return negative ? -value : value;
}

/* One row that starts at p: label, then id:value pairs up to the newline, a comment or a bad token.
   Returns where the next row starts. A row of b bytes has fewer than b / 3 pairs. */
static inline const char *read_row(const char *p, const char *end, uint32_t *ids, float *values, size_t *count,
                                   float *label) {
    size_t n = 0;
    *label = (float)number(&p);
    for (;;) {
        while (*p == ' ' || *p == '\t' || *p == '\r') p++;
        if (p >= end || *p == '\n') break;
        uint32_t id = 0;
        for (unsigned d; (d = digit(p)) < 10; p++) id = id * 10 + d;
        if (*p != ':') {
            while (p < end && *p != '\n') p++;
            break;
        }
        p++;
        ids[n] = id;
        values[n++] = (float)number(&p);
    }
    *count = n;
    return p < end ? p + 1 : end;
}
#endif
