/*
 * conv_testing.h - solvers by name, for tests and benches.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_CONV_TESTING_H
#define PLUGINS_DEVICES_CPU_CONV_CONV_TESTING_H

#include "cpu/conv/solver.h"

/* The solvers in the order of the table; a name may come twice. NULL: behind the last. */
const conv_solver *conv_solver_at(int index);

/*
 * As convolution_prepare, by the solvers of that name alone, also where they are not profitable or
 * exceed the workspace limit.
 */
pons_status conv_prepare_by(const char *name, const cpu_device *cpu, const pons_request *request,
                            pons_kernel *kernel, bool *supported, pons_error *err);

#endif
