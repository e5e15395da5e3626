/* tsv FILE [REPS]: speed of reading tab-separated clicks in memory to hashed keys, on one core. */
#include "clicks.h"

int main(int argc, char **argv) { return time_reading("tsv", read_click, argc, argv); }
