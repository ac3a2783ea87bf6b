/*
 * units.c - see units.h.
 */
#include "support/graph/units.h"

static void units_say(const char *of, const unit_name *unit, int count)
{
    bool all = true;

    printf("ran on %s:", of);
    for (int i = 0; i < count; i++) {
        if (unit[i].runs)
            printf(" %s", unit[i].name);
        all = all && unit[i].runs;
    }
    printf(all ? "" : "; not on this processor:");
    for (int i = 0; i < count; i++)
        if (!unit[i].runs)
            printf(" %s", unit[i].name);
    printf("\n");
    fflush(stdout); /* flushed before tests are forked */
}

void units_say_rows(void)
{
    int count = isa_rows_built();
    unit_name *rows = calloc((size_t)count, sizeof *rows);

    for (int i = 0; i < count && rows != NULL; i++)
        rows[i] = (unit_name){ isa_map_lanes(i)->name, i < isa_rows_count() };
    if (rows != NULL)
        units_say("rows of lanes", rows, count);
    free(rows);
}

void units_say_bf16_gemm(void)
{
    const unit_name units[] = { { "vectors of pairs", isa_runs(ISA_AVX512BF16) },
                                { "tile registers", isa_runs(ISA_AMX) } };

    units_say("units of products", units, 2);
}
