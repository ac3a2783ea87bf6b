/*
 * update_class.c - parameters sorted by what the optimizer does with them, and the memory for it.
 *
 * Parameters whose recipes are equal form a class. In tensor slots the parameters of a class lie
 * side by side, so that one table serves them.
 */
#include "graph/optimizer/update_internal.h"

#include "base/arena.h"
#include "graph/ir/shape.h"

/* The class of parameter i, opened if it is the first of its kind. */
static update_class *find_class(const update_settings *u, const recipe *r, int i,
                                update_class **classes, int *class_count)
{
    update_class *c;

    for (int k = 0; k < *class_count; k++) {
        c = classes[k];
        if (c->block == u->parameter[i]->block && recipe_equal(c->recipe[0], r))
            return c;
    }
    c = arena_alloc(u->arena, sizeof *c);
    *c = (update_class){ .settings = u, .block = u->parameter[i]->block,
                         .gradient = u->gradient[i], .index = *class_count };
    c->parameter = arena_alloc(u->arena, (size_t)u->count * sizeof *c->parameter);
    c->recipe = arena_alloc(u->arena, (size_t)u->count * sizeof *c->recipe);
    classes[(*class_count)++] = c;
    return c;
}

static pons_status sort_classes(const update_settings *u, update_class **classes, int *class_count,
                                pons_error *err)
{
    bool learns = u->count == 0;

    for (int i = 0; i < u->count; i++) {
        recipe *r = arena_alloc(u->arena, sizeof *r);
        update_class *c;

        if (recipe_make(u->arena, u->parameter[i], u, r, err) != PONS_OK)
            return PONS_PLUGIN;
        c = find_class(u, r, i, classes, class_count);
        c->parameter[c->count] = u->parameter[i];
        c->recipe[c->count++] = r;
        learns = learns || r->target[RECIPE_VALUE] >= 0;
    }
    return learns ? PONS_OK
         : pons_fail(err, PONS_PLUGIN, "the optimizer assigns to none of %d parameters", u->count);
}

/* Parameters of 'b' that no class has lie behind those that one has. */
static void place_rest(const storage *s, const storage_block *b, int place)
{
    for (int i = 0; i < s->count[STORAGE_PARAMETER]; i++) {
        storage_entry *e = s->entry[STORAGE_PARAMETER][i];

        if (e->block == b && e->place < 0)
            e->place = place++;
    }
}

static void forget_places(const storage *s, const storage_block *b)
{
    for (int i = 0; i < s->count[STORAGE_PARAMETER]; i++)
        if (s->entry[STORAGE_PARAMETER][i]->block == b)
            s->entry[STORAGE_PARAMETER][i]->place = -1;
}

/*
 * In tensor slots the parameters of a class lie side by side. A second training program must find
 * them as the first one left them.
 */
static pons_status place_block(const storage *s, const storage_block *b, update_class **classes,
                               int class_count, pons_error *err)
{
    bool fresh = b->slots == NULL;
    int place = 0;

    if (fresh)
        forget_places(s, b);
    for (int k = 0; k < class_count; k++) {
        if (classes[k]->block != b)
            continue;
        classes[k]->first = place;
        for (int i = 0; i < classes[k]->count; i++, place++) {
            storage_entry *e = classes[k]->parameter[i];

            if (!fresh && e->place != place)
                return pons_fail(err, PONS_PLUGIN, "the optimizer treats '%s' differently in a "
                                 "second training program", e->tensor.name);
            e->place = place;
        }
    }
    if (fresh)
        place_rest(s, b, place);
    return PONS_OK;
}

static pons_status place_classes(const storage *s, update_class **classes, int class_count,
                                 pons_error *err)
{
    for (const storage_block *b = s->block; b != NULL; b = b->next)
        if (b->group == STORAGE_PARAMETER
            && place_block(s, b, classes, class_count, err) != PONS_OK)
            return PONS_PLUGIN;
    return PONS_OK;
}

/* Slots that the options leave unused take no memory. */
static unsigned used_slots(const recipe *r)
{
    unsigned used = 0;

    for (int i = 0; i < r->count; i++)
        if (r->term[i].operation == TERM_SLOT)
            used |= 1u << r->term[i].detail;
    return used;
}

static unsigned block_slots(update_class **classes, int class_count, const storage_block *b)
{
    unsigned used = 0;

    for (int k = 0; k < class_count; k++)
        if (classes[k]->block == b)
            used |= used_slots(classes[k]->recipe[0]);
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
    size_t terms = (size_t)c->recipe[0]->count;

    c->start = arena_alloc(u->arena, (size_t)c->count * sizeof *c->start);
    c->length = arena_alloc(u->arena, (size_t)c->count * sizeof *c->length);
    for (int i = 0; i < c->count; i++) {
        c->start[i] = c->parameter[i]->offset;
        c->length[i] = shape_count(c->parameter[i]->tensor.shape);
    }
    c->table = arena_alloc(u->arena, terms * sizeof *c->table);
    c->ready = arena_alloc(u->arena, terms * sizeof *c->ready);
}

pons_status update_classes_make(const update_settings *u, update_class **classes, int *class_count,
                                pons_error *err)
{
    if (sort_classes(u, classes, class_count, err) != PONS_OK
        || place_classes(u->storage, classes, *class_count, err) != PONS_OK)
        return PONS_PLUGIN;
    if (add_slots(u, classes, *class_count, err) != PONS_OK)
        return PONS_DEVICE;
    for (int k = 0; k < *class_count; k++)
        prepare_class(classes[k]);
    return PONS_OK;
}
