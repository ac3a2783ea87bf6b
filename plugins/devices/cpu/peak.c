/*
 * peak.c - measure the peak rates of memory and arithmetic units: the best of several short rounds
 * on all threads. 'pons bench --kernels' compares its kernels with these figures.
 */
#include "cpu/peak.h"

#include "cpu/cpu.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { COPY_ROUNDS = 6, LOOP_ROUNDS = 8 };

#define LOOP_SECONDS 0.02
#define COPY_LEAST ((size_t)256 << 20) /* bytes of source and copy together */
#define COPY_PIECE ((size_t)1 << 20)

/* ---- copy ------------------------------------------------------------------------------------ */

typedef struct copying {
    char *to;
    const char *from;
    void (*copy)(void *to, const void *from, size_t size);
} copying;

static void copy_piece(void *context, int64_t i, int thread)
{
    const copying *c = context;
    size_t at = (size_t)i * COPY_PIECE;

    (void)thread;
    c->copy(c->to + at, c->from + at, COPY_PIECE);
}

static void copy_plain(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
}

/* Twice the last-level cache, at most an eighth of the memory, rounded down to whole pieces. */
static size_t copy_size(void)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t size = cache > 0 && 2 * (size_t)cache > COPY_LEAST ? 2 * (size_t)cache : COPY_LEAST;
    size_t memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;

    if (memory > 0 && size > memory / 8)
        size = memory / 8;
    size -= size % (2 * COPY_PIECE);
    return size > 0 ? size : 2 * COPY_PIECE;
}

static pons_status measure_copy(cpu_device *d, double *rate, pons_error *err)
{
    static void (*const ways[])(void *, const void *, size_t) = { copy_plain, peak_copy };
    size_t size = copy_size();
    char *memory = cpu_operations.memory.allocate(d, size, err);
    double best = 0;

    if (memory == NULL)
        return err->status;
    memset(memory, 1, size);
    for (int i = 0; i < COPY_ROUNDS; i++) {
        copying c = { memory, memory + size / 2, ways[i % 2] };
        double start = seconds_now(), seconds;
        cpu_parallel_for(d->threads, (int64_t)(size / 2 / COPY_PIECE), copy_piece, &c);
        seconds = seconds_now() - start;
        if (seconds > 0 && (double)size / seconds > best)
            best = (double)size / seconds;
    }
    cpu_operations.memory.release(d, memory, size);
    *rate = best;
    return PONS_OK;
}

/* ---- loops ----------------------------------------------------------------------------------- */

typedef struct looping {
    const peak_loop *loop;
    const void *input;
    int64_t rounds;
    float *output; /* PEAK_ALIGN bytes for each thread */
} looping;

static void loop_piece(void *context, int64_t i, int thread)
{
    const looping *l = context;

    (void)i;
    l->loop->run(l->rounds, l->input, l->output + (size_t)thread * (PEAK_ALIGN / sizeof(float)));
}

static double loop_seconds(int threads, looping *l)
{
    double start = seconds_now();

    cpu_parallel_for(threads, threads, loop_piece, l);
    return seconds_now() - start;
}

/* 'memory' has PEAK_INPUT bytes of input, then PEAK_ALIGN bytes for each thread. */
static double measure_loop(const cpu_device *d, const peak_loop *loop, char *memory)
{
    looping l = { loop, memory, 1000, (float *)(memory + PEAK_INPUT) };
    double best = 0, seconds;

    while (loop->run != NULL && !isa_runs(loop->set))
        loop++;
    if (loop->run == NULL)
        return 0;
    l.loop = loop;
    while (loop_seconds(d->threads, &l) < LOOP_SECONDS)
        l.rounds *= 2;
    for (int i = 0; i < LOOP_ROUNDS; i++) {
        seconds = loop_seconds(d->threads, &l);
        double rate = loop->operations * (double)l.rounds * d->threads / seconds;
        best = rate > best ? rate : best;
    }
    return best;
}

/* Values from 1/2 to 1 as bf16 and, two together, as floats: sums stay finite and normal. */
static void fill_numbers(uint16_t *number)
{
    for (size_t i = 0; i < PEAK_INPUT / sizeof *number; i++)
        number[i] = (uint16_t)(0x3f00 + i / 2 % 128);
}

pons_status peak_measure(void *device, pons_device_peak *peak, pons_error *err)
{
    cpu_device *d = device;
    size_t size = PEAK_INPUT + (size_t)d->threads * PEAK_ALIGN;
    pons_device_peak found = { 0 };
    char *memory = cpu_operations.memory.allocate(d, size, err);

    if (memory == NULL)
        return err->status;
    fill_numbers((uint16_t *)memory);
    found.f32 = measure_loop(d, peak_f32, memory);
    found.bf16 = measure_loop(d, peak_bf16, memory);
    cpu_operations.memory.release(d, memory, size);
    if (measure_copy(d, &found.copy, err) == PONS_OK)
        *peak = found;
    return err->status;
}
