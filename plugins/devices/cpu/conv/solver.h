/*
 * solver.h - one way to compute a convolution, and the table of all of them (select.c).
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_SOLVER_H
#define PLUGINS_DEVICES_CPU_CONV_SOLVER_H

#include "cpu/conv/problem.h"
#include "cpu/cpu.h"

/* Properties of the machine and settings that a choice depends on. */
typedef struct conv_machine {
    isa isa;
    bool onednn;    /* this build has the library */
    bool winograd;  /* Winograd kernels are allowed (R11) */
} conv_machine;

typedef struct conv_operations {
    /* Whether 'prepare' can make a kernel; NULL: always. */
    bool (*supports)(const conv_problem *problem);
    /* Whether the kernel is the best one that the table holds from here on; NULL: always. */
    bool (*profitable)(const conv_problem *problem, const conv_machine *machine);
    /*
     * Fill a zeroed kernel but for its name. PONS_OK without kernel->run: the problem has no kernel
     * after all, which a library only knows then.
     */
    pons_status (*prepare)(const cpu_device *cpu, const conv_problem *problem, pons_kernel *kernel,
                           pons_error *err);
} conv_operations;

typedef struct conv_solver {
    const char *name;       /* of the implementation, for explain and bench */
    isa isa;                /* the least that it needs */
    unsigned directions;    /* conv_direction */
    const conv_operations *operations;
} conv_solver;

#endif
