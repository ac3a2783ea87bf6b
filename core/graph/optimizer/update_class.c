/*
 * update_class.c - sort parameters into classes of equal traces, and allocate their slots and
 * averages.
 *
 * In tensor slots the parameters of a class lie side by side, so one table serves them.
 */
#include "graph/optimizer/update_internal.h"

#include "base/arena.h"
#include "graph/ir/shape.h"

/* The class of parameter i; a new one if its trace is new. */
static update_class *find_class(const update_settings *u, const optimizer_trace *r, int i,
                                update_class **classes, int *class_count)
{
    update_class *c;

    for (int k = 0; k < *class_count; k++) {
        c = classes[k];
        if (c->block == u->parameter[i]->block && optimizer_trace_equal(c->trace[0], r))
            return c;
    }
    c = arena_alloc(u->arena, sizeof *c);
    *c = (update_class){ .settings = u, .block = u->parameter[i]->block,
                         .gradient = u->gradient[i], .index = *class_count };
    c->parameter = arena_alloc(u->arena, (size_t)u->count * sizeof *c->parameter);
    c->trace = arena_alloc(u->arena, (size_t)u->count * sizeof *c->trace);
    classes[(*class_count)++] = c;
    return c;
}

static pons_status sort_classes(const update_settings *u, update_class **classes, int *class_count,
                                pons_error *err)
{
    bool learns = u->count == 0;

    for (int i = 0; i < u->count; i++) {
        optimizer_trace *r = arena_alloc(u->arena, sizeof *r);
        update_class *c;

        if (optimizer_trace_make(u->arena, u->parameter[i], u, r, err) != PONS_OK)
            return PONS_PLUGIN;
        c = find_class(u, r, i, classes, class_count);
        c->parameter[c->count] = u->parameter[i];
        c->trace[c->count++] = r;
        learns = learns || r->target[TRACE_TARGET_PARAMETER] >= 0;
    }
    return learns ? PONS_OK
         : pons_fail(err, PONS_PLUGIN, "the optimizer assigns to none of %d parameters", u->count);
}

/* Give the parameters of 'b' without a class the indices behind those of the others. */
static void index_rest(const storage *s, const storage_block *b, int index)
{
    for (int i = 0; i < s->count[STORAGE_PARAMETER]; i++) {
        storage_entry *e = s->entry[STORAGE_PARAMETER][i];

        if (e->block == b && e->tensor_slot_index < 0)
            e->tensor_slot_index = index++;
    }
}

static void clear_indices(const storage *s, const storage_block *b)
{
    for (int i = 0; i < s->count[STORAGE_PARAMETER]; i++)
        if (s->entry[STORAGE_PARAMETER][i]->block == b)
            s->entry[STORAGE_PARAMETER][i]->tensor_slot_index = -1;
}

/*
 * Give the parameters of a class consecutive indices in tensor slots. A second training program
 * must find the indices of the first.
 */
static pons_status index_block(const storage *s, const storage_block *b, update_class **classes,
                               int class_count, pons_error *err)
{
    bool fresh = b->slots == NULL;
    int index = 0;

    if (fresh)
        clear_indices(s, b);
    for (int k = 0; k < class_count; k++) {
        if (classes[k]->block != b)
            continue;
        classes[k]->first = index;
        for (int i = 0; i < classes[k]->count; i++, index++) {
            storage_entry *e = classes[k]->parameter[i];

            if (!fresh && e->tensor_slot_index != index)
                return pons_fail(err, PONS_PLUGIN, "the optimizer treats '%s' differently in a "
                                 "second training program", e->tensor.name);
            e->tensor_slot_index = index;
        }
    }
    if (fresh)
        index_rest(s, b, index);
    return PONS_OK;
}

static pons_status index_classes(const storage *s, update_class **classes, int class_count,
                                 pons_error *err)
{
    for (const storage_block *b = s->block; b != NULL; b = b->next)
        if (b->group == STORAGE_PARAMETER
            && index_block(s, b, classes, class_count, err) != PONS_OK)
            return PONS_PLUGIN;
    return PONS_OK;
}

/* The set of slots that the trace reads or writes. Other slots take no memory. */
static unsigned used_slots(const optimizer_trace *r)
{
    unsigned used = 0;

    for (int i = 0; i < r->count; i++)
        if (r->op[i].operation == TRACE_SLOT)
            used |= 1u << r->op[i].detail;
    return used;
}

static unsigned block_slots(update_class **classes, int class_count, const storage_block *b)
{
    unsigned used = 0;

    for (int k = 0; k < class_count; k++)
        if (classes[k]->block == b)
            used |= used_slots(classes[k]->trace[0]);
    return used;
}

static pons_status add_slots(const update_settings *u, update_class **classes, int class_count,
                             pons_error *err)
{
    pons_status status = PONS_OK;

    for (int k = 0; k < class_count && status == PONS_OK; k++) {
        storage_block *b = classes[k]->block;

        status = storage_add_slots(u->storage, b, u->optimizer->slots,
                                   block_slots(classes, class_count, b), err);
        if (status == PONS_OK && u->ema_decay > 0)
            status = storage_add_ema(u->storage, b, err);
    }
    return status;
}

static void prepare_class(update_class *c)
{
    const update_settings *u = c->settings;
    size_t ops = (size_t)c->trace[0]->count;

    c->start = arena_alloc(u->arena, (size_t)c->count * sizeof *c->start);
    c->length = arena_alloc(u->arena, (size_t)c->count * sizeof *c->length);
    for (int i = 0; i < c->count; i++) {
        c->start[i] = c->parameter[i]->offset;
        c->length[i] = shape_count(c->parameter[i]->tensor.shape);
    }
    c->table = arena_alloc(u->arena, ops * sizeof *c->table);
    c->ready = arena_alloc(u->arena, ops * sizeof *c->ready);
}

pons_status update_classes_make(const update_settings *u, update_class **classes, int *class_count,
                                pons_error *err)
{
    if (sort_classes(u, classes, class_count, err) != PONS_OK
        || index_classes(u->storage, classes, *class_count, err) != PONS_OK)
        return PONS_PLUGIN;
    if (add_slots(u, classes, *class_count, err) != PONS_OK)
        return PONS_DEVICE;
    for (int k = 0; k < *class_count; k++)
        prepare_class(classes[k]);
    return PONS_OK;
}
