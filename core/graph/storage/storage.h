/*
 * storage.h - the memory of one replica that programs share: what lives longer than a step.
 *
 * Parameters, states, optimizer slots and EMA, all by name, in flat buffers (R17).
 *
 * A build that brings new names adds one block for its new parameters and one for its new states.
 * A block never moves. Inside a block every tensor begins at a multiple of STORAGE_ALIGNMENT
 * elements; the elements between tensors are 0. Averages and element slots of a block repeat its
 * layout.
 */
#ifndef CORE_GRAPH_STORAGE_STORAGE_H
#define CORE_GRAPH_STORAGE_STORAGE_H

#include <pons/graph.h>
#include <pons/optimizer.h>

#include "graph/storage/staging.h"

typedef struct storage storage;

pons_status storage_new(const device *d, storage **out, pons_error *err);
void storage_free(storage *s);
/* Draw initial values of everything that no checkpoint has filled (R29). */
pons_status storage_initialise(storage *s, uint64_t seed, pons_error *err);

typedef enum storage_group {
    STORAGE_PARAMETER = 0, STORAGE_STATE, STORAGE_SLOT, STORAGE_EMA, STORAGE_GROUP_COUNT
} storage_group;

/* One named tensor, for checkpoints and tests. Slots are named 'PARAMETER.SLOT'. */
typedef struct storage_tensor {
    const char *name;
    storage_group group;
    pons_role role;
    pons_shape shape;         /* internal order: [O, kD, kH, kW, I]                               */
    void *memory;             /* f32 (f64 on a wide reference device), dense; host memory, which  */
                              /* holds the newest values until a program runs                     */
} storage_tensor;

int storage_count(const storage *s, storage_group group);
storage_tensor storage_item(const storage *s, storage_group group, int index);
/*
 * Look for the newest values on the device; what follows does it too, but cannot say why it did not
 * work: then tensors are NaN.
 */
pons_status storage_fetch(const storage *s, pons_error *err);
pons_type storage_type(const storage *s); /* of every tensor: f32, f64 on a wide device */
/* Device state of the update section (R9). */
typedef enum storage_number {
    STORAGE_APPLIED = 0,      /* updates applied (p->step)                                        */
    STORAGE_SCALE,            /* fp16: what the loss is multiplied by where gradients begin       */
    STORAGE_SOUND,            /* fp16: updates applied since the scale has changed                */
    STORAGE_NUMBER_COUNT
} storage_number;
double storage_get(const storage *s, storage_number n); /* NaN: the device does not answer        */
void storage_set(storage *s, storage_number n, double value);
/* Let programs read the averages instead of the weights, or the weights again (validation). */
void storage_use_ema(storage *s, bool ema);
/*
 * The memory of everything that it holds, in pieces; some are empty. Replicas that were built by
 * the same programs have the same pieces.
 */
typedef struct storage_piece {
    void *memory;
    size_t size;
} storage_piece;
int storage_piece_count(const storage *s);
storage_piece storage_piece_at(const storage *s, int index);
void storage_changed(storage *s); /* after its pieces were written from outside                  */
/* Everything that 'from' holds, which was built by the same programs on a device alike. */
void storage_copy(storage *to, const storage *from);
/* Set the averages to the weights (after pretrained weights were read). */
void storage_restart_ema(storage *s);

/* ---- for programs and the update section ----------------------------------------------------- */

enum { STORAGE_ALIGNMENT = 64 }; /* elements */

typedef struct storage_block {
    struct storage_block *next;
    storage_group group;             /* PARAMETER or STATE                                        */
    int index;                       /* among the blocks of its group                             */
    int count;                       /* tensors                                                   */
    int64_t elements;
    mirror memory;
    mirror ema;                      /* parameters: empty before a program asks for averages      */
    const pons_slot *slots;          /* parameters: NULL before a program brings an optimizer     */
    mirror slot[PONS_SLOTS_MAX];     /* element slots; tensor slots: one number per parameter, at */
} storage_block;                     /* entry->place                                              */

typedef struct storage_entry {
    storage_tensor tensor;
    storage_block *block;
    int64_t offset;                  /* elements, in its block                                    */
    pons_init init;
    bool drawn;                      /* has its initial value                                     */
    int place;                       /* in tensor slots: parameters of one class side by side     */
} storage_entry;

/* Who has the newest values: the device, the host, both. */
typedef struct storage_newest {
    bool device, host;
} storage_newest;

struct storage {
    const device *device;
    struct arena *arena;
    pons_type real;                  /* of everything stored                                      */
    size_t real_size;
    storage_block *block, **block_end;
    int count[STORAGE_GROUP_COUNT], room[STORAGE_GROUP_COUNT];
    storage_entry **entry[STORAGE_GROUP_COUNT];
    bool trained;                    /* a training program has been built                         */
    mirror numbers;                  /* by storage_number                                         */
    storage_newest *newest;
    bool ema;                        /* evaluate programs read the averages                       */
    uint64_t version;                /* changes whenever weights may have                         */
    void *work;                      /* the arena that programs share                             */
    size_t work_size, work_wanted;
    uint64_t layout;                 /* changes whenever programs have to be bound again          */
};

/* Before a program reads on the device what the host may have written. */
pons_status storage_give(storage *s, pons_error *err);
/* A program writes on the device. */
void storage_lose(storage *s);

storage_entry *storage_find(const storage *s, storage_group group, const char *name);
/* Give every parameter and state of 'g' its memory (R16). */
pons_status storage_declare(storage *s, const pons_graph *g, bool training, pons_error *err);
/* The slots in the set 'used' for the parameters of 'block'; its entries' places have been set. */
pons_status storage_add_slots(storage *s, storage_block *block, const pons_slot *slots,
                              unsigned used, pons_error *err);
pons_status storage_add_ema(storage *s, storage_block *block, pons_error *err);
/* The arena shall have 'size' bytes when a program runs next; taken by storage_take_work. */
void storage_want_work(storage *s, size_t size);
pons_status storage_take_work(storage *s, pons_error *err);
/* Device memory for 'count' numbers. */
pons_status storage_allocate(const storage *s, size_t size, void **memory, pons_error *err);
void storage_release(const storage *s, void *memory, size_t size);

#endif
