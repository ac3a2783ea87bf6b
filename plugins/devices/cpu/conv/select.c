/*
 * select.c - select the implementation of a convolution.
 *
 * The table is tried in order: the first solver that runs on this processor, supports the problem,
 * is profitable and fits the workspace limit is used. The last one is used whatever its workspace.
 */
#include "cpu/conv/bf16_gemm/bf16_gemm.h"
#include "cpu/conv/conv_testing.h"
#include "cpu/conv/direct/direct.h"
#include "cpu/conv/few_channels/few_channels.h"
#include "cpu/conv/few_channels_amx/few_channels_amx.h"
#include "cpu/conv/onednn/onednn.h"
#include "cpu/conv/winograd/winograd.h"

#include <string.h>

static const conv_solver solvers[] = {
    { "few_channels_amx", ISA_AMX, CONV_IMAGE, &few_channels_amx_operations },
    { "few_channels_amx", ISA_AMX, CONV_WEIGHT_GRADIENT, &few_channels_amx_gradient_operations },
    { "few_channels", ISA_BASELINE, CONV_ANY, &few_channels_operations },
    { "winograd", ISA_AVX512BF16, CONV_IMAGE, &winograd_operations },
    { "winograd", ISA_AVX512BF16, CONV_WEIGHT_GRADIENT, &winograd_gradient_operations },
    { "bf16_gemm", ISA_AVX512BF16, CONV_IMAGE, &bf16_gemm_operations },
    { "bf16_gemm", ISA_AVX512BF16, CONV_WEIGHT_GRADIENT, &bf16_gemm_gradient_operations },
    { "direct", ISA_AVX512BF16, CONV_ANY, &direct_large_operations },
    { "onednn", ISA_BASELINE, CONV_ANY, &onednn_operations },
    { "direct", ISA_BASELINE, CONV_ANY, &direct_operations },
};

enum { SOLVERS = sizeof solvers / sizeof *solvers };

static bool runs(const conv_solver *s, const conv_problem *p, isa set)
{
    return s->isa <= set && (s->directions & p->direction) != 0 &&
           (s->operations->supports == NULL || s->operations->supports(p));
}

static bool is_profitable(const conv_solver *s, const conv_problem *p, const conv_machine *m)
{
    return s->operations->profitable == NULL || s->operations->profitable(p, m);
}

static pons_status prepare(const conv_solver *s, const cpu_device *cpu, const conv_problem *p,
                           pons_kernel *kernel, pons_error *err)
{
    pons_status status = s->operations->prepare(cpu, p, kernel, err);

    if (status != PONS_OK || kernel->run == NULL)
        *kernel = (pons_kernel){ .run = NULL };
    else
        kernel->implementation = s->name;
    return status;
}

static void drop(pons_kernel *kernel)
{
    if (kernel->free != NULL)
        kernel->free(kernel);
    *kernel = (pons_kernel){ .run = NULL };
}

static bool fits(const cpu_device *cpu, const pons_kernel *kernel)
{
    size_t limit = cpu->settings.workspace_limit;

    return limit == 0 || kernel->scratch_size <= limit;
}

pons_status convolution_prepare(cpu_device *device, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err)
{
    const conv_machine machine = { .isa = device->isa, .onednn = device->library != NULL,
                                   .winograd = !device->settings.no_winograd };
    pons_status status = PONS_OK;
    conv_problem p;

    conv_problem_init(&p, request);
    for (int i = 0; i < SOLVERS && status == PONS_OK && kernel->run == NULL; i++) {
        if (!runs(&solvers[i], &p, device->isa) || !is_profitable(&solvers[i], &p, &machine))
            continue;
        status = prepare(&solvers[i], device, &p, kernel, err);
        if (kernel->run != NULL && !fits(device, kernel) && i + 1 < SOLVERS)
            drop(kernel);
    }
    *supported = kernel->run != NULL;
    return status;
}

/* ---- for tests ------------------------------------------------------------------------------- */

const conv_solver *conv_solver_at(int index)
{
    return index < SOLVERS ? &solvers[index] : NULL;
}

pons_status conv_prepare_by(const char *name, const cpu_device *cpu, const pons_request *request,
                            pons_kernel *kernel, bool *supported, pons_error *err)
{
    pons_status status = PONS_OK;
    conv_problem p;

    conv_problem_init(&p, request);
    for (int i = 0; i < SOLVERS && status == PONS_OK && kernel->run == NULL; i++)
        if (strcmp(solvers[i].name, name) == 0 && runs(&solvers[i], &p, cpu->isa))
            status = prepare(&solvers[i], cpu, &p, kernel, err);
    *supported = kernel->run != NULL;
    return status;
}
