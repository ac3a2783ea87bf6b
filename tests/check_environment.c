/*
 * check_environment.c - what the program hides from the libraries that a device plugin brings.
 */
#include "suite.h"

#include "cli/command.h"
#include "cli/environment.h"

#include <stdlib.h>

static const char *const hidden[] = {
    "OMP_NUM_THREADS", "OMP_SCHEDULE", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "ONEDNN_MAX_CPU_ISA",
    "ONEDNN_VERBOSE", "ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_MAX_CPU_ISA", "DNNL_JIT_DUMP",
};

/* Of launchers, of the user, and alike only at their beginning. */
static const char *const kept[] = {
    "OMPI_COMM_WORLD_RANK", "PONS_PLUGIN_PATH", "MY_ONEDNN_VERBOSE", "DNNLESS",
};

enum { HIDDEN = sizeof hidden / sizeof *hidden, KEPT = sizeof kept / sizeof *kept };

START_TEST(libraries_of_kernels_find_no_variable_of_theirs)
{
    for (int i = 0; i < HIDDEN; i++)
        setenv(hidden[i], "SSE41", 1);
    environment_prepare();
    for (int i = 0; i < HIDDEN; i++)
        ck_assert_msg(getenv(hidden[i]) == NULL, "%s is still set", hidden[i]);
}
END_TEST

START_TEST(other_variables_stay)
{
    for (int i = 0; i < KEPT; i++)
        setenv(kept[i], "3", 1);
    environment_prepare();
    for (int i = 0; i < KEPT; i++)
        ck_assert_pstr_eq(getenv(kept[i]), "3");
}
END_TEST

START_TEST(openmp_looks_for_work_for_a_moment_and_then_sleeps)
{
    setenv("OMP_WAIT_POLICY", "active", 1);
    setenv("GOMP_SPINCOUNT", "infinite", 1);
    environment_prepare();
    ck_assert_pstr_eq(getenv("GOMP_SPINCOUNT"), "10000");
    ck_assert_pstr_eq(getenv("OMP_WAIT_POLICY"), "passive");
    ck_assert_pstr_eq(getenv("OMP_DYNAMIC"), "false");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("environment");

    tcase_add_test(c, libraries_of_kernels_find_no_variable_of_theirs);
    tcase_add_test(c, other_variables_stay);
    tcase_add_test(c, openmp_looks_for_work_for_a_moment_and_then_sleeps);
    return suite_run();
}
