/*
 * event.c - write and read records of event files.
 */
#include "sinks/tensorboard/event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages -------------------------------------------------------------------------------- */

enum { VARINT = 0, FIXED_64 = 1, BYTES = 2, FIXED_32 = 5 }; /* wire types                         */
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5, EVENT_LOG = 7 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };
enum { LOG_STATUS = 1, LOG_START = 1 };

void message_free(message *m)
{
    free(m->data);
    *m = (message){ 0 };
}

static void append(message *m, const void *data, size_t size)
{
    if (m->size + size > m->room) {
        size_t room = 2 * (m->size + size) + 64;
        unsigned char *larger = m->failed ? NULL : realloc(m->data, room);

        if (larger == NULL) {
            m->failed = true;
            return;
        }
        m->data = larger;
        m->room = room;
    }
    if (size > 0)
        memcpy(m->data + m->size, data, size);
    m->size += size;
}

static void append_varint(message *m, uint64_t value)
{
    unsigned char byte[10];
    size_t size = 0;

    for (; value >= 0x80; value >>= 7)
        byte[size++] = (unsigned char)(value | 0x80);
    byte[size++] = (unsigned char)value;
    append(m, byte, size);
}

static void append_key(message *m, int field, int wire)
{
    append_varint(m, (uint64_t)(field << 3 | wire));
}

static void store(unsigned char *out, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        out[i] = (unsigned char)(value >> 8 * i);
}

static void append_fixed(message *m, uint64_t value, int size)
{
    unsigned char byte[8];

    store(byte, value, size);
    append(m, byte, (size_t)size);
}

void message_put_integer(message *m, int field, uint64_t value)
{
    append_key(m, field, VARINT);
    append_varint(m, value);
}

void message_put_double(message *m, int field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    append_key(m, field, FIXED_64);
    append_fixed(m, bits, 8);
}

void message_put_float(message *m, int field, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    append_key(m, field, FIXED_32);
    append_fixed(m, bits, 4);
}

void message_put_bytes(message *m, int field, const void *data, size_t size)
{
    append_key(m, field, BYTES);
    append_varint(m, size);
    append(m, data, size);
}

void message_put_text(message *m, int field, const char *text)
{
    message_put_bytes(m, field, text, strlen(text));
}

void message_put(message *m, int field, const message *inner)
{
    m->failed = m->failed || inner->failed;
    message_put_bytes(m, field, inner->data, inner->size);
}

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
    store(record, event->size, 8);
    store(record + 8, event_crc(record, 8), 4);
    memcpy(record + HEAD, event->data, event->size);
    store(record + HEAD + event->size, event_crc(event->data, event->size), 4);
    good = fwrite(record, 1, size, file) == size;
    free(record);
    return good;
}

static uint64_t load(const unsigned char *from, int size)
{
    uint64_t value = 0;

    for (int i = 0; i < size; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct view {
    const unsigned char *at, *end;
} view;

typedef struct field {
    int number;
    uint64_t value; /* of a VARINT                                                                */
    view bytes;     /* of BYTES                                                                   */
} field;

static bool read_varint(view *v, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && v->at < v->end; shift += 7) {
        unsigned char byte = *v->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool skip(view *v, uint64_t size)
{
    if (size > (uint64_t)(v->end - v->at))
        return false;
    v->at += size;
    return true;
}

/* The next field of a message. False: the end, or a damaged one. */
static bool read_field(view *v, field *out)
{
    uint64_t key, size;

    if (!read_varint(v, &key))
        return false;
    *out = (field){ .number = (int)(key >> 3 & 0xffff) };
    switch (key & 7) {
    case VARINT:
        return read_varint(v, &out->value);
    case FIXED_64:
        return skip(v, 8);
    case FIXED_32:
        return skip(v, 4);
    case BYTES:
        if (!read_varint(v, &size))
            return false;
        out->bytes = (view){ v->at, v->at };
        if (!skip(v, size))
            return false;
        out->bytes.end = v->at;
        return true;
    default:
        return false;
    }
}

/* Find the first field of that number. */
static bool find_field(view v, int number, field *out)
{
    while (read_field(&v, out))
        if (out->number == number)
            return true;
    return false;
}

static void describe(view event, int64_t *step, char *tag, size_t room)
{
    field f;

    *step = find_field(event, EVENT_STEP, &f) ? (int64_t)f.value : 0;
    tag[0] = '\0';
    if (find_field(event, EVENT_SUMMARY, &f) && find_field(f.bytes, SUMMARY_VALUE, &f)
        && find_field(f.bytes, VALUE_TAG, &f))
        snprintf(tag, room, "%.*s", (int)(f.bytes.end - f.bytes.at), (const char *)f.bytes.at);
}

bool event_read(FILE *file, int64_t *step, char *tag, size_t room)
{
    unsigned char head[HEAD], *data;
    uint64_t size;
    bool good;

    if (fread(head, 1, HEAD, file) != HEAD || load(head + 8, 4) != event_crc(head, 8)
        || (size = load(head, 8)) > EVENT_LIMIT || (data = malloc(size + FOOT)) == NULL)
        return false;
    good = fread(data, 1, size + FOOT, file) == size + FOOT
           && load(data + size, 4) == event_crc(data, size);
    if (good)
        describe((view){ data, data + size }, step, tag, room);
    free(data);
    return good;
}
