/* sgd TRAIN TEST ETA0 L1 [REPS]: one pass over rows in memory, excluding parsing; then the error on TEST. */
#include "learner.h"

typedef struct {
    uint32_t *ids;
    float *values, *labels;
    size_t *start; /* row i is start[i] .. start[i + 1] */
    size_t rows, size;
} table;

static table load(const char *path) {
    size_t bytes, lines = 1;
    char *text = read_file(path, &bytes);
    for (const char *p = text; (p = memchr(p, '\n', (size_t)(text + bytes - p))); p++) lines++;
    table t = {.ids = allocate(bytes / 3 * sizeof *t.ids + PADDING),
               .values = allocate(bytes / 3 * sizeof *t.values + PADDING),
               .labels = allocate(lines * sizeof *t.labels),
               .start = allocate((lines + 1) * sizeof *t.start)};
    size_t nnz = 0;
    for (const char *p = text, *end = text + bytes; p < end; t.rows++) {
        size_t n;
        t.start[t.rows] = nnz;
        p = read_row(p, end, t.ids + nnz, t.values + nnz, &n, t.labels + t.rows);
        for (size_t j = nnz; j < nnz + n; j++) t.size = t.ids[j] >= t.size ? t.ids[j] + 1 : t.size;
        nnz += n;
    }
    t.start[t.rows] = nnz;
    free(text);
    return t;
}

static double one_pass(learner *m, const table *data) {
    memset(m->weights, 0, m->size * sizeof *m->weights);
    m->bias = m->owed[0] = 0;
    m->steps = 0;
    double start = wall();
    for (size_t i = 0; i < data->rows; i++) {
        size_t at = data->start[i];
        step(m, data->start[i + 1] - at, data->ids + at, data->values + at, data->labels[i]);
    }
    return wall() - start;
}

static double error_percent(const learner *m, const table *data) {
    size_t wrong = 0;
    for (size_t i = 0; i < data->rows; i++) {
        float margin = m->bias;
        for (size_t k = data->start[i]; k < data->start[i + 1]; k++)
            margin += m->weights[data->ids[k]].w * data->values[k];
        wrong += margin * data->labels[i] <= 0;
    }
    return 100.0 * (double)wrong / (double)data->rows;
}

int main(int argc, char **argv) {
    if (argc < 5) return fputs("usage: sgd TRAIN TEST ETA0 L1 [REPS]\n", stderr), 2;
    int reps = argc > 5 ? atoi(argv[5]) : 5;
    table train = load(argv[1]), test = load(argv[2]);
    learner m = {.size = train.size > test.size ? train.size : test.size,
                 .owed = allocate((train.rows + 1) * sizeof *m.owed),
                 .eta0 = strtof(argv[3], NULL),
                 .l1 = strtof(argv[4], NULL)};
    m.weights = allocate(m.size * sizeof *m.weights);
    double *took = allocate((size_t)reps * sizeof *took);
    for (int r = 0; r < reps; r++) took[r] = one_pass(&m, &train);
    double t = median(took, reps);
    size_t nonzero = settle(&m);
    printf("sgd wall_s=%.4f ns_per_nnz=%.3f mrows_per_s=%.3f error_percent=%.3f nonzero=%zu\n", t,
           t / (double)train.start[train.rows] * 1e9, (double)train.rows / t / 1e6, error_percent(&m, &test), nonzero);
    return 0;
}
