/* hash FILE [REPS]: speed of hashing the lines of a file with MurmurHash3 x64_128 (first half), on one core. */
#include "hash.h"

int main(int argc, char **argv) {
    if (argc < 2) return fputs("usage: hash FILE [REPS]\n", stderr), 2;
    int reps = argc > 2 ? atoi(argv[2]) : 5;
    size_t size, count = 0;
    char *text = read_file(argv[1], &size);
    for (size_t i = 0; i < size; i++) count += text[i] == '\n';
    int64_t *starts = allocate(count * sizeof *starts), *sizes = allocate(count * sizeof *sizes);
    uint64_t *out = allocate(count * sizeof *out), sum = 0;
    for (size_t i = 0, at = 0; i < count; i++) {
        char *end = memchr(text + at, '\n', size - at);
        starts[i] = (int64_t)at;
        sizes[i] = end - text - (int64_t)at;
        at = (size_t)(end - text) + 1;
    }
    memset(out, 0, count * sizeof *out);
    double *took = allocate((size_t)reps * sizeof *took);
    for (int r = 0; r < reps; r++) {
        double start = wall();
        for (size_t i = 0; i < count; i++) out[i] = hash(text + starts[i], (size_t)sizes[i], 7);
        took[r] = wall() - start;
    }
    for (size_t i = 0; i < count; i++) sum += out[i] >> 44;
    double t = median(took, reps);
    printf("hash wall_s=%.5f ns_per_name=%.3f names=%zu sum=%llu\n", t, t / (double)count * 1e9, count,
           (unsigned long long)sum);
    return 0;
}
