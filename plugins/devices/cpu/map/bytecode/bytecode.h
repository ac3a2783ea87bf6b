/*
 * bytecode.h - declarations shared by the bytecode generator (bytecode*.c).
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_BYTECODE_BYTECODE_H
#define PLUGINS_DEVICES_CPU_MAP_BYTECODE_BYTECODE_H

#include "cpu/map/map_internal.h"

enum { BYTECODE_FOREVER = 1 << 30 };

typedef struct node_state {
    map_address place;    /* address; base -1: in the accumulator or nowhere                      */
    map_address wanted;   /* required address, or base -1                                         */
    int left;             /* reads that are still to come                                         */
    int strip;            /* index of its temporary strip, or -1                                  */
    uint8_t span;         /* map_span; MAP_SPANS: computed for every unit                         */
    bool needed;
    bool even;            /* every vector has the same lanes                                      */
} node_state;

typedef struct code {
    map_plan *plan;
    map_pass *pass;
    const map_machine *machine;
    node_state *node;
    /* offset of each strip, in MAP_ROW floats */
    int *strip_of, *strip_free, strip_count, strip_free_count;
    int code_room, slot_room;
    int accumulator;      /* node in the accumulator, or -1                                       */
    int reading;          /* reads of input memory that are still to come                         */
    bool *stored;         /* [store_count] already stored                                         */
    bool failed;
    map_instruction lost;
    map_slot lost_slot;
} code;

map_address bytecode_in_buffers(size_t floats, map_addressing addressing);
/* Reserve 'count' floats of the worker's buffers; returns their offset in floats. */
size_t bytecode_floats(code *c, size_t count);
map_instruction *bytecode_put(code *c, map_code operation);
/* The address of an operand, which each tile sets. */
map_address bytecode_slot(code *c, const map_access *access, int channel, bool output);
const map_access *bytecode_access(const code *c, int n);
bool bytecode_is_load(const code *c, int n);
/* True if an instruction reads the node at its own address. */
bool bytecode_is_dense(const code *c, int n, pons_type type);
/* True for groups of lanes that instructions read and write. */
bool bytecode_is_groups(const map_access *access);
/* True for two interleaved channels, each with a load instruction of its own. */
bool bytecode_is_interleaved2(const map_access *access);
/* True if the next unit follows at a known address, so that it can be prefetched. */
bool bytecode_prefetches(const map_access *access);
bool bytecode_placed(const code *c, int n);
bool bytecode_ready(const code *c, int n);
void bytecode_read_done(code *c, int n);
void bytecode_leave(code *c);

/* True for moments of a load, or of a load plus an invariant value, that are computed by cycle. */
bool bytecode_is_by_cycle(const code *c, const map_reduce *r);
/* Remove a read that another instruction replaces. */
void bytecode_drop(code *c, int n);

/* bytecode_node.c: compute a node; bring it to the accumulator; bring it to memory */
void bytecode_make_node(code *c, int n);
void bytecode_bring(code *c, int n);
void bytecode_to_memory(code *c, int n);

/*
 * bytecode_output.c: reductions and stores of a node that is in the accumulator; the main program
 */
void bytecode_reduce(code *c, int n);
void bytecode_store_early(code *c, int n);
void bytecode_main(code *c);
/* Channels of a store, or 1. */
int bytecode_store_rows(const code *c, const pons_store *store);

#endif
