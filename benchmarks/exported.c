/* Processor time of thresher_predict on the rows of standard input, which are cut into cells before. */

#define THRESHER_MAIN
#define main exported_main
#include MODEL
#undef main
#include <time.h>

int main(void)
{
    static buffer line;
    size_t rows = 0, room = 0;
    thresher_cell(*cells)[THRESHER_COLUMNS] = NULL;
    double found[THRESHER_OUTPUTS], spent, sum = 0;
    clock_t start;
    while (read_line(&line)) {
        thresher_cell cut[THRESHER_WIDTH];
        if (rows == room) cells = realloc(cells, (room = 2 * room + 1024) * sizeof *cells);
        if (cells_of(&line, cut, THRESHER_WIDTH) != THRESHER_WIDTH) return 1;
        for (int c = 0; c < THRESHER_COLUMNS; c++) cells[rows][c] = cut[places[1][c]];
        rows++;
        line = (buffer){NULL, 0, 0}; /* the cells are in it */
    }
    start = clock();
    for (size_t k = 0; k < rows; k++) {
        if (thresher_predict((const thresher_cell *)cells[k], found)) return 1;
        sum += found[0];
    }
    spent = (double)(clock() - start) / CLOCKS_PER_SEC;
    printf("predict rows=%zu cpu_s=%.6f ns=%.0f mean=%.6f\n", rows, spent, 1e9 * spent / (double)rows, sum / (double)rows);
    return 0;
}
