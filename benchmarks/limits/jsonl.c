/* jsonl FILE [REPS]: speed of reading clicks as JSON lines in memory to hashed keys, on one core. Objects are
   flat; values are counts, null, or strings without escapes. */
#include "clicks.h"

static const char *past(const char *p, char wanted) {
    while (*p == ' ' || *p == '\t' || *p == '\r') p++;
    if (*p != wanted) {
        fprintf(stderr, "jsonl: expected %c, found %.20s\n", wanted, p);
        exit(1);
    }
    p++;
    while (*p == ' ' || *p == '\t' || *p == '\r') p++;
    return p;
}

/* The closing quote of the string that starts at p. */
static inline const char *closing(const char *p) {
    p = find(p, '"', '\\');
    return *p == '"' ? p : past(p, '"');
}

/* The column of a name, or COLUMNS; most objects have the columns in order, so it is probably `next`. */
static inline int column_of(const columns *all, const char *name, size_t size, int next) {
    uint64_t sought = size < 8 ? word(name, size) : 0;
    for (int k = 0; k < COLUMNS; k++, next++) {
        next = next < COLUMNS ? next : 0;
        if (size == all->sizes[next] && sought == word(all->names[next], 8)) return next;
    }
    return COLUMNS;
}

static inline const char *read_object(const columns *all, const char *p, uint64_t *keys, size_t *count,
                                      float *label) {
    size_t n = 0;
    int column = -1;
    for (p = past(p, '{'); *p != '}';) {
        const char *name = past(p, '"'), *end = closing(name);
        column = column_of(all, name, (size_t)(end - name), column + 1);
        p = past(end + 1, ':');
        const char *first = p + 1;
        if (*p == '"') {
            p = closing(first);
            if (column < COLUMNS && p > first)
                keys[n++] = hash(first, (size_t)(p - first), all->seeds[column]);
            p++;
        } else if (digit(p) < 10) {
            uint64_t value = whole(&p);
            if (column == 0) *label = value ? 1.0f : -1.0f;
            else if (column < COUNTS) keys[n++] = key_of_count(all, column, value);
        } else {
            p += memcmp(p, "null", 4) ? 0 : 4;
        }
        if (*p != '}') p = past(p, ',');
    }
    *count = n;
    return past(p, '}') + 1;
}

int main(int argc, char **argv) { return time_reading("jsonl", read_object, argc, argv); }
