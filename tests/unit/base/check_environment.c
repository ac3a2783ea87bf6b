/*
 * check_environment.c - variables that the program hides from the libraries of a device plugin.
 */
#include "support/suite.h"

#include "cli/command.h"
#include "cli/environment.h"

#include <stdlib.h>

static const char *const hidden[] = {
    "OMP_NUM_THREADS", "OMP_SCHEDULE", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "ONEDNN_MAX_CPU_ISA",
    "ONEDNN_VERBOSE", "ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_MAX_CPU_ISA", "DNNL_JIT_DUMP",
};

/* Variables of launchers and users, and names that only begin or end like hidden ones. */
static const char *const kept[] = {
    "OMPI_COMM_WORLD_RANK", "PONS_PLUGIN_PATH", "MY_ONEDNN_VERBOSE", "DNNLESS",
};

enum { HIDDEN = sizeof hidden / sizeof *hidden, KEPT = sizeof kept / sizeof *kept };

START_TEST(variables_of_kernel_libraries_are_hidden)
{
    for (int i = 0; i < HIDDEN; i++)
        setenv(hidden[i], "SSE41", 1);
    environment_prepare();
    for (int i = 0; i < HIDDEN; i++)
        ck_assert_msg(getenv(hidden[i]) == NULL, "%s is still set", hidden[i]);
}
END_TEST

START_TEST(variables_of_other_programs_are_kept)
{
    for (int i = 0; i < KEPT; i++)
        setenv(kept[i], "3", 1);
    environment_prepare();
    for (int i = 0; i < KEPT; i++)
        ck_assert_pstr_eq(getenv(kept[i]), "3");
}
END_TEST

START_TEST(openmp_threads_spin_briefly_and_then_sleep)
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

    tcase_add_test(c, variables_of_kernel_libraries_are_hidden);
    tcase_add_test(c, variables_of_other_programs_are_kept);
    tcase_add_test(c, openmp_threads_spin_briefly_and_then_sleep);
    return suite_run();
}
