/*
 * trainer_ranks.c - messages of the processes of a training besides sums: rank 0's first state,
 * wishes to stop, tensors that are not finite.
 */
#include "train/trainer_internal.h"

#include <stdlib.h>
#include <string.h>

#include "experiment/agreement.h"

bool trainer_is_writer(const trainer *t)
{
    return t->experiment->first == 0;
}

void trainer_report_activity(const trainer *t, const char *doing)
{
    if (t->experiment->group != NULL)
        group_note(t->experiment->group, t->state.step, doing);
    else if (t->watchdog != NULL)
        watchdog_note(t->watchdog, t->state.step, doing);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Weights, states, slots, averages and the progress of the run come from rank 0. */
pons_status trainer_broadcast(trainer *t, pons_error *err)
{
    group *g = t->experiment->group;

    if (g == NULL)
        return PONS_OK;
    if (agreement_on_network(g, t->experiment, t->storage, err) != PONS_OK
        || group_broadcast(g, &t->state, sizeof t->state, 0, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < storage_piece_count(t->storage); i++) {
        storage_piece p = storage_piece_at(t->storage, i);

        if (p.size > 0 && group_broadcast(g, p.memory, p.size, 0, err) != PONS_OK)
            return err->status;
    }
    storage_changed(t->storage);
    return agreement_on_weights(g, t->storage, err);
}

/* ---- whether to stop ------------------------------------------------------------------------- */

/*
 * A signal may reach one process alone, and each process would see it at another step. So the
 * processes sum their wishes during the step, and all stop after the same one.
 */
pons_status trainer_stop_sum_begin(trainer *t, pons_error *err)
{
    const program_collective *c;

    if (t->experiment->group == NULL)
        return PONS_OK;
    c = group_collective(t->experiment->group);
    t->stop_wishes = trainer_stop_wanted(t) ? 1 : 0;
    return c->start(c->context, &t->stop_wishes, 1, PONS_F32, &t->stop_pending, err);
}

pons_status trainer_stop_sum_end(trainer *t, pons_error *err)
{
    const program_collective *c;

    if (t->experiment->group == NULL)
        return PONS_OK;
    c = group_collective(t->experiment->group);
    if (c->wait(c->context, t->stop_pending, err) == PONS_OK && t->stop_wishes > 0)
        t->stop_agreed = true;
    return err->status;
}

void trainer_announce_give_up(const trainer *t)
{
    group *g = t->experiment->group;
    pons_error cause = PONS_ERROR_INIT;

    if (g == NULL)
        return;
    pons_fail(&cause, PONS_INTERRUPTED, "interrupted at rank %d; step %lld was given up",
              group_rank(g), (long long)t->state.step + 1);
    group_publish_interruption(g, &cause);
}

bool trainer_stop_wanted(const trainer *t)
{
    const trainer_observer *o = &t->settings->observer;

    return signals_pending(t->settings->signals) || (o->stop != NULL && o->stop(o->context));
}

bool trainer_stop_due(const trainer *t)
{
    return t->stop_agreed || (t->experiment->group == NULL && trainer_stop_wanted(t));
}

/* ---- what was not finite --------------------------------------------------------------------- */

void trainer_merge_sources(nonfinite_source *c, const nonfinite_source *other)
{
    size_t used = strlen(c->cases);

    if (c->tensor[0] == '\0' && other->tensor[0] == '\0')
        snprintf(c->cases + used, sizeof c->cases - used, ", %s", other->cases);
    else if (c->tensor[0] == '\0' || (other->tensor[0] != '\0' && other->place < c->place))
        *c = *other;
}

pons_status trainer_share_source(trainer *t, nonfinite_source *mine, pons_error *err)
{
    group *g = t->experiment->group;
    nonfinite_source *all;

    if (g == NULL)
        return PONS_OK;
    all = calloc((size_t)group_size(g), sizeof *all);
    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", group_size(g));
    if (group_all_gather(g, mine, sizeof *mine, all, err) == PONS_OK) {
        *mine = all[0];
        for (int r = 1; r < group_size(g); r++)
            trainer_merge_sources(mine, &all[r]);
    }
    free(all);
    return err->status;
}
