/*
 * event.c - write and read records of event files.
 */
#include "sinks/tensorboard/event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of compat/proto: event.proto and summary.proto. */
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_GRAPH = 4, EVENT_SUMMARY = 5,
       EVENT_LOG = 7 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_IMAGE = 4, VALUE_METADATA = 9 };
enum { IMAGE_HEIGHT = 1, IMAGE_WIDTH = 2, IMAGE_COLORS = 3, IMAGE_BYTES = 4, RGB = 3 };
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1, METADATA_DESCRIPTION = 3 };
enum { LOG_STATUS = 1, LOG_START = 1 };

/* ---- events ---------------------------------------------------------------------------------- */

void event_begin(message *event, double time, int64_t step)
{
    event->size = 0;
    message_put_double(event, EVENT_TIME, time);
    if (step != 0)
        message_put_integer(event, EVENT_STEP, (uint64_t)step);
}

void event_put_version(message *event)
{
    message_put_text(event, EVENT_VERSION, "brain.Event:2");
}

void event_put_start(message *event)
{
    message start = { 0 };

    message_put_integer(&start, LOG_STATUS, LOG_START);
    message_put(event, EVENT_LOG, &start);
    message_free(&start);
}

void event_put_summary(message *event, const message *summary)
{
    message_put(event, EVENT_SUMMARY, summary);
}

void summary_put_scalar(message *summary, const char *tag, float value)
{
    message v = { 0 };

    message_put_text(&v, VALUE_TAG, tag);
    message_put_float(&v, VALUE_SIMPLE, value);
    message_put(summary, SUMMARY_VALUE, &v);
    message_free(&v);
}

void event_put_graph(message *event, const message *graph)
{
    message_put(event, EVENT_GRAPH, graph);
}

void summary_put_image(message *summary, const char *tag, const char *description,
                       const pons_picture *picture)
{
    message image = { 0 }, plugin = { 0 }, metadata = { 0 }, v = { 0 };

    message_put_integer(&image, IMAGE_HEIGHT, (uint64_t)picture->height);
    message_put_integer(&image, IMAGE_WIDTH, (uint64_t)picture->width);
    message_put_integer(&image, IMAGE_COLORS, RGB);
    message_put_bytes(&image, IMAGE_BYTES, picture->png, picture->size);
    message_put_text(&plugin, PLUGIN_NAME, "images");
    message_put(&metadata, METADATA_PLUGIN, &plugin);
    message_put_text(&metadata, METADATA_DESCRIPTION, description);
    message_put_text(&v, VALUE_TAG, tag);
    message_put(&v, VALUE_IMAGE, &image);
    message_put(&v, VALUE_METADATA, &metadata);
    message_put(summary, SUMMARY_VALUE, &v);
    message_free(&image);
    message_free(&plugin);
    message_free(&metadata);
    message_free(&v);
}

/* ---- records --------------------------------------------------------------------------------- */

/* CRC-32C (Castagnoli, polynomial 0x82F63B78 reflected), four bits at a time. */
uint32_t event_crc(const void *data, size_t size)
{
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362,
        0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab,
        0xe330a81a, 0xf36e6f75
    };
    const unsigned char *byte = data;
    uint32_t crc = 0xffffffff;

    for (size_t i = 0; i < size; i++) {
        crc ^= byte[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

enum { HEAD = 12, FOOT = 4, EVENT_LIMIT = 1 << 28 };

bool event_write(FILE *file, const message *event)
{
    size_t size = HEAD + event->size + FOOT;
    unsigned char *record = event->failed ? NULL : malloc(size);
    bool good;

    if (record == NULL) {
        errno = ENOMEM;
        return false;
    }
    little_endian_store(record, event->size, 8);
    little_endian_store(record + 8, event_crc(record, 8), 4);
    memcpy(record + HEAD, event->data, event->size);
    little_endian_store(record + HEAD + event->size, event_crc(event->data, event->size), 4);
    good = fwrite(record, 1, size, file) == size;
    free(record);
    return good;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void describe(message_view event, event_facts *out)
{
    message_field f;

    *out = (event_facts){ .step = 0 };
    if (message_find(event, EVENT_STEP, &f))
        out->step = (int64_t)f.value;
    out->graph = message_find(event, EVENT_GRAPH, &f);
    if (message_find(event, EVENT_SUMMARY, &f) && message_find(f.bytes, SUMMARY_VALUE, &f)
        && message_find(f.bytes, VALUE_TAG, &f))
        snprintf(out->tag, sizeof out->tag, "%.*s", (int)(f.bytes.end - f.bytes.at),
                 (const char *)f.bytes.at);
}

bool event_read(FILE *file, message *event, event_facts *facts)
{
    unsigned char head[HEAD], foot[FOOT];
    uint64_t size;

    if (fread(head, 1, HEAD, file) != HEAD || little_endian_load(head + 8, 4) != event_crc(head, 8)
        || (size = little_endian_load(head, 8)) > EVENT_LIMIT || !message_resize(event, size)
        || fread(event->data, 1, event->size, file) != event->size
        || fread(foot, 1, FOOT, file) != FOOT
        || little_endian_load(foot, 4) != event_crc(event->data, event->size))
        return false;
    describe((message_view){ event->data, event->data + event->size }, facts);
    return true;
}
