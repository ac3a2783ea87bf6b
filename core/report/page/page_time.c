/*
 * page_time.c - the time of phases from the records of steps and validations, memory, and the
 * sensors of devices from devices.csv.
 */
#include "report/page/page_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/json.h"
#include "base/file/table_file.h"
#include "base/text/text.h"
#include "report/html/html.h"
#include "report/html/page_frame.h"

static const size_t profile_limit = 1 << 26;

/* ---- phases ---------------------------------------------------------------------------------- */

static void put_phase(FILE *to, const char *name, double seconds, double all)
{
    page_row(to, name);
    page_number(to, seconds);
    page_number(to, all > 0 ? 100 * seconds / all : NAN);
    page_row(to, NULL);
}

static double phase_seconds(const json_t *phase)
{
    return json_number_value(json_object_get(phase, "cpu_ns")) * 1e-9;
}

/* The phases of --profile. Those of replicas add up, so their sum may exceed the run's time. */
static void put_profile(FILE *to, const json_t *profile)
{
    static const char *const column[] = { "phase", "seconds", "percent" };
    const json_t *phase;
    double all = 0;
    size_t i;

    json_array_foreach(json_object_get(profile, "phases"), i, phase)
        all += phase_seconds(phase);
    page_table_begin(to, "Profile", 3, column);
    json_array_foreach(json_object_get(profile, "phases"), i, phase) {
        const char *name = json_string_value(json_object_get(phase, "phase"));

        put_phase(to, name != NULL ? name : "", phase_seconds(phase), all);
    }
    put_phase(to, "all of them", all, all);
    page_table_end(to);
}

/* profile.json, if the run has one that can be read. */
static void put_profile_file(FILE *to, const report_run *r)
{
    const char *path = arena_format(r->memory, "%s/profile.json", r->path);
    pons_error ignored = PONS_ERROR_INIT;
    json_t *profile = NULL;
    char *text;
    size_t size;

    if (access(path, F_OK) != 0) {
        fputs("<p class=\"soft\">The start, checkpoints and reports are not in these; pons train "
              "--profile measures all.</p>\n", to);
        return;
    }
    if (file_read(path, profile_limit, &text, &size, PONS_DATA, &ignored) == PONS_OK) {
        json_parse(text, size, path, PONS_DATA, &profile, &ignored);
        free(text);
    }
    if (profile != NULL)
        put_profile(to, profile);
    else
        fputs("<p class=\"soft\">profile.json cannot be read.</p>\n", to);
    json_decref(profile);
}

static void put_phases(FILE *to, const report_run *r)
{
    static const char *const column[] = { "phase", "seconds", "percent" };
    const run_history *h = &r->history;
    double steps = history_series_sum(run_history_find(h, "step", "seconds"));
    double data = history_series_sum(run_history_find(h, "step", "data_seconds"));
    double validation = history_series_sum(run_history_find(h, "validation", "seconds"));
    double all = steps + validation;

    page_table_begin(to, "Time of phases", 3, column);
    put_phase(to, "steps without waiting for data", steps - data, all);
    put_phase(to, "waiting for data", data, all);
    put_phase(to, "validation", validation, all);
    put_phase(to, "steps and validations", all, all);
    page_table_end(to);
    put_profile_file(to, r);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static double largest_of(const history_series *s)
{
    double largest = NAN;

    for (int i = 0; s != NULL && i < s->count; i++)
        largest = fmax(largest, s->value[i]);
    return largest;
}

static void put_bytes(FILE *to, const char *name, double bytes)
{
    char text[32];

    if (isnan(bytes))
        return;
    page_row(to, name);
    page_cell(to, text_amount(bytes, "B", text));
    page_row(to, NULL);
}

static void put_memory(FILE *to, const report_run *r)
{
    static const char *const column[] = { "memory", "largest" };
    const run_history *h = &r->history;

    page_table_begin(to, "Memory", 2, column);
    put_bytes(to, "of the process", largest_of(run_history_find(h, "step", "memory")));
    for (int i = 0; i < h->count; i++)
        if (strncmp(h->series[i].name, "device_memory.", 14) == 0)
            put_bytes(to, arena_format(r->memory, "of the tensors of replica %s",
                                       h->series[i].name + 14), largest_of(&h->series[i]));
    page_table_end(to);
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Means of a device's readings. */
typedef struct device_use {
    const char *device;
    int count[4];
    double sum[4];
} device_use;

static const char *const sensor[4] = { "utilisation", "memory_used", "power", "temperature" };

static device_use *use_of(device_use *use, int *count, const char *device)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(use[i].device, device) == 0)
            return &use[i];
    use[*count] = (device_use){ .device = device };
    return &use[(*count)++];
}

static int collect_use(const table_file *t, device_use *use)
{
    int device = table_file_column(t, "device"), count = 0;

    for (int row = 0; device >= 0 && row < t->row_count; row++) {
        device_use *u = use_of(use, &count, t->row[row].cell[device]);

        for (int n = 0; n < 4; n++) {
            int column = table_file_column(t, sensor[n]);
            double value;

            if (column < 0 || !text_real(t->row[row].cell[column], &value))
                continue;
            u->count[n]++;
            u->sum[n] += value;
        }
    }
    return count;
}

static void put_use(FILE *to, const device_use *u)
{
    char text[32];

    page_row(to, u->device);
    for (int n = 0; n < 4; n++) {
        double mean = u->count[n] > 0 ? u->sum[n] / u->count[n] : NAN;

        if (n == 1 && isfinite(mean))
            page_cell(to, text_amount(mean, "B", text));
        else
            page_number(to, n == 0 ? 100 * mean : mean);
    }
    page_row(to, NULL);
}

static void put_devices(FILE *to, const report_run *r)
{
    static const char *const column[] = { "device", "in use, percent", "memory", "power, W",
                                          "temperature, C" };
    const char *path = arena_format(r->memory, "%s/devices.csv", r->path);
    pons_error ignored = PONS_ERROR_INIT;
    device_use *use;
    table_file t;
    int count;

    if (access(path, F_OK) != 0 || table_file_read(r->memory, path, &t, &ignored) != PONS_OK
        || t.row_count == 0) {
        fputs("<p class=\"soft\">The sensors of devices were not read; [log] device_every reads "
              "them.</p>\n", to);
        return;
    }
    use = arena_alloc(r->memory, (size_t)t.row_count * sizeof *use);
    count = collect_use(&t, use);
    page_table_begin(to, "Means of the devices' sensors", 5, column);
    for (int i = 0; i < count; i++)
        put_use(to, &use[i]);
    page_table_end(to);
}

void page_put_time(FILE *to, const report_run *r)
{
    page_section(to, "time", "Time, memory and devices");
    put_phases(to, r);
    put_memory(to, r);
    put_devices(to, r);
    page_section(to, NULL, NULL);
}
