/* stream TRAIN ETA0 L1: from the file to weights in one pass on one core, block by block; weights grow with ids. */
#include "learner.h"

#define BLOCK ((size_t)1 << 20)

typedef struct {
    uint32_t *ids;
    float *values;
    char *text;
    size_t room; /* bytes of text, excluding padding */
} buffers;

static void *resize(void *p, size_t bytes) {
    p = realloc(p, bytes);
    if (!p) die("realloc");
    return p;
}

static void grow_buffers(buffers *b, size_t room) {
    b->room = room;
    b->text = resize(b->text, room + PADDING);
    b->ids = resize(b->ids, room / 3 * sizeof *b->ids + PADDING);
    b->values = resize(b->values, room / 3 * sizeof *b->values + PADDING);
}

static void grow_weights(learner *m, size_t need) {
    size_t size = m->size;
    while (size < need) size *= 2;
    m->weights = resize(m->weights, size * sizeof *m->weights);
    memset(m->weights + m->size, 0, (size - m->size) * sizeof *m->weights);
    m->size = size;
}

/* Learns from all rows of text .. end; returns the sum of their losses. */
static double learn(learner *m, const buffers *b, const char *end, size_t *owed_room) {
    double loss = 0;
    for (const char *p = b->text; p < end;) {
        size_t n;
        float y;
        p = read_row(p, end, b->ids, b->values, &n, &y);
        uint32_t largest = 0;
        for (size_t j = 0; j < n; j++) largest = b->ids[j] > largest ? b->ids[j] : largest;
        if (largest >= m->size) grow_weights(m, (size_t)largest + 1);
        if (m->steps + 2 > *owed_room) m->owed = resize(m->owed, (*owed_room *= 2) * sizeof *m->owed);
        loss += log1p(exp(-y * step(m, n, b->ids, b->values, y)));
    }
    return loss;
}

int main(int argc, char **argv) {
    if (argc < 4) return fputs("usage: stream TRAIN ETA0 L1\n", stderr), 2;
    double start = wall(), loss = 0;
    int file = open(argv[1], O_RDONLY);
    if (file < 0) die(argv[1]);
    size_t owed_room = BLOCK, have = 0, total = 0;
    learner m = {.eta0 = strtof(argv[2], NULL), .l1 = strtof(argv[3], NULL), .size = 1 << 16};
    m.weights = calloc(m.size, sizeof *m.weights);
    m.owed = allocate(owed_room * sizeof *m.owed);
    m.owed[0] = 0;
    buffers b = {0};
    grow_buffers(&b, 2 * BLOCK);
    for (ssize_t got = 1; got > 0;) {
        if (b.room - have < BLOCK) grow_buffers(&b, 2 * b.room);
        got = read(file, b.text + have, BLOCK);
        if (got < 0) die(argv[1]);
        have += (size_t)got;
        total += (size_t)got;
        memset(b.text + have, 0, PADDING);
        const char *last = got ? memrchr(b.text, '\n', have) : NULL;
        const char *end = last ? last + 1 : got ? b.text : b.text + have;
        loss += learn(&m, &b, end, &owed_room);
        have -= (size_t)(end - b.text);
        memmove(b.text, end, have);
    }
    size_t rows = m.steps, nonzero = settle(&m);
    double t = wall() - start;
    printf("stream wall_s=%.4f mb_per_s=%.1f rows=%zu progressive_loss=%.4f nonzero=%zu\n", t, (double)total / t / 1e6, rows,
           rows ? loss / (double)rows : 0.0, nonzero);
    return 0;
}
