/*
 * bind.c - write addresses into the flat array of calls (R15).
 *
 * Addresses change when the shared arena grows, when averages replace weights, and, with several
 * micro-batches a step, with the accumulation slot of the next one. The first two make captured
 * graphs invalid.
 */
#include "base/arena.h"
#include "graph/program/program_internal.h"

static char *slot_memory(const program *p, int slot)
{
    return p->grad_accum.memory + (size_t)slot * p->grad_accum.slot_size;
}

void *bind_address_of(const program *p, const program_tensor *t)
{
    const storage_block *b;
    size_t offset;

    switch (t->location) {
    case LOCATION_ENTRY:
        b = t->entry->block;
        offset = (size_t)t->entry->offset * p->storage->real_size;
        if (p->storage->ema && !p->training && b->ema.size > 0)
            return b->ema.device + offset;
        return b->memory.device + offset;
    case LOCATION_SCALE:
        return p->storage->numbers.device + STORAGE_SCALE * p->storage->real_size;
    case LOCATION_GRAD_ACCUM:
        return slot_memory(p, p->grad_accum.current_slot) + t->offset;
    case LOCATION_ARENA:
        return (char *)p->storage->work + p->layout.block[t->block].offset;
    default:
        return t->memory;
    }
}

/* Allocate the arrays of addresses, and the list of addresses that change with the slot. */
static void make_addresses(program *p)
{
    int room = 0;

    for (int k = 0; k < p->calls.count; k++) {
        program_call *c = p->calls.call + k;

        if (c->input == NULL || c->packs)
            continue;
        c->input_memory = arena_alloc(p->arena, (size_t)(c->request->input_count + 1)
                                                * sizeof *c->input_memory);
        c->output_memory = arena_alloc(p->arena, (size_t)(c->request->output_count + 1)
                                                 * sizeof *c->output_memory);
        room += c->request->input_count + c->request->output_count;
    }
    p->binding.relocation = arena_alloc(p->arena, (size_t)(room + 1) * sizeof(relocation));
}

static void set_address(program *p, void **address, void *memory)
{
    p->binding.moved |= *address != memory;
    *address = memory;
}

static void bind_tensor(program *p, const program_tensor *t, void **address)
{
    set_address(p, address, bind_address_of(p, t));
    if (t->location == LOCATION_GRAD_ACCUM)
        p->binding.relocation[p->binding.relocation_count++] = (relocation){ address, t->offset };
}

static char *block_memory(const program *p, int block)
{
    return (char *)p->storage->work + p->layout.block[block].offset;
}

static void bind_call(program *p, program_call *c)
{
    for (int i = 0; c->packs_first && i < PACKED_INPUTS; i++)
        if (c->pack_block[i] >= 0)
            c->packed[i] = block_memory(p, c->pack_block[i]);
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
    c->call.step_key = (const pons_step_key *)(p->layout.inputs + p->layout.step_key_offset);
    if (c->scratch >= 0)
        set_address(p, &c->call.scratch, block_memory(p, c->scratch));
}

pons_status bind_addresses(program *p, pons_error *err)
{
    if (storage_allocate_work(p->storage, err) != PONS_OK
        || storage_upload(p->storage, err) != PONS_OK)
        return PONS_DEVICE;
    if (p->binding.storage_layout == p->storage->layout)
        return PONS_OK;
    if (p->binding.relocation == NULL)
        make_addresses(p);
    p->binding.relocation_count = 0;
    for (int k = 0; k < p->calls.count; k++)
        bind_call(p, p->calls.call + k);
    if (p->binding.moved)
        captured_graphs_destroy(p);
    p->binding.moved = false;
    p->binding.storage_layout = p->storage->layout;
    return PONS_OK;
}

void bind_grad_slot(program *p, int slot)
{
    char *base = slot_memory(p, slot);

    if (slot == p->grad_accum.current_slot)
        return;
    p->grad_accum.current_slot = slot;
    for (int i = 0; i < p->binding.relocation_count; i++)
        *p->binding.relocation[i].address = base + p->binding.relocation[i].offset;
}
