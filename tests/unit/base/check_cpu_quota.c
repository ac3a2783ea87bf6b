/*
 * check_cpu_quota.c - the CPU quota of a process, read from folders like those of cgroup v1 and
 * v2.
 */
#include "base/system/cpu_quota.h"
#include "support/root.h"
#include "support/suite.h"

#include <limits.h>
#include <math.h>
#include <sys/stat.h>

enum { FILES = 4 };

/* The paths of 'file' decide which folders are made. */
typedef struct group_case {
    const char *name, *list;
    struct { const char *path, *text; } file[FILES];
    double expected;
} group_case;

static const group_case cases[] = {
    { "no groups", "", { { NULL, NULL } }, INFINITY },
    { "no limit", "0::/\n", { { "cpu.max", "max 100000\n" } }, INFINITY },
    { "a container", "0::/\n", { { "cpu.max", "250000 100000\n" } }, 2.5 },
    { "a group", "0::/job/step\n", { { "job/step/cpu.max", "800000 100000\n" } }, 8 },
    { "a group around it", "0::/job/step\n",
      { { "job/cpu.max", "300000 100000\n" }, { "job/step/cpu.max", "max 100000\n" } }, 3 },
    { "the least of both", "0::/job/step\n",
      { { "job/cpu.max", "300000 100000\n" }, { "job/step/cpu.max", "50000 100000\n" } }, 0.5 },
    { "a group of the host in a container", "0::/kubepods/pod7/abc\n",
      { { "cpu.max", "400000 100000\n" } }, 4 },
    { "another group's", "0::/job\n", { { "other/cpu.max", "100000 100000\n" } }, INFINITY },
    { "the first version", "3:cpuset:/\n2:cpu,cpuacct:/docker/abc\n1:memory:/docker/abc\n",
      { { "cpu/docker/abc/cpu.cfs_quota_us", "150000\n" },
        { "cpu/docker/abc/cpu.cfs_period_us", "50000\n" } }, 3 },
    { "the first version without a limit", "2:cpuacct,cpu:/\n",
      { { "cpu/cpu.cfs_quota_us", "-1\n" }, { "cpu/cpu.cfs_period_us", "100000\n" } },
      INFINITY },
    { "cpuset and cpuacct are others", "2:cpuacct:/\n3:cpuset:/\n",
      { { "cpu/cpu.cfs_quota_us", "100000\n" }, { "cpu/cpu.cfs_period_us", "100000\n" } },
      INFINITY },
    { "both versions", "1:cpu:/a\n0::/b\n",
      { { "cpu/a/cpu.cfs_quota_us", "200000\n" }, { "cpu/a/cpu.cfs_period_us", "100000\n" },
        { "b/cpu.max", "700000 100000\n" } }, 2 },
    { "nonsense", "0::/\nx\n:::\n1:cpu\n", { { "cpu.max", "1e5\n" } }, INFINITY },
    { "no numbers", "0::/\n", { { "cpu.max", "much 0\n" } }, INFINITY },
    { "a period of nothing", "0::/\n", { { "cpu.max", "100000 0\n" } }, INFINITY }
};
enum { CASES = sizeof cases / sizeof *cases };

/* Write a file and make the folders that lead to it. */
static void write_quota_file(const char *path, const char *text)
{
    char folder[256];

    snprintf(folder, sizeof folder, "%s", path);
    for (char *at = folder; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(in_root(folder), 0777);
        *at = '/';
    }
    write_text(path, text);
}

START_TEST(cpu_quotas_of_both_cgroup_versions_are_found)
{
    const group_case *c = &cases[_i];
    double found;

    make_root();
    write_text("list", c->list);
    for (int i = 0; i < FILES && c->file[i].path != NULL; i++)
        write_quota_file(c->file[i].path, c->file[i].text);
    found = cpu_quota_find(in_root("list"), root);
    remove_root();
    ck_assert_msg(found == c->expected, "%s: found %g, expected %g", c->name, found, c->expected);
}
END_TEST

START_TEST(without_cgroup_files_there_is_no_cpu_quota)
{
    ck_assert(isinf(cpu_quota_find("/nowhere", "/nowhere")));
}
END_TEST

START_TEST(a_cpu_quota_is_divided_into_whole_threads)
{
    static const struct { double quota; int sharers, threads; } shares[] = {
        { INFINITY, 1, INT_MAX }, { INFINITY, 8, INT_MAX }, { 8, 1, 8 }, { 8, 2, 4 }, { 7, 2, 3 },
        { 2.5, 1, 2 }, { 2.5, 2, 1 }, { 0.5, 1, 1 }, { 4, 9, 1 }, { 1e300, 2, INT_MAX }
    };

    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        ck_assert_int_eq(cpu_quota_threads(shares[i].quota, shares[i].sharers), shares[i].threads);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("quota");

    tcase_add_loop_test(c, cpu_quotas_of_both_cgroup_versions_are_found, 0, CASES);
    tcase_add_test(c, without_cgroup_files_there_is_no_cpu_quota);
    tcase_add_test(c, a_cpu_quota_is_divided_into_whole_threads);
    return suite_run();
}
