/*
 * sink_prints.c - a sink that writes a number for each of its calls to printed.txt of the run.
 */
#include <pons/sink.h>

#include <stdio.h>
#include <stdlib.h>

static pons_status prints_open(const void *config, const char *folder, pons_sink_kept keep,
                               void **sink, pons_error *err)
{
    char path[4096];
    FILE *file = NULL;

    snprintf(path, sizeof path, "%s/printed.txt", folder);
    if (pons_sink_file(path, "w", &file, err) == PONS_OK)
        fprintf(file, "open %.1f\n", 0.5);
    *sink = file;
    return err->status;
}

static pons_status prints_write(void *sink, const pons_record *record, pons_error *err)
{
    fprintf(sink, "write %.1f\n", 0.5);
    return PONS_OK;
}

static pons_status prints_flush(void *sink, pons_error *err)
{
    fprintf(sink, "flush %.1f\n", 0.5);
    return PONS_OK;
}

static bool prints_warning(void *sink, char *text, size_t size)
{
    fprintf(sink, "warning %.1f\n", 0.5);
    return false;
}

static void prints_end(void *sink, pons_status status)
{
    fprintf(sink, "end %.1f\n", 0.5);
}

static void prints_close(void *sink)
{
    fprintf(sink, "close %.1f\n", 0.5);
    fclose(sink);
}

static const pons_sink_operations operations = {
    .open = prints_open, .write = prints_write, .flush = prints_flush, .close = prints_close,
    .warning = prints_warning, .end = prints_end
};

PONS_SINK(sink_prints, "1.0", "a number of each call", PONS_NO_OPTIONS, operations);
