/*
 * storage.c - the memory of one replica that outlives a step, by name.
 *
 * Only this file binds names: the first build that declares a name creates its tensor, later builds
 * find it (R16). It also draws initial values (R29). Programs and their update section compute with
 * the memory.
 */
#include "graph/storage/storage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/integer.h"
#include "base/random.h"
#include "graph/ir/shape.h"

pons_status storage_allocate(const storage *s, size_t size, void **memory, pons_error *err)
{
    const device *d = s->device;

    *memory = NULL;
    if (size == 0)
        return PONS_OK;
    *memory = d->operations->memory.allocate(d->handle, size, err);
    if (*memory == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot allocate %zu bytes on the device", size);
    return PONS_OK;
}

void storage_release(const storage *s, void *memory, size_t size)
{
    if (memory != NULL)
        s->device->operations->memory.release(s->device->handle, memory, size);
}

enum { FIRST_SCALE = 65536 };

static void write_real(const storage *s, void *memory, int64_t index, double value)
{
    if (s->real == PONS_F64)
        ((double *)memory)[index] = value;
    else
        ((float *)memory)[index] = (float)value;
}

pons_status storage_new(const device *d, storage **out, pons_error *err)
{
    storage *s = calloc(1, sizeof *s);

    if (s == NULL || (s->arena = arena_new()) == NULL) {
        free(s);
        return pons_fail(err, PONS_DEVICE, "out of memory for the table of parameters");
    }
    s->device = d;
    s->real = d->wide ? PONS_F64 : PONS_F32;
    s->real_size = d->wide ? sizeof(double) : sizeof(float);
    s->block_end = &s->block;
    s->version = s->layout = 1;
    s->newest = arena_alloc(s->arena, sizeof *s->newest);
    *s->newest = (storage_newest){ true, true };
    if (staging_new(d, STORAGE_NUMBER_COUNT * s->real_size, &s->numbers, err) != PONS_OK) {
        storage_free(s);
        return err != NULL ? err->status : PONS_DEVICE;
    }
    write_real(s, s->numbers.host, STORAGE_SCALE, FIRST_SCALE);
    *out = s;
    return PONS_OK;
}

void storage_free(storage *s)
{
    if (s == NULL)
        return;
    for (storage_block *b = s->block; b != NULL; b = b->next) {
        staging_free(s->device, &b->memory);
        staging_free(s->device, &b->ema);
        for (int i = 0; i < PONS_SLOTS_MAX; i++)
            staging_free(s->device, &b->slot[i]);
    }
    staging_free(s->device, &s->numbers);
    storage_release(s, s->work, s->work_size);
    for (int i = 0; i < STORAGE_GROUP_COUNT; i++)
        free(s->entry[i]);
    arena_free(s->arena);
    free(s);
}

/* ---- the device and the host ----------------------------------------------------------------- */

enum { PIECES = 2 + PONS_SLOTS_MAX }; /* pieces of a block: memory, averages, slots */

int storage_piece_count(const storage *s)
{
    int count = 1; /* the numbers of training */

    for (const storage_block *b = s->block; b != NULL; b = b->next)
        count += PIECES;
    return count;
}

static const staging *piece_at(const storage *s, int index)
{
    const storage_block *b = s->block;
    int slot = index % PIECES - 2;

    for (int before = index / PIECES; before > 0 && b != NULL; before--)
        b = b->next;
    return b == NULL ? &s->numbers : slot >= 0 ? &b->slot[slot] : slot == -1 ? &b->ema : &b->memory;
}

pons_status storage_fetch(const storage *s, pons_error *err)
{
    for (int i = 0; !s->newest->host && i < storage_piece_count(s); i++)
        if (staging_pull(s->device, piece_at(s, i), err) != PONS_OK)
            return err->status;
    s->newest->host = true;
    return PONS_OK;
}

pons_status storage_upload(storage *s, pons_error *err)
{
    for (int i = 0; !s->newest->device && i < storage_piece_count(s); i++)
        if (staging_push(s->device, piece_at(s, i), err) != PONS_OK)
            return err->status;
    s->newest->device = true;
    return PONS_OK;
}

void storage_device_writes(storage *s)
{
    s->newest->host = s->device->facts.host_memory;
}

/* Give the host the newest values, to read or write. They are NaN if the device does not answer. */
static void claim_for_host(const storage *s)
{
    pons_error ignored = PONS_ERROR_INIT;

    if (storage_fetch(s, &ignored) != PONS_OK)
        for (int i = 0; i < storage_piece_count(s); i++)
            memset(piece_at(s, i)->host, 0xff, piece_at(s, i)->size);
    *s->newest = (storage_newest){ s->device->facts.host_memory, true };
}

/* ---- names ----------------------------------------------------------------------------------- */

storage_entry *storage_find(const storage *s, storage_group group, const char *name)
{
    for (int i = 0; i < s->count[group]; i++)
        if (strcmp(s->entry[group][i]->tensor.name, name) == 0)
            return s->entry[group][i];
    return NULL;
}

static pons_status add_entry(storage *s, storage_group group, storage_entry *e, pons_error *err)
{
    if (s->count[group] == s->room[group]) {
        int room = s->room[group] ? 2 * s->room[group] : 64;
        storage_entry **entry = realloc(s->entry[group], (size_t)room * sizeof *entry);

        if (entry == NULL)
            return pons_fail(err, PONS_DEVICE, "out of memory for the table of parameters");
        s->entry[group] = entry;
        s->room[group] = room;
    }
    s->entry[group][s->count[group]++] = e;
    return PONS_OK;
}

static pons_status check_known(const storage_entry *e, const leaf *l, pons_error *err)
{
    char found[128], expected[128];

    if (shape_equal(e->tensor.shape, l->shape))
        return PONS_OK;
    return pons_fail(err, PONS_PLUGIN, "'%s' has shape %s in this build, expected %s as in the "
                     "first one", l->name, shape_text(l->shape, found, sizeof found),
                     shape_text(e->tensor.shape, expected, sizeof expected));
}

static storage_entry *make_entry(storage *s, storage_group group, const leaf *l, storage_block *b)
{
    storage_entry *e = arena_alloc(s->arena, sizeof *e);

    e->tensor = (storage_tensor){ arena_string(s->arena, l->name), group, l->role, l->shape, NULL };
    e->block = b;
    e->offset = b->elements;
    e->init = l->init;
    e->tensor_slot_index = b->count++;
    b->elements += round_up_i64(shape_count(l->shape), STORAGE_ALIGNMENT);
    return e;
}

static int count_blocks(const storage *s, storage_group group)
{
    int count = 0;

    for (const storage_block *b = s->block; b != NULL; b = b->next)
        count += b->group == group;
    return count;
}

/* Check all names before any is added, so that a refused build changes nothing. */
static pons_status check_group(const storage *s, storage_group group, const leaf *list,
                               bool training, pons_error *err)
{
    for (const leaf *l = list; l != NULL; l = l->next) {
        const storage_entry *e = storage_find(s, group, l->name);

        if (e == NULL && s->trained && !training)
            return pons_fail(err, PONS_PLUGIN, "'%s' is new in an evaluate build, expected the "
                             "names of the training build", l->name);
        if (e != NULL && check_known(e, l, err) != PONS_OK)
            return PONS_PLUGIN;
    }
    return PONS_OK;
}

/* Make one block for all new names of 'list'. */
static pons_status declare_group(storage *s, storage_group group, const leaf *list, pons_error *err)
{
    storage_block *b = arena_alloc(s->arena, sizeof *b);
    int first = s->count[group];

    b->group = group;
    b->index = count_blocks(s, group);
    for (const leaf *l = list; l != NULL; l = l->next)
        if (storage_find(s, group, l->name) == NULL
            && add_entry(s, group, make_entry(s, group, l, b), err) != PONS_OK)
            return PONS_DEVICE;
    if (b->count == 0)
        return PONS_OK;
    if (staging_new(s->device, (size_t)b->elements * s->real_size, &b->memory, err) != PONS_OK) {
        s->count[group] = first;
        return PONS_DEVICE;
    }
    for (int i = first; i < s->count[group]; i++) {
        storage_entry *e = s->entry[group][i];

        e->tensor.memory = b->memory.host + (size_t)e->offset * s->real_size;
    }
    *s->block_end = b;
    s->block_end = &b->next;
    return PONS_OK;
}

pons_status storage_declare(storage *s, const pons_graph *g, bool training, pons_error *err)
{
    pons_status status = check_group(s, STORAGE_PARAMETER, g->parameter, training, err);

    if (status == PONS_OK)
        status = check_group(s, STORAGE_STATE, g->state, training, err);
    if (status == PONS_OK)
        status = declare_group(s, STORAGE_PARAMETER, g->parameter, err);
    if (status == PONS_OK)
        status = declare_group(s, STORAGE_STATE, g->state, err);
    if (status == PONS_OK && training)
        s->trained = true;
    return status;
}

/* ---- slots and averages ---------------------------------------------------------------------- */

/* List one entry per tensor of the block for its averages (slot -1) or one slot. */
static pons_status list_copies(storage *s, storage_block *b, int slot, pons_error *err)
{
    storage_group group = slot < 0 ? STORAGE_EMA : STORAGE_SLOT;
    bool whole = slot < 0 || b->slots[slot].kind == PONS_SLOT_ELEMENT;
    char *memory = slot < 0 ? b->ema.host : b->slot[slot].host;

    for (int i = 0; i < s->count[STORAGE_PARAMETER]; i++) {
        const storage_entry *p = s->entry[STORAGE_PARAMETER][i];
        storage_entry *e;

        if (p->block != b)
            continue;
        e = arena_alloc(s->arena, sizeof *e);
        *e = *p;
        e->tensor.group = group;
        e->drawn = slot >= 0; /* slots are zeroed device memory */
        if (slot >= 0)
            e->tensor.name = arena_format(s->arena, "%s.%s", p->tensor.name, b->slots[slot].name);
        if (!whole)
            e->tensor.shape.rank = 0;
        e->tensor.memory = memory + (size_t)(whole ? p->offset : p->tensor_slot_index)
            * s->real_size;
        if (add_entry(s, group, e, err) != PONS_OK)
            return PONS_DEVICE;
    }
    return PONS_OK;
}

static int count_slots(const pons_slot *slots)
{
    int count = 0;

    while (slots[count].name != NULL)
        count++;
    return count;
}

pons_status storage_add_slots(storage *s, storage_block *b, const pons_slot *slots, unsigned used,
                              pons_error *err)
{
    int count = count_slots(slots);

    if (count > PONS_SLOTS_MAX)
        return pons_fail(err, PONS_PLUGIN, "the optimizer has %d slots, expected at most %d", count,
                         PONS_SLOTS_MAX);
    if (b->slots != NULL)
        return PONS_OK;
    b->slots = slots;
    for (int i = 0; i < count; i++) {
        if (!(used >> i & 1))
            continue;
        size_t numbers = (size_t)(slots[i].kind == PONS_SLOT_ELEMENT ? b->elements : b->count);
        if (staging_new(s->device, numbers * s->real_size, &b->slot[i], err) != PONS_OK
            || list_copies(s, b, i, err) != PONS_OK)
            return PONS_DEVICE;
    }
    return PONS_OK;
}

pons_status storage_add_ema(storage *s, storage_block *b, pons_error *err)
{
    size_t size = (size_t)b->elements * s->real_size;

    if (b->ema.size > 0)
        return PONS_OK;
    if (storage_fetch(s, err) != PONS_OK || staging_new(s->device, size, &b->ema, err) != PONS_OK)
        return PONS_DEVICE;
    claim_for_host(s);
    memcpy(b->ema.host, b->memory.host, size);
    return list_copies(s, b, -1, err);
}

/* ---- initial values -------------------------------------------------------------------------- */

static void draw_four(const pons_init *init, const uint32_t bits[4], double out[4])
{
    float normal[4];

    if (init->kind == PONS_INIT_NORMAL) {
        random_normal(bits[0], bits[1], normal);
        random_normal(bits[2], bits[3], normal + 2);
    }
    for (int i = 0; i < 4; i++) {
        float number = init->kind == PONS_INIT_CONSTANT ? 1
                     : init->kind == PONS_INIT_NORMAL ? normal[i]
                     : 2 * random_uniform(bits[i]) - 1;

        out[i] = (float)init->value * number;
    }
}

static void draw_entry(const storage *s, const storage_entry *e, uint64_t seed)
{
    int64_t count = shape_count(e->tensor.shape);
    char name[512];
    uint64_t stream;

    snprintf(name, sizeof name, "init:%s", e->tensor.name);
    stream = random_stream_hash(name);
    for (int64_t q = 0; 4 * q < count; q++) {
        uint32_t bits[4];
        double value[4];

        random_graph(seed, stream, 0, 0, (uint64_t)q, bits);
        draw_four(&e->init, bits, value);
        for (int64_t i = 4 * q; i < count && i < 4 * q + 4; i++)
            write_real(s, e->tensor.memory, i, value[i - 4 * q]);
    }
}

pons_status storage_initialise(storage *s, uint64_t seed, pons_error *err)
{
    static const storage_group drawn[] = { STORAGE_PARAMETER, STORAGE_STATE };

    if (storage_fetch(s, err) != PONS_OK)
        return err->status;
    claim_for_host(s);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < s->count[drawn[k]]; i++) {
            storage_entry *e = s->entry[drawn[k]][i];

            if (!e->drawn)
                draw_entry(s, e, seed);
            e->drawn = true;
        }
    for (int i = 0; i < s->count[STORAGE_EMA]; i++) {
        storage_entry *e = s->entry[STORAGE_EMA][i];

        if (!e->drawn)
            memcpy(e->tensor.memory, e->block->memory.host + (size_t)e->offset * s->real_size,
                   (size_t)shape_count(e->tensor.shape) * s->real_size);
        e->drawn = true;
    }
    s->version++;
    return PONS_OK;
}

storage_piece storage_piece_at(const storage *s, int index)
{
    const staging *m = piece_at(s, index);

    claim_for_host(s);
    return (storage_piece){ m->host, m->size };
}

void storage_changed(storage *s)
{
    s->version++;
}

void storage_copy(storage *to, const storage *from)
{
    for (int i = 0; i < storage_piece_count(from); i++) {
        storage_piece a = storage_piece_at(from, i);

        if (a.size > 0)
            memcpy(storage_piece_at(to, i).memory, a.memory, a.size);
    }
    for (int g = 0; g < STORAGE_GROUP_COUNT; g++)
        for (int i = 0; i < to->count[g]; i++)
            to->entry[g][i]->drawn = from->entry[g][i]->drawn;
    to->version++;
}

/* ---- reading --------------------------------------------------------------------------------- */

int storage_count(const storage *s, storage_group group)
{
    return s->count[group];
}

storage_tensor storage_item(const storage *s, storage_group group, int index)
{
    claim_for_host(s);
    return s->entry[group][index]->tensor;
}

pons_type storage_type(const storage *s)
{
    return s->real;
}

double storage_get(const storage *s, storage_number n)
{
    const void *numbers = s->numbers.host;

    claim_for_host(s);
    return s->real == PONS_F64 ? ((const double *)numbers)[n] : ((const float *)numbers)[n];
}

void storage_set(storage *s, storage_number n, double value)
{
    claim_for_host(s);
    write_real(s, s->numbers.host, n, value);
}

void storage_use_ema(storage *s, bool ema)
{
    if (s->ema == ema)
        return;
    s->ema = ema;
    s->layout++;
    s->version++;
}

/* ---- the shared arena ------------------------------------------------------------------------ */

void storage_request_work(storage *s, size_t size)
{
    if (size > s->work_wanted)
        s->work_wanted = size;
}

pons_status storage_allocate_work(storage *s, pons_error *err)
{
    void *work;

    if (s->work_wanted <= s->work_size)
        return PONS_OK;
    storage_release(s, s->work, s->work_size);
    s->work = NULL;
    s->work_size = 0;
    s->layout++;
    if (storage_allocate(s, s->work_wanted, &work, err) != PONS_OK)
        return PONS_DEVICE;
    s->work = work;
    s->work_size = s->work_wanted;
    return PONS_OK;
}
