/*
 * bench_modes.c - list the modes and numbers of devices to compare, and measure each.
 *
 * Every measurement is a process of its own, so its memory, threads and kernels do not affect the
 * next one.
 */
#include "cli/bench/bench_modes.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/json.h"
#include "base/thread/thread.h"
#include "device/device_choose.h"

extern char **environ;

enum { MODES = 3, COUNTS_MAX = 8, OUTPUT_MAX = 16 << 20 };

static const char *const mode_names[MODES] = { "single", "dp", "ddp" };

/* One measurement. A single replica has as many threads as one of 'devices' replicas would have. */
typedef struct arrangement {
    int mode, devices, threads; /* threads 0: not set, for GPUs                                   */
    char *text;               /* output of the child                                              */
    json_t *found;
} arrangement;

typedef struct arrangements {
    int count;
    arrangement item[MODES * COUNTS_MAX];
} arrangements;

/* ---- arrangements ---------------------------------------------------------------------------- */

/* The devices that replicas divide among them: listed GPUs, or all processors of this process. */
typedef struct supply {
    device_list list;
    bool shares;
    int most;
} supply;

static pons_status find_supply(const sections *s, supply *out, pons_error *err)
{
    *out = (supply){ .shares = true, .most = thread_processors() };
    if (device_choose(s->distribute.devices, DEVICE_USE_ALL, "[distribute] devices", &out->list,
                      err) != PONS_OK)
        return err->status;
    out->shares = strcmp(out->list.item[0].name, "cuda") != 0;
    if (!out->shares)
        out->most = out->list.count;
    if (out->most > DEVICES_MAX)
        out->most = DEVICES_MAX;
    return PONS_OK;
}

/* List the arrangements of 1, 2, 4, ... and all devices. */
static void list_arrangements(const supply *from, arrangements *out)
{
    int all = from->most;

    *out = (arrangements){ .count = 0 };
    for (int n = 1; n <= all; n = n < all && 2 * n > all ? all : 2 * n)
        for (int mode = 0; mode < MODES && out->count < MODES * COUNTS_MAX; mode++)
            if (mode == 0 ? n == 1 || from->shares : n > 1)
                out->item[out->count++] = (arrangement){ .mode = mode, .devices = n,
                                                         .threads = from->shares ? all / n : 0 };
}

/* Name the devices: shares of the processor like "cpu:0,1,2", "cpu" for one replica, first GPUs. */
static void name_devices(const supply *from, const arrangement *a, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "distribute.devices=%s", from->list.item[0].name);
    int named = a->mode > 0 ? a->devices : from->shares ? 0 : 1;

    for (int i = 0; i < named && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%c%d", i == 0 ? ':' : ',',
                                 from->shares ? i : from->list.item[i].index);
}

/* ---- one measurement ------------------------------------------------------------------------- */

static pons_status read_all(int from, char **out, pons_error *err)
{
    size_t size = 0, room = 4096;
    char *text = malloc(room);
    ssize_t n = 1;

    while (text != NULL && n != 0 && size < OUTPUT_MAX) {
        char *larger = size + 1 < room ? text : realloc(text, room *= 2);
        if (larger == NULL)
            break;
        text = larger;
        n = read(from, text + size, room - size - 1);
        if (n < 0 && errno != EINTR)
            break;
        size += n > 0 ? (size_t)n : 0;
    }
    if (text == NULL || n != 0) {
        free(text);
        return pons_fail(err, PONS_FAILURE, "cannot read what a measurement has printed");
    }
    text[size] = '\0';
    *out = text;
    return PONS_OK;
}

static pons_status start(const char *const *words, int output, pid_t *child, pons_error *err)
{
    posix_spawn_file_actions_t actions;
    int status = posix_spawn_file_actions_init(&actions);

    if (status == 0) {
        status = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        if (status == 0)
            status = posix_spawn(child, "/proc/self/exe", &actions, NULL, (char *const *)words,
                                 environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (status != 0)
        return pons_fail(err, PONS_FAILURE, "cannot start a measurement: %s", strerror(status));
    return PONS_OK;
}

/* Run a child. *code is its exit code, *out its standard output. */
static pons_status run_child(const char *const *words, int *code, char **out, pons_error *err)
{
    int pipe_end[2], status = 0;
    pid_t child;

    if (pipe2(pipe_end, O_CLOEXEC) != 0)
        return pons_fail(err, PONS_FAILURE, "cannot start a measurement: %s", strerror(errno));
    start(words, pipe_end[1], &child, err);
    close(pipe_end[1]);
    bool started = err->status == PONS_OK;
    if (started)
        read_all(pipe_end[0], out, err);
    close(pipe_end[0]); /* ends a child that still writes */
    while (started && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return err->status;
}

/* Measure an arrangement with 'words' and the settings of the arrangement. */
static pons_status measure_arrangement(const char *const *words, const supply *from,
                                       arrangement *a, int *code, pons_error *err)
{
    char mode[32], devices[512], threads[64];
    const char *const own[] = { "-q", "--set", mode, "--set", devices, "--set", threads };
    const char **all;
    int count = 0;

    snprintf(mode, sizeof mode, "distribute.mode=%s", mode_names[a->mode]);
    if (a->threads > 0)
        snprintf(threads, sizeof threads, "distribute.threads=%d", a->threads);
    else
        snprintf(threads, sizeof threads, "distribute.threads=auto");
    name_devices(from, a, devices, sizeof devices);
    while (words[count] != NULL)
        count++;
    all = calloc((size_t)count + 2 + sizeof own / sizeof *own, sizeof *all);
    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    all[0] = "pons";
    memcpy(all + 1, words, (size_t)count * sizeof *all);
    memcpy(all + 1 + count, own, sizeof own);
    run_child(all, code, &a->text, err);
    free(all);
    return err->status;
}

static pons_status check_child(arrangement *a, int code, logger *l, pons_error *err)
{
    if (code == PONS_CONFIG && a->mode > 0) {
        log_warning(l, "%s with %d devices is left out", mode_names[a->mode], a->devices);
        free(a->text);
        a->text = NULL;
        return PONS_OK;
    }
    if (code < 0)
        return pons_fail(err, PONS_FAILURE, "the measurement of %s with %d devices was ended by "
                         "signal %d", mode_names[a->mode], a->devices, -code);
    if (code != 0)
        return pons_fail(err, (pons_status)code, "the measurement of %s with %d devices has failed",
                         mode_names[a->mode], a->devices);
    return json_parse(a->text, strlen(a->text), "a measurement", PONS_FAILURE, &a->found, err);
}

/* ---- all measurements ------------------------------------------------------------------------ */

static double number_at(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

static double seconds_of(const arrangement *a)
{
    return number_at(json_object_get(a->found, "step_seconds"), "median");
}

static void print_array(const arrangements *all)
{
    bool first = true;

    putchar('[');
    for (int i = 0; i < all->count; i++) {
        const char *text = all->item[i].text;
        if (text == NULL)
            continue;
        printf("%s%.*s", first ? "" : ",\n", (int)strcspn(text, "\n"), text);
        first = false;
    }
    puts("]");
}

/*
 * Print micro-batches per second, and their ratio to one replica with as many threads, times the
 * devices.
 */
static void print_row(const arrangement *a, const arrangement *alone)
{
    double seconds = seconds_of(a), m = number_at(a->found, "micro_batches");
    double hidden = number_at(json_object_get(a->found, "reduction"), "hidden");
    char threads[16] = "-";

    if (a->threads > 0)
        snprintf(threads, sizeof threads, "%d", a->threads);
    printf("%-7s %8d %8s %10.4f s %12.3f /s", mode_names[a->mode], a->mode == 0 ? 1 : a->devices,
           threads, seconds, m / seconds);
    if (a->mode > 0)
        printf(" %9.1f %%", 100 * m / seconds / a->devices * seconds_of(alone)
                            / number_at(alone->found, "micro_batches"));
    if (isfinite(hidden))
        printf(" %7.0f %%", 100 * hidden);
    putchar('\n');
}

static void print_table(const arrangements *all)
{
    const arrangement *alone = NULL;

    printf("%-7s %8s %8s %12s %15s %11s %9s\n", "mode", "replicas", "threads", "step",
           "micro-batches", "efficiency", "hidden");
    for (int i = 0; i < all->count; i++) {
        const arrangement *a = &all->item[i];
        if (a->mode == 0)
            alone = a;
        if (a->text != NULL)
            print_row(a, alone);
    }
}

static pons_status measure_all(const char *const *words, const supply *from, arrangements *all,
                               logger *l, pons_error *err)
{
    for (int i = 0; i < all->count; i++) {
        arrangement *a = &all->item[i];
        int code = 0;

        log_line(l, "%s, %d device%s", mode_names[a->mode], a->mode == 0 ? 1 : a->devices,
                 a->mode == 0 || a->devices == 1 ? "" : "s");
        if (measure_arrangement(words, from, a, &code, err) != PONS_OK
            || check_child(a, code, l, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

pons_status bench_modes(const char *const *words, const sections *s, bool json, logger *l,
                        pons_error *err)
{
    supply from;
    arrangements all;

    if (find_supply(s, &from, err) != PONS_OK)
        return err->status;
    list_arrangements(&from, &all);
    if (measure_all(words, &from, &all, l, err) == PONS_OK)
        (json ? print_array : print_table)(&all);
    for (int i = 0; i < all.count; i++) {
        free(all.item[i].text);
        json_decref(all.item[i].found);
    }
    return err->status;
}
