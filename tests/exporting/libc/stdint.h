#include <stddef.h>
typedef unsigned long uint64_t; typedef unsigned int uint32_t; typedef int int32_t;
#define UINT64_C(x) x##UL
#define UINT64_MAX (~0UL)
#define SIZE_MAX (~0UL)
