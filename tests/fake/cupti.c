/*
 * cupti.c - a libcupti that records the work of the fake driver: kernels, copies and fills, in
 * CUPTI's format, on a flush. Kernels of cuBLASLt and cuDNN are not recorded.
 *
 * FAKE_CUPTI      drops: a record is lost
 */
#include "fake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID = 1, NO_MORE = 12 };
enum { COPY = 1, FILL = 2, KERNEL = 10, KINDS = 16, RECORD = 256, RECORDS = 512 };

/* Byte offsets of a record's fields for a reader. */
enum { AT_KIND = 0, AT_WAY = 4, AT_START = 16, AT_END = 24 };
enum { AT_STREAM = 48, AT_GRID = 52, AT_BLOCK = 64, AT_NAME = 104 };

typedef void give_buffer(uint8_t **buffer, size_t *size, size_t *most);
typedef void take_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                         size_t filled);

#pragma GCC visibility push(default)
int cuptiActivityEnable(uint32_t kind);
int cuptiActivityRegisterCallbacks(give_buffer *give, take_buffer *take);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t filled, void **record);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count);
int cuptiActivityFlushAll(uint32_t flag);
#pragma GCC visibility pop

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static give_buffer *give;
static take_buffer *take;
static bool enabled[KINDS];
static uint8_t *buffer;
static size_t size, filled;
static char *names[RECORDS]; /* of the kernels in 'buffer'; a reader keeps its own copies         */
static int name_count;

static void put(uint8_t *record, int at, const void *value, size_t bytes)
{
    memcpy(record + at, value, bytes);
}

static void write_record(uint8_t *record, const fake_work *w)
{
    const uint32_t kind = w->name != NULL ? KERNEL : w->way != 0 ? COPY : FILL;
    const int32_t grid[3] = { w->blocks, 1, 1 }, block[3] = { w->threads, 1, 1 };

    memset(record, 0, RECORD);
    put(record, AT_KIND, &kind, sizeof kind);
    put(record, AT_START, &w->start, sizeof w->start);
    put(record, AT_END, &w->end, sizeof w->end);
    if (kind == COPY)
        record[AT_WAY] = (uint8_t)w->way;
    if (kind != KERNEL)
        return;
    put(record, AT_GRID, grid, sizeof grid);
    put(record, AT_BLOCK, block, sizeof block);
    names[name_count] = strdup(w->name);
    put(record, AT_NAME, &names[name_count++], sizeof names[0]);
}

/* Pass full or requested buffers to the reader; the lock is held. */
static void hand_over(void)
{
    if (buffer != NULL)
        take(NULL, 0, buffer, size, filled);
    while (name_count > 0)
        free(names[--name_count]);
    buffer = NULL;
    filled = 0;
}

static void watch(const fake_work *w)
{
    size_t most = 0;

    pthread_mutex_lock(&lock);
    if (buffer == NULL)
        give(&buffer, &size, &most);
    if (buffer != NULL && filled + RECORD <= size
        && enabled[w->name != NULL ? KERNEL : w->way != 0 ? COPY : FILL]) {
        write_record(buffer + filled, w);
        filled += RECORD;
    }
    if (filled == RECORDS * RECORD)
        hand_over();
    pthread_mutex_unlock(&lock);
}

int cuptiActivityEnable(uint32_t kind)
{
    if (kind >= KINDS || take == NULL)
        return INVALID;
    enabled[kind] = true;
    return OK;
}

int cuptiActivityRegisterCallbacks(give_buffer *giver, take_buffer *taker)
{
    if (giver == NULL || taker == NULL)
        return INVALID;
    give = giver;
    take = taker;
    fake_watch(watch);
    return OK;
}

int cuptiActivityGetNextRecord(uint8_t *from, size_t bytes, void **record)
{
    uint8_t *next = *record == NULL ? from : (uint8_t *)*record + RECORD;

    if (next + RECORD > from + bytes)
        return NO_MORE;
    *record = next;
    return OK;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
    const char *fault = getenv("FAKE_CUPTI");

    *count = fault != NULL && strcmp(fault, "drops") == 0;
    return OK;
}

int cuptiActivityFlushAll(uint32_t flag)
{
    pthread_mutex_lock(&lock);
    hand_over();
    pthread_mutex_unlock(&lock);
    return flag <= 1 ? OK : INVALID;
}
