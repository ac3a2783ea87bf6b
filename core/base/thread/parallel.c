/*
 * parallel.c - threads that take the next range of a loop until none is left.
 */
#include "base/thread/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/integer.h"
#include "base/profile/profile.h"
#include "base/thread/thread.h"

enum { THREADS_MAX = 64, PIECE = 1 << 16 };

/* Thread budget of this thread; NULL: its processors. */
static _Thread_local thread_budget *budget;

typedef struct loop {
    int64_t count, piece;
    void (*body)(void *context, int64_t first, int64_t end);
    void *context;
    thread_budget *spare;
    _Atomic int64_t next;
    profile_thread state;      /* of the thread that runs the loop                                */
} loop;

thread_budget *thread_budget_set(thread_budget *from)
{
    thread_budget *before = budget;

    budget = from;
    return before;
}

int64_t parallel_piece(int64_t size)
{
    return size < PIECE ? PIECE / (size > 0 ? size : 1) : 1;
}

static void take_pieces(loop *l, int64_t first)
{
    for (; first < l->count; first = atomic_fetch_add(&l->next, l->piece))
        l->body(l->context, first, min_i64(first + l->piece, l->count));
}

static void *run_helper(void *context)
{
    loop *l = context;

    budget = l->spare;
    profile_thread_enter(l->state, "a thread of a loop");
    take_pieces(l, atomic_fetch_add(&l->next, l->piece));
    profile_thread_leave();
    l->spare->threads++;
    return NULL;
}

/* Take up to 'wanted' threads from the budget. */
static int take_threads(thread_budget *s, int64_t wanted)
{
    int free = atomic_load(&s->threads), taken;

    do {
        taken = free < wanted ? free : (int)wanted;
        if (taken <= 0)
            return 0;
    } while (!atomic_compare_exchange_weak(&s->threads, &free, free - taken));
    return taken;
}

/* The other threads run the share of a thread that cannot be started. */
static void run_threads(loop *l)
{
    int64_t others = ceil_div_i64(l->count, l->piece) - 1;
    int taken = take_threads(l->spare, min_i64(others, THREADS_MAX)), started = 0;
    pthread_t thread[THREADS_MAX];

    while (started < taken && pthread_create(&thread[started], NULL, run_helper, l) == 0)
        started++;
    l->spare->threads += taken - started;
    take_pieces(l, 0);
    while (started > 0)
        pthread_join(thread[--started], NULL);
}

void parallel_run(int64_t count, int64_t piece, void (*body)(void *context, int64_t first,
                                                             int64_t end), void *context)
{
    thread_budget *before = budget, own = { thread_processors() - 1 };
    loop l = { .count = count, .piece = piece, .body = body, .context = context,
               .spare = before != NULL ? before : &own, .next = piece,
               .state = profile_thread_state() };

    if (count <= piece) {
        if (count > 0)
            body(context, 0, count);
        return;
    }
    budget = l.spare;
    run_threads(&l);
    budget = before;
}
