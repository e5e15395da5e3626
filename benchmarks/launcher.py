"""Run a command; print its output, then one line of JSON: wall, cpu (seconds) and peak (MB)."""

import json
import os
import sys
import time


def main() -> int:
    sys.stdout.flush()
    start = time.perf_counter()
    child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
    _, status, used = os.wait4(child, 0)
    wall = time.perf_counter() - start
    peak = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3 / 1.024)
    print(json.dumps({"wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak": peak}))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
