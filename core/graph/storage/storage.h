/*
 * storage.h - the memory of one replica that programs share and that outlives a step.
 *
 * It holds parameters, states, optimizer slots and averages (EMA), all by name, in flat buffers
 * (R17).
 *
 * A build with new names adds one block for its new parameters and one for its new states. A block
 * never moves. Inside a block every tensor begins at a multiple of STORAGE_ALIGNMENT elements; the
 * elements between tensors are 0. Averages and element slots have the layout of their block.
 */
#ifndef CORE_GRAPH_STORAGE_STORAGE_H
#define CORE_GRAPH_STORAGE_STORAGE_H

#include <pons/graph.h>
#include <pons/optimizer.h>

#include "graph/storage/staging.h"

typedef struct storage storage;

pons_status storage_new(const device *d, storage **out, pons_error *err);
void storage_free(storage *s);
/* Draw initial values for all tensors that no checkpoint has filled (R29). */
pons_status storage_initialise(storage *s, uint64_t seed, pons_error *err);

typedef enum storage_group {
    STORAGE_PARAMETER = 0, STORAGE_STATE, STORAGE_SLOT, STORAGE_EMA, STORAGE_GROUP_COUNT
} storage_group;

/* One named tensor, for checkpoints and tests. A slot is named 'PARAMETER.SLOT'. */
typedef struct storage_tensor {
    const char *name;
    storage_group group;
    pons_role role;
    pons_shape shape;         /* internal order: [O, kD, kH, kW, I]                               */
    /*
     * Dense f32 (f64 on a wide reference device) in host memory, with the newest values until a
     * program runs.
     */
    void *memory;
} storage_tensor;

int storage_count(const storage *s, storage_group group);
storage_tensor storage_item(const storage *s, storage_group group, int index);
/*
 * Fetch the newest values from the device. The functions below do it too, but cannot report a
 * failure: tensors are NaN then.
 */
pons_status storage_fetch(const storage *s, pons_error *err);
pons_type storage_type(const storage *s); /* of every tensor: f32, f64 on a wide device */
/* Numbers of training in device memory (R9). */
typedef enum storage_number {
    STORAGE_APPLIED = 0,      /* applied updates (p->step)                                        */
    STORAGE_SCALE,            /* fp16: factor of the loss in front of the backward pass           */
    STORAGE_FINITE_STEPS,     /* fp16: applied updates since the scale last changed               */
    STORAGE_NUMBER_COUNT
} storage_number;
double storage_get(const storage *s, storage_number n); /* NaN: the device does not answer        */
void storage_set(storage *s, storage_number n, double value);
/* Let evaluate programs read the averages, or the weights again (validation). */
void storage_use_ema(storage *s, bool ema);
/*
 * The memory of the whole storage, in pieces of which some are empty. Replicas built by the same
 * programs have the same pieces.
 */
typedef struct storage_piece {
    void *memory;
    size_t size;
} storage_piece;
int storage_piece_count(const storage *s);
storage_piece storage_piece_at(const storage *s, int index);
void storage_changed(storage *s); /* after a write to its pieces                                  */
/* Copy all values of 'from', which the same programs have built on an equal device. */
void storage_copy(storage *to, const storage *from);

/* ---- for programs and the update section ----------------------------------------------------- */

enum { STORAGE_ALIGNMENT = 64 }; /* elements */

typedef struct storage_block {
    struct storage_block *next;
    storage_group group;             /* PARAMETER or STATE                                        */
    int index;                       /* number among the blocks of its group                      */
    int count;                       /* tensors                                                   */
    int64_t elements;
    staging memory;
    staging ema;                     /* parameters: empty until a program asks for averages       */
    const pons_slot *slots;          /* parameters: NULL until a program has an optimizer         */
    /* Per slot: a number per element; or per parameter, at tensor_slot_index. */
    staging slot[PONS_SLOTS_MAX];
} storage_block;

typedef struct storage_entry {
    storage_tensor tensor;
    storage_block *block;
    int64_t offset;                  /* elements, in its block                                    */
    pons_init init;
    bool drawn;                      /* the tensor has its initial value                          */
    /* Index in tensor slots; parameters of one class are neighbours. */
    int tensor_slot_index;
} storage_entry;

/* The sides that have the newest values. */
typedef struct storage_newest {
    bool device, host;
} storage_newest;

struct storage {
    const device *device;
    struct arena *arena;
    pons_type real;                  /* type of all tensors                                       */
    size_t real_size;
    storage_block *block, **block_end;
    int count[STORAGE_GROUP_COUNT], room[STORAGE_GROUP_COUNT];
    storage_entry **entry[STORAGE_GROUP_COUNT];
    bool trained;                    /* a training program has been built                         */
    staging numbers;                 /* by storage_number                                         */
    storage_newest *newest;
    bool ema;                        /* evaluate programs read the averages                       */
    uint64_t version;                /* changes when weights may have changed                     */
    void *work;                      /* the arena that programs share                             */
    size_t work_size, work_wanted;
    uint64_t layout;                 /* changes when programs must bind addresses again           */
};

/* Copy to the device what the host may have written, before a program reads it. */
pons_status storage_upload(storage *s, pons_error *err);
/* Note that a program writes on the device. */
void storage_device_writes(storage *s);

storage_entry *storage_find(const storage *s, storage_group group, const char *name);
/* Give every parameter and state of 'g' its memory (R16). */
pons_status storage_declare(storage *s, const pons_graph *g, bool training, pons_error *err);
/*
 * Add the slots in the set 'used' for the parameters of 'block', whose tensor slot indices are set.
 */
pons_status storage_add_slots(storage *s, storage_block *block, const pons_slot *slots,
                              unsigned used, pons_error *err);
pons_status storage_add_ema(storage *s, storage_block *block, pons_error *err);
/* Request an arena of 'size' bytes; storage_allocate_work allocates it when a program next runs. */
void storage_request_work(storage *s, size_t size);
pons_status storage_allocate_work(storage *s, pons_error *err);
/* Allocate 'size' bytes of device memory. */
pons_status storage_allocate(const storage *s, size_t size, void **memory, pons_error *err);
void storage_release(const storage *s, void *memory, size_t size);

#endif
