/*
 * program_range.c - ranges that profilers show around calls: the phase, and in it the plugin whose
 * nodes the calls compute. A range lasts until a call of another phase or plugin.
 */
#include "graph/program/program_internal.h"
#include "graph/storage/profiler_range.h"

/* The phase of a step's call. The caller of an evaluation, and that of a step's end, names it. */
static range_kind phase_of(const program *p, const program_call *c)
{
    if (!p->training)
        return RANGE_OTHER;
    if (c->backward)
        return RANGE_BACKWARD;
    return c->section <= SECTION_MICRO ? RANGE_FORWARD : RANGE_OTHER;
}

static bool is_same(const node_origin *a, const node_origin *b)
{
    return a == b || (a != NULL && b != NULL && a->kind == b->kind && a->name == b->name);
}

static void leave_origin(program *p)
{
    if (p->run.origin != NULL)
        range_end(&p->device);
    p->run.origin = NULL;
}

void program_range_leave(program *p)
{
    leave_origin(p);
    if (p->run.phase != RANGE_OTHER)
        range_end(&p->device);
    p->run.phase = RANGE_OTHER;
}

void program_range_enter(program *p, const program_call *c)
{
    range_kind phase = phase_of(p, c);

    if (phase != p->run.phase)
        program_range_leave(p);
    else if (!is_same(c->origin, p->run.origin))
        leave_origin(p);
    if (phase != p->run.phase)
        range_begin(&p->device, phase, range_kind_name(phase));
    if (c->origin != NULL && p->run.origin == NULL)
        range_begin(&p->device, c->origin->kind, c->origin->name);
    p->run.phase = phase;
    p->run.origin = c->origin;
}
