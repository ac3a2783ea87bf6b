/*
 * wide_rows.c - which of the kernels of wide.h this processor can run.
 */
#include "wide.h"

#include <stddef.h>

#if defined(__x86_64__)

#include <sys/syscall.h>
#include <unistd.h>

#include "map_lanes.h"

/* Linux hands the tile registers out on request. */
static bool has_amx(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d;

    if (!__builtin_cpu_supports("avx512bf16"))
        return false;
    a = 7;
    c = 0;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if ((d >> 22 & 1) == 0 || (d >> 24 & 1) == 0)
        return false;
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static const wide_lanes *const rows[] = { &wide_lanes_baseline, &wide_lanes_avx2,
                                          &wide_lanes_avx512 };
enum { ROWS = sizeof rows / sizeof *rows };

wide_choice wide_lanes_row(int row)
{
    wide_choice c = { rows[row], rows[row] };

    if (row == ROWS - 1 && __builtin_cpu_supports("avx512bf16"))
        c.half = has_amx() ? &wide_amx : &wide_bf16;
    return c;
}

const wide_lanes *wide_lanes_number(int number)
{
    int count = map_lanes_count();

    if (number < count)
        return rows[number];
    if (number == count && count == ROWS && __builtin_cpu_supports("avx512bf16"))
        return &wide_bf16;
    return number == count + 1 && count == ROWS && has_amx() ? &wide_amx : NULL;
}

#else

wide_choice wide_lanes_row(int row)
{
    (void)row;
    return (wide_choice){ &wide_lanes_baseline, &wide_lanes_baseline };
}

const wide_lanes *wide_lanes_number(int number)
{
    return number == 0 ? &wide_lanes_baseline : NULL;
}

#endif
