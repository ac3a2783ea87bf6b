/*
 * reference_internal.h - functions that several files of the reference device share.
 *
 * Kernel bodies (*_body.h) are compiled twice, with REAL as float and as double. All kernels but
 * the map kernel read inputs as REAL and write their output in double; reference.c converts.
 */
#ifndef CORE_GRAPH_REFERENCE_REFERENCE_INTERNAL_H
#define CORE_GRAPH_REFERENCE_REFERENCE_INTERNAL_H

#include "graph/ir/shape.h"

/* A kernel of one node. 'in' is REAL; 'out' holds zeros and receives output 0 in double. */
typedef void (*reference_plain)(const pons_request *r, const void *const *in, double *out);

typedef struct reference_kernels {
    size_t real_size;
    pons_type real_type;
    reference_plain plain[PONS_KERNEL_KIND_COUNT]; /* NULL for MAP                                */
    void (*map)(const pons_request *r, const pons_call *call);
    size_t (*map_scratch)(const pons_map *m);
} reference_kernels;

extern const reference_kernels reference_float, reference_double;

/* reference_op.c: run a plugin's function, with copies of tensors of another type. */
size_t reference_op_scratch(const reference_kernels *k, const pons_request *r);
void reference_op_run(const reference_kernels *k, const pons_request *r, const pons_call *call);

/*
 * reference_patch.c: cut patches out of resident cases, draw their normal numbers, accumulate
 * patches. No scratch memory.
 */
void reference_patch_run(const pons_request *r, const pons_call *call);

/* reference_number.c: read and write one number of any type. */
double number_load(pons_type type, const void *memory, int64_t index);
void number_store(pons_type type, void *memory, int64_t index, double value);

/* reference_index.c: positions in tensors. */
bool index_next(pons_shape s, int64_t *position);      /* row-major; false behind the last        */
int64_t index_of(pons_shape s, const int64_t *position);
/* The source of element 'i' of 'm' along an axis of 'n': two neighbours and the second's weight. */
void resize_source(pons_resize_mode mode, int64_t i, int64_t n, int64_t m, int64_t neighbour[2],
                   double *second);
/* The source of element 'i' of a padded axis; -1: a zero. 'n' is the extent before padding. */
int64_t pad_source(pons_pad_mode mode, int64_t i, int64_t low, int64_t step, int64_t n);
/* Begin and end of a pooling window inside the image, and its size with padding. */
int64_t pool_window(const pons_pool *p, int axis, int64_t i, int64_t n, int64_t *begin,
                    int64_t *end);

#endif
