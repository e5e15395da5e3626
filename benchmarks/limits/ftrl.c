/* ftrl FILE ALPHA L1 PART [REPS]: one pass of FTRL-Proximal (McMahan et al., 2013; beta 1) over clicks in
   memory, whose features are 64-bit hashes. PART is what is timed: `look-up` finds their rows in a table that
   grows, `learn` learns from rows found before, `both` does all. */
#include "clicks.h"
#include <sys/mman.h>

#define AHEAD 32                /* how many features ahead their slot or row is fetched */
#define PIECE 2048              /* rows, whose keys stay in the cache */
#define LARGE ((size_t)1 << 21) /* bytes of a large page */

typedef struct {
    uint64_t *keys;
    float *labels;
    size_t *start; /* row i is start[i] .. start[i + 1] */
    size_t rows;
} clicks;

typedef struct {
    uint64_t key;
    uint32_t row; /* 0: free */
} slot;

typedef struct {
    float w, z, root; /* the weight, and the z and the root of the n that it follows from */
} coordinate;

typedef struct {
    slot *slots; /* open addressing; at most half are taken */
    size_t size;
    int shift;
    uint32_t count;
    coordinate *rows, intercept; /* rows are NULL if nothing is learned */
    uint32_t *piece;             /* room for the rows of a piece */
    float inverse, l1;           /* 1 / alpha */
} model;

static clicks load(const char *path) {
    size_t bytes, lines = 0, nnz = 0;
    char *text = read_file(path, &bytes);
    const columns *all = make_columns();
    for (const char *p = text; (p = memchr(p, '\n', (size_t)(text + bytes - p))); p++) lines++;
    clicks t = {.keys = allocate((lines * (COLUMNS - 1) + AHEAD + 1) * sizeof *t.keys),
                .labels = allocate(lines * sizeof *t.labels),
                .start = allocate((lines + 1) * sizeof *t.start)};
    for (const char *p = text; p < text + bytes; t.rows++) {
        size_t n;
        t.start[t.rows] = nnz;
        p = read_click(all, p, t.keys + nnz, &n, t.labels + t.rows);
        nnz += n;
    }
    t.start[t.rows] = nnz;
    memset(t.keys + nnz, 0, AHEAD * sizeof *t.keys);
    free(text);
    return t;
}

/* Zeros, in large pages if the system has them, or few of the look-ups find their page without a search. */
static void *zeros(size_t bytes) {
    void *p;
    bytes = (bytes + LARGE - 1) / LARGE * LARGE;
    if (posix_memalign(&p, LARGE, bytes)) die("posix_memalign");
    madvise(p, bytes, MADV_HUGEPAGE);
    return memset(p, 0, bytes);
}

static slot *place(const model *m, uint64_t key) {
    size_t at = key >> m->shift;
    while (m->slots[at].row && m->slots[at].key != key) at = (at + 1) & (m->size - 1);
    return m->slots + at;
}

static void grow(model *m, int bits) {
    slot *old = m->slots;
    size_t before = m->size;
    m->size = (size_t)1 << bits;
    m->shift = 64 - bits;
    m->slots = zeros(m->size * sizeof *m->slots);
    for (size_t k = 0; k < before; k++)
        if (old[k].row) *place(m, old[k].key) = old[k];
    free(old);
    if (!m->rows) return;
    coordinate *few = m->rows;
    m->rows = memcpy(zeros(m->size / 2 * sizeof *few), few, before / 2 * sizeof *few);
    free(few);
}

/* The rows of n keys, after which AHEAD more can be read; new keys get the next rows. */
static void look_up(model *m, const uint64_t *keys, size_t n, uint32_t *rows) {
    for (size_t k = 0; k < n; k++) {
        __builtin_prefetch(m->slots + (keys[k + AHEAD] >> m->shift));
        slot *s = place(m, keys[k]);
        if (!s->row) {
            if (2 * (m->count + 2) > m->size) {
                grow(m, 65 - m->shift);
                s = place(m, keys[k]);
            }
            *s = (slot){keys[k], ++m->count};
        }
        rows[k] = s->row;
    }
}

static inline void step(coordinate *c, float g, float inverse, float l1) {
    float root = sqrtf(c->root * c->root + g * g);
    c->z += g - (root - c->root) * inverse * c->w;
    c->w = -(c->z - fmaxf(-l1, fminf(c->z, l1))) / ((1.0f + root) * inverse);
    c->root = root;
}

/* Learns from one example, given its n rows, after which AHEAD more can be read; returns its loss. */
static inline double learn(model *m, const uint32_t *rows, size_t n, float y) {
    float margin = 0;
    for (size_t k = 0; k < n; k++) {
        __builtin_prefetch(m->rows + rows[k + AHEAD]);
        margin += m->rows[rows[k]].w;
    }
    double z = (double)(margin + m->intercept.w) * y, e = exp(-fabs(z));
    float g = (float)(z > 0 ? -y * e / (1 + e) : -y / (1 + e));
    if (g != 0) {
        for (size_t k = 0; k < n; k++) step(m->rows + rows[k], g, m->inverse, m->l1);
        step(&m->intercept, g, m->inverse, 0);
    }
    return log1p(e) - (z > 0 ? 0 : z);
}

/* One pass over all pieces of PIECE rows: with `looks` it finds rows, with `learns` it learns from them. They
   are kept for all features in `known`, or, if that is NULL, for a piece at a time in m->piece. Returns the
   sum of losses. */
static double one_pass(model *m, const clicks *data, uint32_t *known, int looks, int learns) {
    double loss = 0;
    for (size_t lo = 0, hi; lo < data->rows; lo = hi) {
        hi = lo + PIECE < data->rows ? lo + PIECE : data->rows;
        const size_t first = data->start[lo], *start = data->start;
        uint32_t *rows = known ? known + first : m->piece;
        if (looks) look_up(m, data->keys + first, start[hi] - first, rows);
        for (size_t i = lo; learns && i < hi; i++)
            loss += learn(m, rows + start[i] - first, start[i + 1] - start[i], data->labels[i]);
    }
    return loss;
}

static model make_model(float alpha, float l1, int learns) {
    model m = {.inverse = 1 / alpha, .l1 = l1, .piece = calloc(PIECE * COLUMNS + AHEAD, sizeof *m.piece)};
    if (!m.piece) die("calloc");
    if (learns) m.rows = allocate(0);
    grow(&m, 12);
    return m;
}

static void drop(model *m) {
    free(m->slots);
    free(m->rows);
    free(m->piece);
}

int main(int argc, char **argv) {
    const int looks = argc > 4 && strcmp(argv[4], "learn"), learns = argc > 4 && strcmp(argv[4], "look-up");
    if (argc < 5 || (looks && learns && strcmp(argv[4], "both")))
        return fputs("usage: ftrl FILE ALPHA L1 look-up|learn|both [REPS]\n", stderr), 2;
    float alpha = strtof(argv[2], NULL), l1 = strtof(argv[3], NULL);
    int reps = argc > 5 ? atoi(argv[5]) : 3;
    clicks data = load(argv[1]);
    size_t nnz = data.start[data.rows], nonzero = 0;
    uint32_t *known = looks ? NULL : calloc(nnz + AHEAD, sizeof *known), count = 0;
    if (!looks && !known) die("calloc");
    double *took = allocate((size_t)reps * sizeof *took), spent = 0, loss = 0;
    for (int r = 0; r < reps; r++) {
        model m = make_model(alpha, l1, learns);
        if (known) one_pass(&m, &data, known, 1, 0);
        double start = wall(), before = cpu();
        loss = one_pass(&m, &data, known, looks, learns);
        took[r] = wall() - start;
        spent += cpu() - before;
        count = m.count;
        nonzero = 0;
        for (uint32_t k = 1; learns && k <= count; k++) nonzero += m.rows[k].w != 0;
        drop(&m);
    }
    double t = median(took, reps);
    printf("ftrl wall_s=%.5f cpu_s=%.5f ns_per_nnz=%.3f rows=%zu nnz=%zu distinct=%u nonzero=%zu "
           "progressive_loss=%.9f\n",
           t, spent / reps, t / (double)nnz * 1e9, data.rows, nnz, count, nonzero, loss / (double)data.rows);
    return 0;
}
