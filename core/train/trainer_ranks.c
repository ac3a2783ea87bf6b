/*
 * trainer_ranks.c - what the processes of a training tell each other besides sums: the state that
 * rank 0 begins with, whether one of them is to stop, what was not finite.
 */
#include "train/trainer_internal.h"

#include <stdlib.h>
#include <string.h>

#include "experiment/agreement.h"

bool trainer_writes(const trainer *t)
{
    return t->experiment->first == 0;
}

void trainer_note(const trainer *t, const char *doing)
{
    if (t->experiment->group != NULL)
        group_note(t->experiment->group, t->state.step, doing);
    else
        watch_note(t->watch, t->state.step, doing);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Weights, states, slots, averages and how far the run is, as rank 0 has them. */
pons_status trainer_spread(trainer *t, pons_error *err)
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
 * A signal may reach one process alone, and others would look before or after it came: so they add
 * up their wishes, in the shadow of the step, and all stop behind the same one.
 */
pons_status trainer_vote_begin(trainer *t, pons_error *err)
{
    const program_collective *c;

    if (t->experiment->group == NULL)
        return PONS_OK;
    c = group_collective(t->experiment->group);
    t->vote = interrupt_pending(t->settings->interrupt) ? 1 : 0;
    return c->start(c->context, &t->vote, 1, PONS_F32, &t->vote_pending, err);
}

pons_status trainer_vote_end(trainer *t, pons_error *err)
{
    const program_collective *c;

    if (t->experiment->group == NULL)
        return PONS_OK;
    c = group_collective(t->experiment->group);
    if (c->wait(c->context, t->vote_pending, err) == PONS_OK && t->vote > 0)
        t->stop = true;
    return err->status;
}

void trainer_leave_ranks(const trainer *t)
{
    group *g = t->experiment->group;
    pons_error cause = PONS_ERROR_INIT;

    if (g == NULL)
        return;
    pons_fail(&cause, PONS_INTERRUPTED, "interrupted at rank %d; step %lld was given up",
              group_rank(g), (long long)t->state.step + 1);
    group_leave(g, &cause);
}

bool trainer_stops(const trainer *t)
{
    return t->stop || (t->experiment->group == NULL && interrupt_pending(t->settings->interrupt));
}

/* ---- what was not finite --------------------------------------------------------------------- */

void trainer_join_culprits(trainer_culprit *c, const trainer_culprit *other)
{
    size_t used = strlen(c->cases);

    if (c->tensor[0] == '\0' && other->tensor[0] == '\0')
        snprintf(c->cases + used, sizeof c->cases - used, ", %s", other->cases);
    else if (c->tensor[0] == '\0' || (other->tensor[0] != '\0' && other->place < c->place))
        *c = *other;
}

pons_status trainer_share_culprit(trainer *t, trainer_culprit *mine, pons_error *err)
{
    group *g = t->experiment->group;
    trainer_culprit *all;

    if (g == NULL)
        return PONS_OK;
    all = calloc((size_t)group_size(g), sizeof *all);
    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", group_size(g));
    if (group_all_gather(g, mine, sizeof *mine, all, err) == PONS_OK) {
        *mine = all[0];
        for (int r = 1; r < group_size(g); r++)
            trainer_join_culprits(mine, &all[r]);
    }
    free(all);
    return err->status;
}
