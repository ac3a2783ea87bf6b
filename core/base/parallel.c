/*
 * parallel.c - threads that take the next piece until there is none.
 */
#include <config.h>

#include "base/parallel.h"

#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS_MAX = 64 };

typedef struct loop {
    int64_t count, piece;
    void (*body)(void *context, int64_t first, int64_t end);
    void *context;
    _Atomic int64_t next;
} loop;

static void *take_pieces(void *context)
{
    loop *l = context;
    int64_t first;

    while ((first = atomic_fetch_add(&l->next, l->piece)) < l->count)
        l->body(l->context, first, first + l->piece < l->count ? first + l->piece : l->count);
    return NULL;
}

/* Where a thread cannot be started the others do its part. */
void parallel_run(int64_t count, int64_t piece, void (*body)(void *context, int64_t first,
                                                             int64_t end), void *context)
{
    loop l = { .count = count, .piece = piece, .body = body, .context = context };
    int64_t pieces = (count + piece - 1) / piece;
    int wanted = thread_processors(), started = 0;
    pthread_t thread[THREADS_MAX];

    wanted = wanted < THREADS_MAX ? wanted : THREADS_MAX;
    wanted = wanted < pieces ? wanted : (int)pieces;
    while (started < wanted - 1
           && pthread_create(&thread[started], NULL, take_pieces, &l) == 0)
        started++;
    take_pieces(&l);
    while (started > 0)
        pthread_join(thread[--started], NULL);
}
