#include <stddef.h>
void *malloc(size_t), *realloc(void *, size_t); void free(void *), exit(int);
