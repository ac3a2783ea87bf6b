/*
 * sink_discards - a sink for tests that takes every record and writes none.
 */
#include <pons/sink.h>


static pons_status open_sink(const void *config, const char *folder, pons_sink_kept keep,
                             void **sink, pons_error *err)
{
    *sink = NULL;
    return PONS_OK;
}

static pons_status take(void *sink, const pons_record *record, pons_error *err)
{
    return PONS_OK;
}

static pons_status flush(void *sink, pons_error *err)
{
    return PONS_OK;
}

static void close_sink(void *sink)
{
}

static const pons_sink_operations operations = {
    .open = open_sink, .write = take, .flush = flush, .close = close_sink
};

PONS_SINK(sink_discards, "1.0", "keeps nothing", PONS_NO_OPTIONS, operations);
