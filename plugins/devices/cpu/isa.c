/*
 * isa.c - the instruction sets of this processor. No other file of this folder queries the
 * processor, so a build with a limit gives the results of a smaller processor.
 */
#include "cpu/isa.h"

#ifndef CPU_ISA_LIMIT
#define CPU_ISA_LIMIT ISA_AMX
#endif

isa isa_limit(void) { return CPU_ISA_LIMIT; }

#if defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_baseline(void) { return true; }

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static bool has_avx512bf16(void) { return __builtin_cpu_supports("avx512bf16"); }

/* Linux grants the tile registers on request. */
static bool has_amx(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    const unsigned bf16 = 1u << 22, tile = 1u << 24;
    unsigned a, b, c, d;

    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & bf16) == 0 || (d & tile) == 0)
        return false;
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

bool isa_runs(isa set)
{
    static bool (*const has[])(void) = { has_baseline, has_avx2, has_avx512, has_avx512bf16,
        has_amx };

    for (int i = 0; i <= (int)set; i++)
        if (i > (int)isa_limit() || !has[i]())
            return false;
    return true;
}

#else

bool isa_runs(isa set) { return set == ISA_BASELINE; }

#endif

isa isa_best(void)
{
    isa best = ISA_BASELINE;

    while (best < ISA_AMX && isa_runs(best + 1))
        best++;
    return best;
}
