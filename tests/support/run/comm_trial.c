/*
 * comm_trial.c - sums, broadcasts, gathers and barriers whose results every process can compute.
 */
#include "support/run/comm_trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash/hash128.h"
#include "base/random.h"

enum { SUMS = 6 };
static const int64_t sum_counts[SUMS] = { 1, 3, 64, 1000, 65537, 700001 };

pons_comm_state comm_end(const comm_party *p, void *pending, double patience, pons_error *err)
{
    double end = seconds_now() + patience;
    pons_comm_state state;

    do
        state = p->operations->poll(p->comm, pending, 0.1, err);
    while (state == PONS_COMM_RUNNING && seconds_now() < end);
    return state;
}

static void *buffer_new(const comm_party *p, size_t size)
{
    return p->allocate != NULL ? p->allocate(size) : malloc(size);
}

static void buffer_free(const comm_party *p, void *memory)
{
    if (p->release != NULL)
        p->release(memory);
    else
        free(memory);
}

static void copy(const comm_party *p, void *to, const void *from, size_t size)
{
    if (p->copy != NULL)
        p->copy(to, from, size);
    else
        memcpy(to, from, size);
}

static pons_status wait_for(const comm_party *p, void *pending, const char *what, pons_error *err)
{
    switch (comm_end(p, pending, 60, err)) {
    case PONS_COMM_DONE: return PONS_OK;
    case PONS_COMM_FAILED: return err->status;
    default: return pons_fail(err, PONS_FAILURE, "%s does not end", what);
    }
}

/* An integer below 1000, so that sums are exact in any order. */
static double integer_term(int rank, int sum, int64_t i)
{
    uint32_t u[4];

    random_voxels((uint64_t)(rank * SUMS + sum), (uint64_t)i, u);
    return u[0] % 1000;
}

static double buffer_element(const void *buffer, pons_type type, int64_t i)
{
    return type == PONS_F64 ? ((const double *)buffer)[i] : (double)((const float *)buffer)[i];
}

static void buffer_set_element(void *buffer, pons_type type, int64_t i, double value)
{
    if (type == PONS_F64)
        ((double *)buffer)[i] = value;
    else
        ((float *)buffer)[i] = (float)value;
}

/* Start all sums before the first wait. */
static pons_status try_sums(const comm_party *p, pons_type type, pons_error *err)
{
    void *buffer[SUMS] = { NULL }, *pending;
    void *under_way[SUMS], *cells = malloc(sizeof(double) * (size_t)sum_counts[SUMS - 1]);
    int started = 0;

    for (int k = 0; k < SUMS && err->status == PONS_OK; k++) {
        buffer[k] = buffer_new(p, sizeof(double) * (size_t)sum_counts[k]);
        for (int64_t i = 0; i < sum_counts[k]; i++)
            buffer_set_element(cells, type, i, integer_term(p->rank, k, i));
        copy(p, buffer[k], cells, sizeof(double) * (size_t)sum_counts[k]);
        if (p->operations->all_reduce(p->comm, buffer[k], sum_counts[k], type, &pending,
                                      err) == PONS_OK)
            under_way[started++] = pending;
    }
    for (int k = 0; k < started; k++)
        wait_for(p, under_way[k], "a sum", err);
    for (int k = 0; k < SUMS && err->status == PONS_OK; k++) {
        copy(p, cells, buffer[k], sizeof(double) * (size_t)sum_counts[k]);
        for (int64_t i = 0; i < sum_counts[k]; i++) {
            double expected = 0;
            for (int r = 0; r < p->size; r++)
                expected += integer_term(r, k, i);
            if (buffer_element(cells, type, i) != expected)
                pons_fail(err, PONS_FAILURE, "element %lld of sum %d is %g, expected %g",
                          (long long)i, k, buffer_element(cells, type, i), expected);
        }
    }
    for (int k = 0; k < SUMS; k++)
        buffer_free(p, buffer[k]);
    free(cells);
    return err->status;
}

static pons_status sums_are_right(const comm_party *p, pons_error *err)
{
    try_sums(p, PONS_F32, err);
    return err->status == PONS_OK ? try_sums(p, PONS_F64, err) : err->status;
}

/* Sum numbers whose order matters, and compare the results by their hash. */
static pons_status sums_have_equal_bits_everywhere(const comm_party *p, pons_error *err)
{
    int64_t count = sum_counts[SUMS - 1];
    size_t size = sizeof(float) * (size_t)count;
    float *cells = malloc(size);
    void *buffer = buffer_new(p, size);
    hash128 mine, *all = malloc(sizeof *all * (size_t)p->size);
    void *pending;

    for (int64_t i = 0; i < count; i++)
        cells[i] = ldexpf((float)integer_term(p->rank, 0, i) - 499.3f, (int)integer_term(p->rank, 1,
                                                                                         i) % 24);
    copy(p, buffer, cells, size);
    if (p->operations->all_reduce(p->comm, buffer, count, PONS_F32, &pending, err) == PONS_OK)
        wait_for(p, pending, "a sum", err);
    copy(p, cells, buffer, size);
    mine = hash128_of(cells, size);
    if (err->status == PONS_OK
        && p->operations->all_gather(p->comm, &mine, sizeof mine, all, &pending, err) == PONS_OK)
        wait_for(p, pending, "a gather", err);
    for (int r = 0; r < p->size && err->status == PONS_OK; r++)
        if (memcmp(&all[r], &mine, sizeof mine) != 0)
            pons_fail(err, PONS_FAILURE, "rank %d has another sum than rank %d", r, p->rank);
    buffer_free(p, buffer);
    free(cells);
    free(all);
    return err->status;
}

static pons_status broadcasts_come_from_every_root(const comm_party *p, pons_error *err)
{
    static const size_t sizes[] = { 1, 17, 4096, 1234567 };

    for (int root = 0; root < p->size; root++)
        for (int k = 0; k < 4 && err->status == PONS_OK; k++) {
            unsigned char *data = malloc(sizes[k]);
            void *pending, *buffer = buffer_new(p, sizes[k]);
            for (size_t i = 0; i < sizes[k]; i++)
                data[i] = p->rank == root ? (unsigned char)(i * 7 + (size_t)root) : 0;
            copy(p, buffer, data, sizes[k]);
            if (p->operations->broadcast(p->comm, buffer, sizes[k], root, &pending, err) == PONS_OK)
                wait_for(p, pending, "a broadcast", err);
            copy(p, data, buffer, sizes[k]);
            for (size_t i = 0; i < sizes[k] && err->status == PONS_OK; i++)
                if (data[i] != (unsigned char)(i * 7 + (size_t)root))
                    pons_fail(err, PONS_FAILURE, "byte %zu of %zu from rank %d is wrong", i,
                              sizes[k], root);
            buffer_free(p, buffer);
            free(data);
        }
    return err->status;
}

static pons_status gathers_are_ordered_by_rank(const comm_party *p, pons_error *err)
{
    static const size_t sizes[] = { 1, 24, 4097, 300000 };

    for (int k = 0; k < 4 && err->status == PONS_OK; k++) {
        size_t whole_size = sizes[k] * (size_t)p->size;
        unsigned char *all = malloc(whole_size);
        void *pending, *mine = buffer_new(p, sizes[k]), *buffer = buffer_new(p, whole_size);
        for (size_t i = 0; i < sizes[k]; i++)
            all[i] = (unsigned char)(i * 5 + (size_t)p->rank * 31);
        copy(p, mine, all, sizes[k]);
        if (p->operations->all_gather(p->comm, mine, sizes[k], buffer, &pending, err) == PONS_OK)
            wait_for(p, pending, "a gather", err);
        copy(p, all, buffer, whole_size);
        for (size_t i = 0; i < sizes[k] * (size_t)p->size && err->status == PONS_OK; i++)
            if (all[i] != (unsigned char)(i % sizes[k] * 5 + i / sizes[k] * 31))
                pons_fail(err, PONS_FAILURE, "byte %zu of rank %zu is wrong", i % sizes[k],
                          i / sizes[k]);
        buffer_free(p, mine);
        buffer_free(p, buffer);
        free(all);
    }
    return err->status;
}

/* Every rank is late at one barrier. No rank may leave it before the late one has entered. */
static pons_status barriers_wait_for_the_last(const comm_party *p, pons_error *err)
{
    for (int late = 0; late < p->size && err->status == PONS_OK; late++) {
        double begin, left = 0, *all = malloc(sizeof *all * (size_t)p->size);
        void *pending;
        if (p->rank == late)
            usleep(60000);
        begin = seconds_now();
        if (p->operations->barrier(p->comm, &pending, err) == PONS_OK)
            wait_for(p, pending, "a barrier", err);
        left = seconds_now();
        /* all processes share the clock of one machine */
        if (err->status == PONS_OK
            && p->operations->all_gather(p->comm, &begin, sizeof begin, all, &pending,
                                         err) == PONS_OK)
            wait_for(p, pending, "a gather", err);
        if (err->status == PONS_OK && left < all[late])
            pons_fail(err, PONS_FAILURE, "rank %d left %g s before rank %d came", p->rank,
                      all[late] - left, late);
        free(all);
    }
    return err->status;
}

static pons_status nothing_is_summed_as_well(const comm_party *p, pons_error *err)
{
    void *pending;

    if (p->operations->broadcast(p->comm, NULL, 0, 0, &pending, err) == PONS_OK)
        wait_for(p, pending, "an empty broadcast", err);
    if (err->status == PONS_OK
        && p->operations->all_reduce(p->comm, NULL, 0, PONS_F32, &pending, err) == PONS_OK)
        wait_for(p, pending, "an empty sum", err);
    return err->status;
}

const comm_trial comm_trials[] = {
    { "sums are right", sums_are_right },
    { "sums have equal bits everywhere", sums_have_equal_bits_everywhere },
    { "broadcasts come from every root", broadcasts_come_from_every_root },
    { "gathers are ordered by rank", gathers_are_ordered_by_rank },
    { "barriers wait for the last", barriers_wait_for_the_last },
    { "nothing is summed as well", nothing_is_summed_as_well },
    { NULL, NULL }
};
