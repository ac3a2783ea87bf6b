/*
 * sink_refuses.c - a sink that takes records, but neither pictures nor the network.
 */
#include <pons/sink.h>

static pons_status refuses_open(const void *config, const char *folder, pons_sink_kept keep,
                                void **sink, pons_error *err)
{
    *sink = NULL;
    return PONS_OK;
}

static pons_status refuses_write(void *sink, const pons_record *record, pons_error *err)
{
    return PONS_OK;
}

static pons_status refuses_flush(void *sink, pons_error *err)
{
    return PONS_OK;
}

static void refuses_close(void *sink)
{
}

static int refuses_picture_count(const void *config)
{
    return 3;
}

static pons_status refuses_picture(void *sink, const pons_picture *picture, pons_error *err)
{
    return pons_fail(err, PONS_FAILURE, "no picture of %s", picture->name);
}

static pons_status refuses_network(void *sink, const pons_network *network, pons_error *err)
{
    return pons_fail(err, PONS_FAILURE, "no network of %d nodes", network->count);
}

static const pons_sink_operations operations = {
    .open = refuses_open, .write = refuses_write, .flush = refuses_flush, .close = refuses_close,
    .picture_count = refuses_picture_count, .picture = refuses_picture, .network = refuses_network
};

PONS_SINK(sink_refuses, "1.0", "takes neither pictures nor the network", PONS_NO_OPTIONS,
          operations);
