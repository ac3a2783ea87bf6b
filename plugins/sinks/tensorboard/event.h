/*
 * event.h - TensorBoard's event files: records of protobuf messages.
 *
 * A record is the size (64 bits, little endian), the masked CRC-32C of these 8 bytes, the message,
 * and the masked CRC-32C of the message (TensorBoard: summary/writer/record_writer.py). A message
 * is an Event of compat/proto/event.proto.
 */
#ifndef PLUGINS_SINKS_TENSORBOARD_EVENT_H
#define PLUGINS_SINKS_TENSORBOARD_EVENT_H

#include <stdio.h>

#include "sinks/protobuf.h"

#include <pons/sink.h>

/* An Event so far: seconds since 1970, and the step unless it is 0, protobuf's default. */
void event_begin(message *event, double time, int64_t step);
/* Its content: the first event of a file, the start of a resumed run, a summary. */
void event_put_version(message *event);
void event_put_start(message *event);
void event_put_summary(message *event, const message *summary);
/* A GraphDef (graph_def.h), serialised. */
void event_put_graph(message *event, const message *graph);
/* Append to a Summary: a scalar, and an image as PNG with a description in Markdown. */
void summary_put_scalar(message *summary, const char *tag, float value);
void summary_put_image(message *summary, const char *tag, const char *description,
                       const pons_picture *picture);

uint32_t event_crc(const void *data, size_t size); /* masked                                      */

/* Write the record in one piece, so that no other thread divides it. False, with errno, if not. */
bool event_write(FILE *file, const message *event);

/* The parts of a read event that tell whether it stays. */
typedef struct event_facts {
    int64_t step;       /* 0: none                                                                */
    char tag[64];       /* of the first summary value, cut to 63 bytes; "": none                  */
    bool graph;         /* it has the graph                                                       */
} event_facts;

/* Read the next record; 'event' is what event_write takes. False: the end, or a damaged record. */
bool event_read(FILE *file, message *event, event_facts *facts);

#endif
