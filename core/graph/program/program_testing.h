/*
 * program_testing.h - switches that tests set in the settings of a program.
 */
#ifndef CORE_GRAPH_PROGRAM_PROGRAM_TESTING_H
#define CORE_GRAPH_PROGRAM_PROGRAM_TESTING_H

#include <stdbool.h>

typedef struct program_testing {
    bool no_fuse;             /* each node is a kernel of its own                                 */
    bool no_reuse;            /* no two tensors of the arena share memory                         */
} program_testing;

#endif
