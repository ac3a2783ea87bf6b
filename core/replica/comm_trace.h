/*
 * comm_trace.h - what the sums over replicas of a step were and when they ran. A trace sits
 * between a program and what joins it to others, hands everything on, and looks at the clock.
 *
 * Two clocks begin with the step: that of the wall, and one that stands still while the replica is
 * inside a sum's start or wait. The second tells when a step without any communication would have
 * come to the same place.
 */
#ifndef CORE_REPLICA_COMM_TRACE_H
#define CORE_REPLICA_COMM_TRACE_H

#include "graph/program/program.h"

typedef struct trace_sum {
    int64_t size;             /* bytes                                                            */
    bool bucket;              /* waited for after the backward pass; else inside of it            */
    double start, wait;       /* when the program came there, by the clock of computing           */
    int start_order, wait_order; /* which of the step's starts and waits this was                 */
    double started, ended;    /* wall: handed over; done                                          */
} trace_sum;

typedef struct comm_trace_step {
    int count, room;
    trace_sum *sum;           /* in the order of their starts                                     */
    double backward;          /* wall: the end of the backward pass                               */
    double compute, seconds;  /* the whole step by both clocks                                    */
} comm_trace_step;

typedef struct trace trace;

/* Room for 'steps' steps. 'inner' joins the replicas; NULL: there is one, and its sums are none. */
pons_status comm_trace_new(const program_collective *inner, int steps, trace **out,
                           pons_error *err);
void comm_trace_free(trace *t);
const program_collective *comm_trace_collective(trace *t); /* lives as long as the trace          */

/* Begin step 'at' anew, on the replica's thread. */
void comm_trace_begin(trace *t, int at);
void comm_trace_backward_done(trace *t);
void comm_trace_end(trace *t);
const comm_trace_step *comm_trace_step_at(const trace *t, int at);

/*
 * The buckets' seconds from start to done, and the part of them that lies before the end of the
 * backward pass: added to what is there.
 */
void comm_trace_add_hidden(const comm_trace_step *s, double *seconds, double *hidden);

#endif
