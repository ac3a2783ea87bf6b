/*
 * explain_kernels.c - print the kernels of a program, each in a line.
 */
#include "cli/explain/explain_kernels.h"

#include <stdio.h>

#include "base/integer.h"
#include "base/text/text.h"

const char *explain_section_name(node_section section)
{
    static const char *const names[] = { "begin", "micro", "reduce", "update" };

    return names[section];
}

void explain_print_kernels(const program *p, const program_facts *facts)
{
    printf("%-7s %-28s %-16s %6s %10s %11s  %s\n", "section", "kernel", "by", "nodes", "moved",
           "operations", "memory alive");
    for (int i = 0; i < facts->kernel_count; i++) {
        static const char bar[] = "########################################";
        kernel_facts k = program_kernel(p, i);
        int size = facts->arena > 0 ? (int)(40.0 * (double)k.arena / (double)facts->arena) : 0;
        char moved[32], flop[32], alive[32];
        printf("%-7s %-28.28s %-16s %6d %10s %11s  %10s %.*s %s\n",
               explain_section_name(k.section), k.kind,
               k.implementation != NULL ? k.implementation : "", k.nodes,
               text_amount((double)k.bytes, "B", moved), text_amount((double)k.flop, "FLOP", flop),
               text_amount((double)k.arena, "B", alive), min_int(size, 40), bar, k.name);
    }
}
