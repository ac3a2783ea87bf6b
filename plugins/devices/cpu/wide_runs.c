/*
 * wide_runs.c - which units of wide.h run here.
 */
#include "map_lanes.h"
#include "wide.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

bool wide_dots_run(void)
{
    enum { ROWS = 3 };

    return map_lanes_count() >= ROWS && __builtin_cpu_supports("avx512bf16");
}

/* Linux hands the tile registers out on request. */
bool wide_tiles_run(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    const unsigned bf16 = 1u << 22, tile = 1u << 24;
    unsigned a, b, c, d;

    if (!wide_dots_run())
        return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & bf16) == 0 || (d & tile) == 0)
        return false;
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

const wide_unit *wide_find(void)
{
    return wide_tiles_run() ? &wide_tiles : wide_dots_run() ? &wide_dots : NULL;
}
