/*
 * wide_runs.c - whether the kernels of wide.h run here.
 */
#include "map_lanes.h"
#include "wide.h"

#include <sys/syscall.h>
#include <unistd.h>

/* Linux hands the tile registers out on request. */
bool wide_runs(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, ROWS = 3 };
    unsigned a, b, c, d;

    if (map_lanes_count() < ROWS || !__builtin_cpu_supports("avx512bf16"))
        return false;
    a = 7;
    c = 0;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if ((d >> 22 & 1) == 0 || (d >> 24 & 1) == 0)
        return false;
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
