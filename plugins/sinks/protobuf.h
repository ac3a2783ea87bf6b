/*
 * protobuf.h - messages of Protocol Buffers: write the fields of one, and find those of another
 * (https://protobuf.dev/programming-guides/encoding).
 */
#ifndef PLUGINS_SINKS_PROTOBUF_H
#define PLUGINS_SINKS_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message under construction; zeros are an empty one. 'failed': out of memory. */
typedef struct message {
    unsigned char *data;
    size_t size, room;
    bool failed;
} message;

void message_free(message *m);
/* Append bytes as they are, such as the fields of another message. */
void message_append(message *m, const void *data, size_t size);

/* A message of 'size' bytes that are still to be set. False: out of memory. */
bool message_resize(message *m, size_t size);

/* Append a field: its number, then the value. */
void message_put_integer(message *m, int field, uint64_t value);
void message_put_double(message *m, int field, double value);
void message_put_float(message *m, int field, float value);
void message_put_bytes(message *m, int field, const void *data, size_t size);
/* A text that is not UTF-8 gets '?' for bytes beyond ASCII: readers refuse a message with it. */
void message_put_text(message *m, int field, const char *text);
void message_put(message *m, int field, const message *inner);

bool text_is_utf8(const char *text);

/* Bytes that are read. */
typedef struct message_view {
    const unsigned char *at, *end;
} message_view;

typedef struct message_field {
    int number;
    uint64_t value;     /* of an integer                                                          */
    message_view bytes; /* of text, bytes or a message                                            */
} message_field;

/* The next field of a message. False: the end, or a damaged one. */
bool message_read(message_view *v, message_field *out);
/* Find the first field of that number. */
bool message_find(message_view v, int number, message_field *out);

/* The 'size' low bytes of a value, the lowest first. */
void little_endian_store(unsigned char *out, uint64_t value, int size);
uint64_t little_endian_load(const unsigned char *from, int size);

#endif
