/*
 * bind.c - addresses into the flat array of calls (R15).
 *
 * Addresses change when the shared arena grew, when averages take the place of weights, and, with
 * several micro-batches a step, with the fold set that the next one writes. What a device has
 * recorded holds no more after the former two.
 */
#include "base/arena.h"
#include "graph/program/program_internal.h"

void *program_address(const program *p, const program_tensor *t)
{
    const storage_block *b;
    size_t offset;

    switch (t->kind) {
    case PLACE_ENTRY:
        b = t->entry->block;
        offset = (size_t)t->entry->offset * p->storage->real_size;
        if (p->storage->ema && !p->training && b->ema.size > 0)
            return b->ema.device + offset;
        return b->memory.device + offset;
    case PLACE_SCALE:
        return p->storage->numbers.device + STORAGE_SCALE * p->storage->real_size;
    case PLACE_FOLD:
        return p->fold + (size_t)p->landing * p->fold_size + t->offset;
    case PLACE_ARENA:
        return (char *)p->storage->work + p->block[t->block].offset;
    default:
        return t->memory;
    }
}

/* Arrays of addresses, once; with several fold sets also the list of what moves with them. */
static void make_addresses(program *p)
{
    int room = 0;

    for (int k = 0; k < p->call_count; k++) {
        program_call *c = p->call + k;

        if (c->input == NULL || c->packs)
            continue;
        c->input_memory = arena_alloc(p->arena, (size_t)(c->request->input_count + 1)
                                                * sizeof *c->input_memory);
        c->output_memory = arena_alloc(p->arena, (size_t)(c->request->output_count + 1)
                                                 * sizeof *c->output_memory);
        room += c->request->input_count + c->request->output_count;
    }
    p->relocation = arena_alloc(p->arena, (size_t)(room + 1) * sizeof *p->relocation);
}

static void set_address(program *p, void **address, void *memory)
{
    p->moved |= *address != memory;
    *address = memory;
}

static void bind_tensor(program *p, const program_tensor *t, void **address)
{
    set_address(p, address, program_address(p, t));
    if (t->kind == PLACE_FOLD)
        p->relocation[p->relocation_count++] = (relocation){ address, t->offset };
}

static void bind_call(program *p, program_call *c)
{
    for (int i = 0; c->input != NULL && i < c->request->input_count; i++) {
        if (c->packed != NULL && c->packed[i] != NULL)
            set_address(p, c->input_memory + i, c->packed[i]);
        else
            bind_tensor(p, c->input[i], c->input_memory + i);
    }
    for (int i = 0; c->output != NULL && i < c->request->output_count; i++)
        bind_tensor(p, c->output[i], c->output_memory + i);
    c->call.input = c->input_memory;
    c->call.output = c->output_memory;
    c->call.step_key = (const pons_step_key *)(p->inputs + p->step_key_offset);
    if (c->scratch >= 0)
        set_address(p, &c->call.scratch,
                    (char *)p->storage->work + p->block[c->scratch].offset);
}

pons_status program_bind(program *p, pons_error *err)
{
    if (storage_take_work(p->storage, err) != PONS_OK || storage_give(p->storage, err) != PONS_OK)
        return PONS_DEVICE;
    if (p->layout == p->storage->layout)
        return PONS_OK;
    if (p->relocation == NULL)
        make_addresses(p);
    p->relocation_count = 0;
    for (int k = 0; k < p->call_count; k++)
        bind_call(p, p->call + k);
    if (p->moved)
        program_forget_segments(p);
    p->moved = false;
    p->layout = p->storage->layout;
    return PONS_OK;
}

void program_land(program *p, int set)
{
    char *base = p->fold + (size_t)set * p->fold_size;

    if (set == p->landing)
        return;
    p->landing = set;
    for (int i = 0; i < p->relocation_count; i++)
        *p->relocation[i].address = base + p->relocation[i].offset;
}
