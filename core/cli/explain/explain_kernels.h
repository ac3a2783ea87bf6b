/*
 * explain_kernels.h - the kernels of a program as a table.
 */
#ifndef CORE_CLI_EXPLAIN_EXPLAIN_KERNELS_H
#define CORE_CLI_EXPLAIN_EXPLAIN_KERNELS_H

#include "graph/program/explain.h"

/* The name of a section of a step: "begin", "micro", "reduce" or "update". */
const char *explain_section_name(node_section section);
void explain_print_kernels(const program *p, const program_facts *facts);

#endif
