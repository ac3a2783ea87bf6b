/*
 * parallel.c - threads that take the next piece until there is none.
 */
#include "base/thread/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/integer.h"
#include "base/thread/thread.h"

enum { THREADS_MAX = 64, PIECE = 1 << 16 };

/* Of this thread; NULL: it begins with its processors. */
static _Thread_local parallel_spare *lender;

typedef struct loop {
    int64_t count, piece;
    void (*body)(void *context, int64_t first, int64_t end);
    void *context;
    parallel_spare *spare;
    _Atomic int64_t next;
} loop;

parallel_spare *parallel_borrow(parallel_spare *from)
{
    parallel_spare *before = lender;

    lender = from;
    return before;
}

int64_t parallel_piece(int64_t size)
{
    return size < PIECE ? PIECE / (size > 0 ? size : 1) : 1;
}

static void take_pieces(loop *l, int64_t first)
{
    for (; first < l->count; first = atomic_fetch_add(&l->next, l->piece))
        l->body(l->context, first, first + l->piece < l->count ? first + l->piece : l->count);
}

static void *help(void *context)
{
    loop *l = context;

    lender = l->spare;
    take_pieces(l, atomic_fetch_add(&l->next, l->piece));
    l->spare->threads++;
    return NULL;
}

/* At most 'wanted' of those that are spare now. */
static int take_threads(parallel_spare *s, int64_t wanted)
{
    int free = atomic_load(&s->threads), taken;

    do {
        taken = free < wanted ? free : (int)wanted;
        if (taken <= 0)
            return 0;
    } while (!atomic_compare_exchange_weak(&s->threads, &free, free - taken));
    return taken;
}

/* Where a thread cannot be started the others do its part. */
static void run_with(loop *l)
{
    int64_t others = ceil_div_i64(l->count, l->piece) - 1;
    int taken = take_threads(l->spare, others < THREADS_MAX ? others : THREADS_MAX), started = 0;
    pthread_t thread[THREADS_MAX];

    while (started < taken && pthread_create(&thread[started], NULL, help, l) == 0)
        started++;
    l->spare->threads += taken - started;
    take_pieces(l, 0);
    while (started > 0)
        pthread_join(thread[--started], NULL);
}

void parallel_run(int64_t count, int64_t piece, void (*body)(void *context, int64_t first,
                                                             int64_t end), void *context)
{
    parallel_spare *before = lender, own = { thread_processors() - 1 };
    loop l = { .count = count, .piece = piece, .body = body, .context = context,
               .spare = before != NULL ? before : &own, .next = piece };

    if (count <= piece) {
        if (count > 0)
            body(context, 0, count);
        return;
    }
    lender = l.spare;
    run_with(&l);
    lender = before;
}
