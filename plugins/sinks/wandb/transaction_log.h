/*
 * transaction_log.h - the file of a run of Weights & Biases: records in LevelDB's log format.
 *
 * The file begins with ":W&B", the number 0xBEE1 in 16 bits and the version 0 in 8. Its blocks have
 * 32 KiB. A record is one fragment or more, none of which crosses the end of a block. A fragment is
 * the CRC-32 of type and data (32 bits), the size of the data (16 bits), the type (8 bits: 1 is a
 * whole record, 2 its first, 3 a middle and 4 its last part) and the data. Numbers are little
 * endian. Less than 7 bytes at the end of a block are zeros. (wandb: core/pkg/leveldb/record.go)
 */
#ifndef PLUGINS_SINKS_WANDB_TRANSACTION_LOG_H
#define PLUGINS_SINKS_WANDB_TRANSACTION_LOG_H

#include <stdio.h>

#include "sinks/protobuf.h"

/* Append the header of a file. */
void transaction_log_begin(message *out);
/* Append a record that begins at byte 'at' of the file. */
void transaction_log_append(message *out, int64_t at, const message *record);

/* Read the header at the beginning of a file. False: there is none. */
bool transaction_log_open(FILE *file);
/* Read the next record into 'record'. False: the end of the file, or a damaged record. */
bool transaction_log_read(FILE *file, message *record);

#endif
