/* parse FILE [REPS]: speed of parsing svmlight text in memory, on one core. */
#include "text.h"

int main(int argc, char **argv) {
    if (argc < 2) return fputs("usage: parse FILE [REPS]\n", stderr), 2;
    int reps = argc > 2 ? atoi(argv[2]) : 5;
    size_t size, rows = 0, nnz = 0;
    char *text = read_file(argv[1], &size);
    uint32_t *ids = allocate(size / 3 * sizeof *ids + PADDING);
    float *values = allocate(size / 3 * sizeof *values + PADDING);
    double *took = allocate((size_t)reps * sizeof *took), sum = 0;
    for (int r = 0; r < reps; r++) {
        rows = nnz = 0;
        sum = 0;
        double start = wall();
        for (const char *p = text, *end = text + size; p < end;) {
            size_t n;
            float y;
            p = read_row(p, end, ids, values, &n, &y);
            rows++;
            nnz += n;
            if (n) sum += y * values[n - 1] + ids[0];
        }
        took[r] = wall() - start;
    }
    double t = median(took, reps);
    printf("parse wall_s=%.4f mb_per_s=%.1f ns_per_nnz=%.3f rows=%zu nnz=%zu checksum=%.3f\n", t, (double)size / t / 1e6,
           t / (double)nnz * 1e9, rows, nnz, sum);
    return 0;
}
