/*
 * bytecode.h - what the writers of a pass's code share (bytecode*.c).
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_BYTECODE_BYTECODE_H
#define PLUGINS_DEVICES_CPU_MAP_BYTECODE_BYTECODE_H

#include "cpu/map/map_kernel.h"

enum { CODE_FOREVER = 1 << 30 };

typedef struct node_state {
    map_address place;    /* base -1: in the accumulator or nowhere                               */
    map_address wanted;   /* base -1, or where it must be kept                                    */
    int left;             /* times that it will still be read                                     */
    int strip;            /* of the strips that come and go, or -1                                */
    uint8_t span;         /* MAP_SPANS: new for every unit                                        */
    bool needed;
    bool even;            /* every vector of the machine holds the same lanes                     */
} node_state;

typedef struct code {
    map_plan *plan;
    map_pass *pass;
    const map_machine *machine;
    node_state *node;
    int *strip_of, *strip_free, strip_count, strip_free_count; /* home of each, in strips         */
    int code_room, slot_room;
    int accumulator;      /* the node in it, or -1                                                */
    int reading;          /* reads from the memory of inputs that are still to come               */
    bool *stored;         /* [store]                                                              */
    bool failed;
    map_instruction lost;
    map_slot lost_slot;
} code;

map_address code_in_buffers(size_t floats, map_walk walk);
/* Memory of the worker's buffers. */
size_t code_floats(code *c, size_t count);
map_instruction *code_put(code *c, map_code operation);
/* Where an operand begins, for each tile. */
map_address code_slot(code *c, const map_access *access, int channel, bool output);
const map_access *code_access(const code *c, int n);
bool code_is_load(const code *c, int n);
/* Read by the machine itself, where it lies. */
bool code_is_dense(const code *c, int n, pons_type type);
/* Groups of lanes that the machine itself reads and writes. */
bool code_is_groups(const map_access *access);
/* Two channels beside each other, of which the machine reads each by itself. */
bool code_is_pair(const map_access *access);
/* It goes on from unit to unit, so that it can be asked for ahead. */
bool code_fetches(const map_access *access);
bool code_placed(const code *c, int n);
bool code_ready(const code *c, int n);
void code_read_done(code *c, int n);
void code_leave(code *c);

/* Moments of what is loaded, or of that and a number that stays, which are taken by cycle. */
bool code_is_whole(const code *c, const map_reduce *r);
/* A read that will not be, since something else does what it was for. */
void code_drop(code *c, int n);

/* bytecode_node.c: compute a node; get it into the accumulator, or to a place */
void code_make(code *c, int n);
void code_bring(code *c, int n);
void code_to_memory(code *c, int n);

/* bytecode_output.c: what is done with a node while it is in the accumulator */
void code_reduce(code *c, int n);
void code_store_early(code *c, int n);
void code_main(code *c);
/* Channels of what is stored, or 1. */
int code_store_rows(const code *c, const pons_store *store);

#endif
