/*
 * command_doctor.c - pons doctor: devices and libraries of this machine, its limits, and missing
 * packages.
 */
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <pons/pons.h>

#include "base/build_feature.h"
#include "base/text/quote.h"
#include "base/thread/thread.h"
#include "cli/command.h"
#include "cli/machine.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_search.h"

/* ---- plugins --------------------------------------------------------------------------------- */

static pons_status print_plugins(pons_error *err)
{
    char **folders;
    plugin_file *files;
    int count, broken = 0;

    if (plugin_folders(&folders, err) != PONS_OK)
        return err->status;
    for (char **f = folders; *f != NULL; f++)
        quote_print(stdout, "%-10s %s%s\n", f == folders ? "folders" : "", *f,
               access(*f, R_OK | X_OK) == 0 ? "" : ": it cannot be read");
    plugin_folders_free(folders);
    if (plugin_list(&files, &count, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count; i++)
        broken += files[i].problem != NULL;
    printf("%-10s %d, %d of them broken\n", "plugins", count, broken);
    for (int i = 0; i < count; i++)
        if (files[i].problem != NULL)
            quote_print(stdout, "%-10s %s: %s\n", "", files[i].path, files[i].problem);
    plugin_list_free(files, count);
    return PONS_OK;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static const struct { int resource; const char *name; double unit; const char *unit_name; }
limits[] = {
    { RLIMIT_NOFILE, "files", 1, "open at a time" },
    { RLIMIT_NPROC, "processes", 1, "and threads" },
    { RLIMIT_AS, "addresses", 0x1p-30, "GiB" },
    { RLIMIT_DATA, "data", 0x1p-30, "GiB" },
    { RLIMIT_MEMLOCK, "locked", 0x1p-20, "MiB" },
    { RLIMIT_FSIZE, "file size", 0x1p-30, "GiB" },
};

static void print_limits(void)
{
    struct rlimit found;

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (getrlimit(limits[i].resource, &found) != 0)
            continue;
        if (found.rlim_cur == RLIM_INFINITY)
            printf("%-10s not limited\n", limits[i].name);
        else
            printf("%-10s %.10g %s\n", limits[i].name, (double)found.rlim_cur * limits[i].unit,
                   limits[i].unit_name);
    }
}

static void print_processors(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    printf("%-10s %d of %ld", "cores", CPU_COUNT(&set), sysconf(_SC_NPROCESSORS_ONLN));
    if (thread_quota() < CPU_COUNT(&set))
        printf(", the time of %.3g (quota of the control group)", thread_quota());
    printf("\n");
}

static void print_space(const char *name, const char *folder)
{
    struct statvfs s;

    if (statvfs(folder, &s) == 0)
        printf("%-10s %.1f GiB free in %s\n", name,
               (double)s.f_bavail * (double)s.f_frsize * 0x1p-30, folder);
}

/* ---- parts of the build ---------------------------------------------------------------------- */

static void print_parts(void)
{
    int missing = 0;

    for (const build_feature *p = build_features; p->name != NULL; p++) {
        printf("%-10s %s: %s\n", p->name, p->use, p->there ? "yes" : "not in this build");
        missing += !p->there;
    }
    if (missing == 0)
        return;
    printf("\nWhat is not in this build is optional. It is found when pons is configured again "
           "after:\n    apt-get install");
    for (const build_feature *p = build_features; p->name != NULL; p++)
        if (!p->there)
            printf(" %s", p->package);
    printf("\n");
}

static pons_status run(const invocation *call, const void *flags, pons_error *err)
{
    printf("pons %s\n\n", pons_version());
    if (print_plugins(err) != PONS_OK)
        return err->status;
    printf("\nDevices\n");
    if (machine_print_devices(stdout, err) != PONS_OK)
        return err->status;
    printf("\nCommunicators of several processes\n");
    if (machine_print_comms(stdout, err) != PONS_OK)
        return err->status;
    printf("\nLimits of this process\n");
    print_processors();
    print_limits();
    print_space("disk", ".");
    print_space("shared", "/dev/shm");
    printf("\nLibraries\n");
    print_parts();
    return PONS_OK;
}

const command command_doctor = {
    "doctor", "what was found on this machine, its limits, what to install", "", NULL, 0, "", 0, 0,
    run
};
