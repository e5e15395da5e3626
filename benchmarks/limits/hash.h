/* MurmurHash3 x64_128, first half, of names in a padded text. */
#ifndef HASH_H
#define HASH_H
#include "text.h"

static inline uint64_t turn(uint64_t x, int by) { return x << by | x >> (64 - by); }

static inline uint64_t finish(uint64_t x) {
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

/* The first `bytes` (at most 8) bytes at p. Reads 8 bytes, which the padding of the text allows. */
static inline uint64_t word(const char *p, size_t bytes) {
    uint64_t x;
    memcpy(&x, p, 8);
    return bytes == 0 ? 0 : bytes < 8 ? x & ((1ull << 8 * bytes) - 1) : x;
}

static inline uint64_t hash(const char *p, size_t size, uint64_t seed) {
    const uint64_t a = 0x87c37b91114253d5ull, b = 0x4cf5ad432745937full;
    uint64_t h = seed, k = seed;
    size_t left = size;
    for (; left >= 16; left -= 16, p += 16) {
        h ^= turn(word(p, 8) * a, 31) * b;
        h = (turn(h, 27) + k) * 5 + 0x52dce729;
        k ^= turn(word(p + 8, 8) * b, 33) * a;
        k = (turn(k, 31) + h) * 5 + 0x38495ab5;
    }
    if (left > 8) k ^= turn(word(p + 8, left - 8) * b, 33) * a;
    h ^= turn(word(p, left) * a, 31) * b;
    h ^= size;
    k ^= size;
    h += k;
    k += h;
    return finish(h) + finish(k);
}
#endif
