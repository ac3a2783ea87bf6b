/*
 * devices_file.c - write sensor readings of devices to a table; an unknown value is an empty
 * field.
 */
#include "report/devices_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/text/text.h"
#include "report/csv_header.h"

static const char header[] = "time,step,replica,device,utilisation,memory_used,memory_total,"
                             "memory_ratio,power,temperature,engine_active,tensor_active,"
                             "pcie_sent,pcie_received\n";

struct devices_file {
    FILE *file;
    char *path;
};

static pons_status fail_write(const devices_file *f, pons_error *err)
{
    return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot write '%s': %s", f->path,
                     strerror(errno));
}

/* True for a line up to step 'keep'. A damaged line is not kept unless a kept line follows. */
static bool is_kept(const char *line, int64_t keep)
{
    const char *step = strchr(line, ',');
    char *end;

    if (step == NULL || step[1] < '0' || step[1] > '9')
        return false;
    return strtoll(step + 1, &end, 10) <= keep && *end == ',';
}

/* Bytes up to the end of the last kept line, or of the header. */
static long kept_size(FILE *file, int64_t keep)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    long size = 0;

    rewind(file);
    while (keep >= 0 && (length = getline(&line, &room, file)) > 0)
        if (line[length - 1] == '\n' && (size == 0 || is_kept(line, keep)))
            size = ftell(file);
    free(line);
    return size;
}

static pons_status begin_file(devices_file *f, int64_t keep, logger *l, pons_error *err)
{
    long size;

    if (keep >= 0 && csv_header_check(f->path, header, l, err) != PONS_OK)
        return err->status;
    if (file_open_stream(f->path, "a+", &f->file, err) != PONS_OK)
        return err->status;
    size = kept_size(f->file, keep);
    if (ftruncate(fileno(f->file), size) != 0 || fseek(f->file, 0, SEEK_END) != 0
        || (size == 0 && fputs(header, f->file) < 0) || fflush(f->file) != 0)
        return fail_write(f, err);
    return PONS_OK;
}

pons_status devices_file_open(const char *folder, int64_t keep, logger *l, devices_file **out,
                              pons_error *err)
{
    devices_file *f = calloc(1, sizeof *f);

    if (f == NULL || asprintf(&f->path, "%s/devices.csv", folder) < 0) {
        free(f);
        return pons_fail(err, PONS_DEVICE, "out of memory for devices.csv");
    }
    if (begin_file(f, keep, l, err) != PONS_OK) {
        devices_file_close(f);
        return err->status;
    }
    *out = f;
    return PONS_OK;
}

void devices_file_close(devices_file *f)
{
    if (f == NULL)
        return;
    if (f->file != NULL)
        fclose(f->file);
    free(f->path);
    free(f);
}

static void write_reading(FILE *file, const device_reading *r)
{
    const pons_device_sensors *s = &r->state;
    const double number[] = { s->utilisation, s->memory_used, s->memory_total,
                              s->memory_used / s->memory_total, s->power, s->temperature,
                              s->engine_active, s->tensor_active, s->pcie_sent,
                              s->pcie_received };

    fprintf(file, "%.3f,%" PRId64 ",%d,%s", r->time, r->step, r->replica, s->id);
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (isfinite(number[i]))
            fprintf(file, ",%.12g", number[i]);
        else
            fputc(',', file);
    fputc('\n', file);
}

pons_status devices_file_write(devices_file *f, int count, const device_reading *reading,
                               pons_error *err)
{
    locale_t before = text_locale_begin();

    for (int i = 0; i < count; i++)
        write_reading(f->file, &reading[i]);
    text_locale_end(before);
    return fflush(f->file) == 0 && !ferror(f->file) ? PONS_OK : fail_write(f, err);
}
