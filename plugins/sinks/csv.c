/*
 * csv - metrics.csv in the run folder, with a line 'kind,step,epoch,name,value' for each number, by
 * RFC 4180.
 *
 * The table is long, not wide, because records have several kinds and the set of names may grow. An
 * undefined value is an empty field. A run that resumes cuts all lines after the last kept one.
 */
#include <pons/sink.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char header[] = "kind,step,epoch,name,value\n";

typedef struct csv {
    FILE *file;
    char *path;
} csv;

static pons_status fail(const csv *s, pons_error *err)
{
    const pons_status status = errno == EMFILE || errno == ENFILE || errno == ENOMEM
                               ? PONS_DEVICE : PONS_FAILURE;

    return pons_fail(err, status, "cannot write '%s': %s", s->path, strerror(errno));
}

/* Whether a line is kept. A damaged line is not, but it stays in front of a kept line. */
static bool is_kept(const char *line, pons_sink_kept keep)
{
    const char *step = strchr(line, ',');
    int64_t last = strncmp(line, "validation,", 11) == 0 ? keep.validation : keep.step;
    char *end;

    if (step == NULL || step[1] < '0' || step[1] > '9')
        return false;
    return strtoll(step + 1, &end, 10) <= last && *end == ',';
}

/* The size of the file up to the last complete line that is kept, or up to the header. */
static long kept_size(FILE *file, pons_sink_kept keep)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    long size = 0;

    rewind(file);
    while ((length = getline(&line, &room, file)) > 0)
        if (line[length - 1] == '\n' && (size == 0 || is_kept(line, keep)))
            size = ftell(file);
    free(line);
    return size;
}

static pons_status start(csv *s, pons_sink_kept keep, pons_error *err)
{
    long size = 0;

    if (pons_sink_file(s->path, keep.step >= 0 ? "a+" : "w", &s->file, err) != PONS_OK)
        return err->status;
    if (keep.step >= 0) {
        size = kept_size(s->file, keep);
        if (ftruncate(fileno(s->file), size) != 0 || fseek(s->file, 0, SEEK_END) != 0)
            return fail(s, err);
    }
    if (size == 0 && (fputs(header, s->file) < 0 || fflush(s->file) != 0))
        return fail(s, err);
    return PONS_OK;
}

static void csv_close(void *sink)
{
    csv *s = sink;

    if (s->file != NULL)
        fclose(s->file);
    free(s->path);
    free(s);
}

static pons_status csv_open(const void *config, const char *folder, pons_sink_kept keep,
                            void **sink, pons_error *err)
{
    csv *s = calloc(1, sizeof *s);

    if (s == NULL || asprintf(&s->path, "%s/metrics.csv", folder) < 0) {
        free(s);
        return pons_fail(err, PONS_DEVICE, "out of memory for metrics.csv");
    }
    if (start(s, keep, err) != PONS_OK) {
        csv_close(s);
        return err->status;
    }
    *sink = s;
    return PONS_OK;
}

/* Write a name, in quotes where RFC 4180 asks for them. Names of classes may need them. */
static void put_name(FILE *to, const char *name)
{
    if (strpbrk(name, ",\"\r\n") == NULL) {
        fputs(name, to);
        return;
    }
    fputc('"', to);
    for (; *name != '\0'; name++)
        fputs(*name == '"' ? "\"\"" : (char[]){ *name, '\0' }, to);
    fputc('"', to);
}

static pons_status csv_write(void *sink, const pons_record *record, pons_error *err)
{
    csv *s = sink;

    for (int i = 0; i < record->count; i++) {
        fprintf(s->file, "%s,%lld,%lld,", record->kind, (long long)record->step,
                (long long)record->epoch);
        put_name(s->file, record->metric[i].name);
        fputc(',', s->file);
        if (isfinite(record->metric[i].value))
            fprintf(s->file, "%.9g", record->metric[i].value);
        fputc('\n', s->file);
    }
    return ferror(s->file) ? fail(s, err) : PONS_OK;
}

static pons_status csv_flush(void *sink, pons_error *err)
{
    csv *s = sink;
    bool good = fflush(s->file) == 0 && !ferror(s->file) && fsync(fileno(s->file)) == 0;

    return good ? PONS_OK : fail(s, err);
}

static const pons_sink_operations operations = {
    .open = csv_open, .write = csv_write, .flush = csv_flush, .close = csv_close
};

PONS_SINK(csv, "1.0", "metrics.csv in the run folder", PONS_NO_OPTIONS, operations);
