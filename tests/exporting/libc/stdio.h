#include <stddef.h>
typedef struct file FILE; extern FILE *stdin, *stdout, *stderr;
#define EOF (-1)
int getc(FILE *), putchar(int), puts(const char *), printf(const char *, ...), fprintf(FILE *, const char *, ...), fputs(const char *, FILE *);
