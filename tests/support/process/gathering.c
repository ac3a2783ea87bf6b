/*
 * gathering.c - see gathering.h.
 */
#include "support/process/gathering.h"

#include <string.h>

#include "support/asserts.h"

void gathering_init(gathering *g, int count)
{
    pthread_barrierattr_t among;

    ck_assert_int_le(count, GATHERING_PROCESSES);
    g->count = count;
    pthread_barrierattr_init(&among);
    pthread_barrierattr_setpshared(&among, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&g->barrier, &among, (unsigned)count);
    pthread_barrierattr_destroy(&among);
}

void gathering_wait(gathering *g)
{
    pthread_barrier_wait(&g->barrier);
}

pons_status gathering_all_gather(void *context, const void *mine, size_t size, void *all,
                                 pons_error *err)
{
    const gathering_member *m = context;

    if (size > GATHERING_SIZE)
        return pons_fail(err, PONS_FAILURE, "%zu bytes are too many", size);
    memcpy(m->of->bytes[m->self], mine, size);
    gathering_wait(m->of);
    for (int r = 0; r < m->of->count; r++)
        memcpy((char *)all + (size_t)r * size, m->of->bytes[r], size);
    gathering_wait(m->of);
    return PONS_OK;
}
