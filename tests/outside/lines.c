/*
 * lines - a sink that writes one line for each record to a file; an option names the file. Built
 * outside the source tree.
 */
#include <pons/sink.h>

#include <stdio.h>
#include <string.h>

typedef struct lines {
    const char *file;
} lines;

static const pons_option options[] = {
    PONS_TEXT(lines, file, "lines.txt", "Name of the file in the run folder."),
    PONS_OPTIONS_END
};

static bool is_kept(const char *line, pons_sink_kept keep)
{
    long long step = -1;
    char kind[32] = "";

    return sscanf(line, "%31s %lld", kind, &step) == 2
           && step <= (strcmp(kind, "validation") == 0 ? keep.validation : keep.step);
}

/* Continue behind the lines to keep. They come first, since lines have the order of records. */
static void keep_lines(FILE *file, pons_sink_kept keep)
{
    char line[256];
    long end = 0;

    rewind(file);
    while (fgets(line, sizeof line, file) != NULL && is_kept(line, keep))
        end = ftell(file);
    fseek(file, end, SEEK_SET);
}

static pons_status lines_open(const void *config, const char *folder, pons_sink_kept keep,
                              void **sink, pons_error *err)
{
    const lines *c = config;
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, c->file);
    file = fopen(path, "r+");
    if (file == NULL)
        file = fopen(path, "w+");
    if (file == NULL)
        return pons_fail(err, PONS_FAILURE, "cannot write '%s'", path);
    keep_lines(file, keep);
    *sink = file;
    return PONS_OK;
}

static pons_status lines_write(void *sink, const pons_record *record, pons_error *err)
{
    if (fprintf(sink, "%s %lld\n", record->kind, (long long)record->step) > 0)
        return PONS_OK;
    return pons_fail(err, PONS_FAILURE, "cannot write a line");
}

static pons_status lines_flush(void *sink, pons_error *err)
{
    if (fflush(sink) == 0)
        return PONS_OK;
    return pons_fail(err, PONS_FAILURE, "cannot write the lines");
}

static void lines_close(void *sink)
{
    fclose(sink);
}

static const pons_sink_operations operations = {
    .open = lines_open, .write = lines_write, .flush = lines_flush, .close = lines_close
};

PONS_SINK(lines, "1.0", "one line a record", options, operations);
