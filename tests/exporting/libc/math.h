double exp(double), log(double), fabs(double), sqrt(double); float fabsf(float);
#define INFINITY ((float)(1e308 * 10))
#define isfinite(x) ((x) - (x) == 0)
#define isnan(x) ((x) != (x))
