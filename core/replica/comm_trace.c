/*
 * comm_trace.c - a clock beside the sums over replicas.
 */
#include "replica/comm_trace.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"

struct trace {
    const program_collective *inner;
    program_collective collective;
    int steps, calls;         /* room; starts and waits in this step                              */
    comm_trace_step *step, *now;
    void **pending;           /* of the inner sums of this step                                   */
    int room;
    double begin, lost;       /* of this step; seconds inside of starts and waits                 */
    bool backward_done;
};

static trace_sum *append(trace *t)
{
    comm_trace_step *s = t->now;

    if (s->count == s->room) {
        int room = s->room > 0 ? 2 * s->room : 32;
        trace_sum *sum = realloc(s->sum, (size_t)room * sizeof *sum);
        if (sum == NULL)
            return NULL;
        s->sum = sum;
        s->room = room;
    }
    if (t->room < s->room) {
        void **pending = realloc(t->pending, (size_t)s->room * sizeof *pending);
        if (pending == NULL)
            return NULL;
        t->pending = pending;
        t->room = s->room;
    }
    return &s->sum[s->count++];
}

/* ---- what the program calls ------------------------------------------------------------------ */

static pons_status trace_start(void *context, void *buffer, int64_t count, pons_type type,
                               void **pending, pons_error *err)
{
    trace *t = context;
    const program_collective *c = t->inner;
    double now = seconds_now();
    trace_sum *sum = append(t);
    int index = t->now->count - 1;

    if (sum == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the trace of a step");
    *sum = (trace_sum){ .size = count * (int64_t)(type == PONS_F64 ? 8 : 4),
                        .start = now - t->begin - t->lost, .start_order = t->calls++,
                        .started = now - t->begin };
    *pending = (void *)(intptr_t)index;
    if (c != NULL && c->start(c->context, buffer, count, type, &t->pending[index], err) != PONS_OK)
        return err->status;
    t->lost += seconds_now() - now;
    return PONS_OK;
}

static pons_status trace_wait(void *context, void *pending, pons_error *err)
{
    trace *t = context;
    const program_collective *c = t->inner;
    intptr_t index = (intptr_t)pending;
    trace_sum *sum = &t->now->sum[index];
    double now = seconds_now(), left;

    sum->wait = now - t->begin - t->lost;
    sum->wait_order = t->calls++;
    sum->bucket = t->backward_done;
    if (c != NULL && c->wait(c->context, t->pending[index], err) != PONS_OK)
        return err->status;
    left = seconds_now();
    t->lost += left - now;
    sum->ended = c == NULL ? sum->started
               : (c->ended != NULL ? c->ended(c->context) : left) - t->begin;
    return PONS_OK;
}

/* ---- the trace ------------------------------------------------------------------------------- */

pons_status comm_trace_new(const program_collective *inner, int steps, trace **out, pons_error *err)
{
    trace *t = calloc(1, sizeof *t);

    if (t == NULL || (t->step = calloc((size_t)steps, sizeof *t->step)) == NULL) {
        free(t);
        return pons_fail(err, PONS_DEVICE, "out of memory for the trace of %d steps", steps);
    }
    t->inner = inner;
    t->steps = steps;
    t->now = t->step;
    t->collective = (program_collective){ .count = inner != NULL ? inner->count : 1,
                                          .rank = inner != NULL ? inner->rank : 0,
                                          .context = t, .start = trace_start, .wait = trace_wait,
                                          .stream = inner != NULL ? inner->stream : NULL };
    *out = t;
    return PONS_OK;
}

void comm_trace_free(trace *t)
{
    if (t == NULL)
        return;
    for (int i = 0; i < t->steps; i++)
        free(t->step[i].sum);
    free(t->step);
    free(t->pending);
    free(t);
}

const program_collective *comm_trace_collective(trace *t)
{
    return &t->collective;
}

void comm_trace_begin(trace *t, int at)
{
    t->now = &t->step[at];
    t->now->count = 0;
    t->calls = 0;
    t->lost = 0;
    t->backward_done = false;
    t->begin = seconds_now();
}

void comm_trace_backward_done(trace *t)
{
    t->now->backward = seconds_now() - t->begin;
    t->backward_done = true;
}

void comm_trace_end(trace *t)
{
    t->now->seconds = seconds_now() - t->begin;
    t->now->compute = t->now->seconds - t->lost;
}

const comm_trace_step *comm_trace_step_at(const trace *t, int at)
{
    return &t->step[at];
}

void comm_trace_add_hidden(const comm_trace_step *s, double *seconds, double *hidden)
{
    for (int i = 0; i < s->count; i++) {
        const trace_sum *sum = &s->sum[i];
        if (!sum->bucket)
            continue;
        *seconds += sum->ended - sum->started;
        *hidden += fmax(fmin(sum->ended, s->backward) - sum->started, 0);
    }
}
