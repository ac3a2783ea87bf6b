/*
 * device.h - a device plugin: memory, and one prepared kernel for each request of the compiler.
 *
 * The compiler turns a graph into requests. For each the device makes a kernel once ('prepare', may
 * be slow) and runs it thousands of times ('run', allocates nothing). A request that the device
 * declines runs on the core's reference kernel, for which memory that is not host memory is copied
 * there and back.
 *
 * Kinds of requests: MAP is any fused group of pointwise nodes and reductions, described by a
 * pons_map; every other kind is one node of the graph, described by its attributes.
 */
#ifndef CORE_PONS_DEVICE_H
#define CORE_PONS_DEVICE_H

#include <pons/graph.h>

/* ---- map programs ---------------------------------------------------------------------------- */

/*
 * An index space of at most six axes, the last one innermost, and values computed at each of its
 * points. Values are numbered; a value's arguments have smaller numbers. The compiler has collapsed
 * axes where every operand allows it.
 *
 * Linear form (channels = 0): every value exists at every point.
 * Channel form (channels = C > 0; C is then the extent of the last axis, at most 64): a value is
 * wide (one number per channel) or narrow (one number per point of the axes before the last);
 * CHANNEL_* turn wide into narrow, and a narrow argument beside a wide one is repeated.
 *
 * Ragged form (segment_count > 0): the space is [segment][element], where segment s has
 * segment_length[s] elements that begin at element segment_start[s] of the flat buffers. Then an
 * operand is per element (PONS_INDEX_ELEMENT), per segment (number s of a dense table) or a single
 * number; axis_count is 1, extent[0] the sum of the lengths, strides are not read. Stores are per
 * element; a reduction is per segment or over everything (PONS_INDEX_SCALAR). Segments ascend and
 * do not overlap.
 *
 * In place: in a request whose outputs may share memory with inputs (the update section's, where a
 * parameter is read and written) both are the same element at the same point, so a kernel that
 * loads a tile before it stores that tile is right.
 */
enum {
    PONS_VALUE_LOAD = PONS_MAP_OPERATION_COUNT, /* operand                                        */
    PONS_VALUE_CONSTANT,                        /* number                                         */
    PONS_VALUE_IOTA,            /* (linear index / divisor) % modulus, over the whole space       */
    PONS_VALUE_UNIFORM,         /* R5: counter (stream, step, micro-batch, linear index / 4)      */
    PONS_VALUE_NORMAL,
    PONS_VALUE_CHANNEL_SUM,     /* channel form: a (wide) -> narrow                               */
    PONS_VALUE_CHANNEL_MAX,     /* NaN if one of them is                                          */
    PONS_VALUE_CHANNEL_MIN,
    PONS_VALUE_CHANNEL_ARG_MAX, /* index of the first largest                                     */
    PONS_VALUE_COUNT
};

#define PONS_MAP_AXES PONS_RANK_MAX

typedef enum pons_index_space {
    PONS_INDEX_SPACE = 0, /* 'stride' says                                                        */
    PONS_INDEX_ELEMENT,   /* ragged form                                                          */
    PONS_INDEX_SEGMENT,
    PONS_INDEX_SCALAR    /* one number                                                           */
} pons_index_space;

/*
 * Where in memory a value is read or written. Numbers are converted from and to f32; to u8 and i32
 * they are cut towards zero and clamped to the type's range (NaN gives 0).
 */
typedef struct pons_operand {
    int tensor;                     /* index among the request's inputs, or among its outputs     */
    pons_type type;
    pons_index_space index;
    int64_t offset;                 /* elements into the tensor (slice of a concatenation)        */
    int64_t stride[PONS_MAP_AXES];  /* elements; 0: repeated along that axis                      */
} pons_operand;

typedef struct pons_value {
    uint16_t operation;       /* pons_map_operation or PONS_VALUE_*                               */
    uint8_t narrow;           /* channel form                                                     */
    uint8_t argument_count;
    int argument[3];          /* value numbers                                                    */
    int operand;              /* LOAD: index into 'load'                                          */
    double number;            /* CONSTANT                                                         */
    uint64_t stream;          /* UNIFORM, NORMAL                                                  */
    int64_t divisor, modulus; /* IOTA                                                             */
} pons_value;

/* A value stored at every point (narrow: at every point before the last axis). */
typedef struct pons_store {
    int value;
    pons_operand to;
} pons_store;

typedef enum pons_reduction_kind {
    PONS_REDUCE_SUM = 1,
    PONS_REDUCE_MAX,
    PONS_REDUCE_MIN,
    PONS_REDUCE_MOMENTS /* writes mean to to[0] and biased variance to to[1]                      */
} pons_reduction_kind;

/* A value reduced over the axes along which to[0].stride is 0. */
typedef struct pons_reduction {
    pons_reduction_kind kind;
    int value;
    int groups;        /* MOMENTS: merge the last kept axis in that many groups, repeat; 0: no    */
    pons_operand to[2];
} pons_reduction;

typedef struct pons_map {
    int axis_count;
    int64_t extent[PONS_MAP_AXES];
    int channels;
    int64_t segment_count;
    const int64_t *segment_start, *segment_length; /* live as long as the program                 */
    int load_count, value_count, store_count, reduction_count;
    const pons_operand *load;
    const pons_value *value;
    const pons_store *store;
    const pons_reduction *reduction;
} pons_map;

/* ---- requests -------------------------------------------------------------------------------- */

typedef enum pons_kernel_kind {
    PONS_KERNEL_MAP = 1,               /* attributes: pons_map                                    */
    PONS_KERNEL_CONVOLUTION,           /* x, w -> y; pons_convolution                             */
    PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT,  /* y, w -> x                                         */
    PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT, /* x, y -> w (f32)                                   */
    PONS_KERNEL_MATMUL,                /* a, b; pons_matmul_attributes                            */
    PONS_KERNEL_POOL,                  /* x; pons_pool                                            */
    PONS_KERNEL_POOL_GRADIENT,         /* x, y's gradient -> x's gradient; pons_pool (mean: x is  */
                                       /* not read)                                               */
    PONS_KERNEL_RESIZE,                /* x; pons_resize_attributes                               */
    PONS_KERNEL_RESIZE_GRADIENT,       /* y's gradient -> x's gradient                            */
    PONS_KERNEL_TRANSPOSE,             /* pons_transpose_attributes                               */
    PONS_KERNEL_FLIP,                  /* pons_flip_attributes                                    */
    PONS_KERNEL_CROP,                  /* pons_crop_attributes                                    */
    PONS_KERNEL_PAD,                   /* pons_pad_attributes                                     */
    PONS_KERNEL_PAD_GRADIENT,          /* edge and reflect: every source sums its copies          */
    PONS_KERNEL_CONCATENATE,           /* n inputs; pons_axis_attributes                          */
    PONS_KERNEL_GATHER,                /* x, index; pons_axis_attributes                          */
    PONS_KERNEL_ARG_MAX,               /* pons_axis_attributes                                    */
    PONS_KERNEL_REDUCE_MINMAX_GRADIENT, /* x, y's gradient -> x's gradient, to the first extreme; */
                                       /* pons_minmax_attributes                                 */
    PONS_KERNEL_COPY,                  /* same shape; converts the type                           */
    PONS_KERNEL_ALL_REDUCE,            /* x; pons_all_reduce_attributes. Programs of several      */
                                       /* replicas do it by their communicator, not by a device   */
    PONS_KERNEL_OP,                    /* pons_op_attributes; a device that declines it and has   */
                                       /* host memory leaves it to the plugin's function          */
    PONS_KERNEL_PATCH,                 /* held cases, place -> [N, D, H, W, C], see PONS_PATCH_*  */
    PONS_KERNEL_PATCH_NORMAL,          /* key, i32 [N, 3] -> [N, D, H, W, C], see below           */
    PONS_KERNEL_PATCH_ACCUMULATE,      /* held sums, place, weight, x -> the held sums, see below */
    PONS_KERNEL_KIND_COUNT
} pons_kernel_kind;

typedef struct pons_matmul_attributes { bool transpose_a, transpose_b; } pons_matmul_attributes;
typedef struct pons_resize_attributes { pons_resize_mode mode; } pons_resize_attributes;
typedef struct pons_transpose_attributes { int order[PONS_RANK_MAX]; } pons_transpose_attributes;
typedef struct pons_flip_attributes { unsigned axes; } pons_flip_attributes;
typedef struct pons_crop_attributes {
    int64_t start[PONS_RANK_MAX], step[PONS_RANK_MAX];
} pons_crop_attributes;
/* ZERO may spread the input: input element i lands at low + i * step. */
typedef struct pons_pad_attributes {
    pons_pad_mode mode;
    int64_t low[PONS_RANK_MAX], high[PONS_RANK_MAX], step[PONS_RANK_MAX];
} pons_pad_attributes;
typedef struct pons_axis_attributes { int axis; } pons_axis_attributes;
typedef struct pons_minmax_attributes { unsigned axes; bool minimum; } pons_minmax_attributes;

/* One sum is two requests: its start takes x, its wait takes what the start has begun. */
typedef struct pons_all_reduce_attributes {
    enum { PONS_ALL_REDUCE_WHOLE = 0, PONS_ALL_REDUCE_START, PONS_ALL_REDUCE_WAIT } part;
    int index; /* of the sum in its program                                                       */
} pons_all_reduce_attributes;

/*
 * PATCH cuts N patches out of preprocessed cases. Input 0 are bytes that a device holds, as many as
 * there are (its tensor tells of one). Input 1, i32 [N, PONS_PATCH_PLACE + D + H + W], has a row
 * for each patch: the numbers below, then one for each place along D, along H and along W. The sum
 * of three is a voxel of the case; where one of them is below 0 there is none, and the patch is 0.
 * The output, f32 or u8, has C values of each voxel, which lie beside each other in the case.
 */
enum {
    PONS_PATCH_VALUES = 0,  /* where the case begins, in units of PONS_PATCH_UNIT bytes           */
    PONS_PATCH_TABLE,       /* a table of f32, likewise                                           */
    PONS_PATCH_CODE_SIZE,   /* 1 or 2 (f32 only): the case has whole numbers of so many bytes,    */
                            /* and the table the values; else it has the values themselves        */
    PONS_PATCH_PLACE,
    PONS_PATCH_UNIT = 64
};

/*
 * PATCH_NORMAL: what pons_voxel_normals (transform.h) has for all elements of a patch under a key
 * of its own. A row of input 0 is the key's low half, its high half, and 0 where the patch needs
 * none: it is 0 then.
 */
enum { PONS_PATCH_KEY_LOW = 0, PONS_PATCH_KEY_HIGH, PONS_PATCH_KEY_WANTED, PONS_PATCH_KEY_SIZE };

/*
 * PATCH_ADD adds N patches, one after the other, to f32 sums that a device holds. Input 0 are bytes
 * as those of PATCH; the output is the same memory. Input 1, i32 [N, PONS_PATCH_PLACE + 2 (D + H +
 * W)], has PATCH's row for each patch, which says where its voxels' C sums are, and none twice;
 * then for each place along D, H and W 1 or 0: where all three are 1 the voxel is new, and what
 * lies there counts as 0. Inputs 2 and 3 are the weights [D, H, W] and x [N, D, H, W, C]:
 *
 *     sum = sum + weight x        f32; the product is rounded, then the sum
 */

/* A plugin's op (op.h) with its options. */
typedef struct pons_op_attributes {
    const char *name;
    const struct pons_op_operations *operations;
    const void *config;
} pons_op_attributes;

typedef struct pons_request {
    pons_kernel_kind kind;
    const char *name;                  /* for messages and profiles                               */
    int input_count, output_count;
    const pons_tensor *input, *output; /* dense, row-major                                        */
    const void *attributes;            /* by kind                                                 */
    uint32_t packable;                 /* bit i: input i is a weight that may be packed once a    */
                                       /* step, see pons_kernel.pack                              */
    bool tf32;                         /* f32 inputs may be rounded to tf32, 10 bits behind the   */
                                       /* point, where they are multiplied                        */
} pons_request;

/* What changes from run to run besides memory; as the kernels read it. */
typedef struct pons_step_key {
    uint64_t seed, step, micro_batch;
} pons_step_key;

typedef struct pons_call {
    void *const *input;   /* in the request's order; packed inputs in the kernel's layout         */
    void *const *output;
    void *scratch;        /* 'scratch_size' bytes, at a multiple of 256                           */
    const pons_step_key *step_key; /* memory of the device, like all of the above                 */
} pons_call;

#define PONS_KERNEL_INPUTS_MAX 64

/* A prepared kernel; zeroed by the caller of 'prepare'. */
typedef struct pons_kernel {
    pons_status (*run)(const struct pons_kernel *kernel, const pons_call *call, pons_error *err);
    void (*free)(struct pons_kernel *kernel);
    void *state;
    const char *implementation; /* "own", "winograd", "onednn", "reference", ...                  */
    size_t scratch_size;
    uint64_t share;             /* bit i: output 0 may lie in the memory of input i               */
    /*
     * Input i is wanted in another layout: pack_size[i] > 0. 'pack' writes it; the program runs it
     * once a step, before anything else, and shares the result between kernels whose pack_key for
     * the same tensor is equal.
     */
    size_t pack_size[2];
    uint64_t pack_key[2];
    pons_status (*pack)(const struct pons_kernel *kernel, int input, const void *from, void *to,
                        pons_error *err);
} pons_kernel;

/* ---- operations ------------------------------------------------------------------------------ */

typedef struct pons_device_settings {
    int index, count;      /* the index-th of count shares of this process's processors           */
    int threads;           /* kernel threads; 0: all of the share                                 */
    bool deterministic;
    const char *cache_dir; /* folder of compiled kernels; NULL or "": they are not kept           */
    size_t workspace_limit; /* bytes: kernels with more scratch memory are not taken where there  */
                           /* are others; 0: as the device thinks best                            */
} pons_device_settings;

typedef struct pons_device_facts {
    char name[128];        /* the processor's or card's own name                                  */
    char library[256];     /* "oneDNN 2.6.3", ""                                                  */
    int threads;           /* kernel threads                                                      */
    bool host_memory;      /* kernels read and write memory of this process; else only 'copy'     */
                           /* and collectives reach theirs                                        */
    bool bf16;             /* has instructions for products of bf16 (precision auto)              */
    bool fp16, tf32;       /* the same; precisions of the name exist there                        */
    uint64_t memory_size;  /* bytes                                                               */
    char features[256];    /* what else the results of kernels may depend on: "avx2 fma avx512f"  */
    char address[32];      /* on the bus, "0000:01:00.0"; ""                                      */
} pons_device_facts;

/*
 * What the device reached when it tried, with all its kernel threads, or what it can reach by its
 * construction; 0: not known.
 */
typedef struct pons_device_peak {
    double copy;   /* bytes read and written a second, copying memory larger than the caches      */
    double f32;    /* operations a second, fused products and sums in float                       */
    double bf16, fp16, tf32; /* the same with products of those; 0: no instructions for it        */
} pons_device_peak;

/* What the device's sensors say; NaN: not known. */
typedef struct pons_device_sensors {
    char id[32];           /* of the device, wherever it is listed: "00000000:01:00.0"            */
    double utilisation;    /* share of the last moments in which it computed, 0 to 1              */
    double memory_used, memory_total; /* bytes, by whomever they are used                         */
    double power;          /* watts                                                               */
    double temperature;    /* degrees Celsius                                                     */
} pons_device_sensors;

/*
 * A device whose memory is not host memory has two streams of work, each in order: kernels and
 * copies. Events order work between them.
 */
typedef enum pons_stream {
    PONS_STREAM_KERNELS = 0, /* where 'run' queues kernels                                        */
    PONS_STREAM_COPY,
    PONS_STREAM_COUNT
} pons_stream;

/*
 * Entries made by timing kernels. The core keeps them for all devices of a run.
 *
 * A key names what is to be computed, but nothing of the GPU, and of a library only what the facts'
 * 'library' does not tell. Its value names how it is computed; "": as without timing. Both are text
 * in the device's own words: printable ASCII, at most PONS_AUTOTUNE_ENTRY_SIZE bytes with the 0 at
 * the end.
 */
#define PONS_AUTOTUNE_ENTRY_SIZE 512

typedef struct pons_autotune_cache {
    void *context;
    /* The value of a key, or NULL; it stays until 'keep' replaces it. */
    const char *(*find)(void *context, const char *key);
    /*
     * Keep an entry, and the seconds that it takes (NaN: nothing was timed). NULL: nothing is to be
     * timed; both change while no thread prepares.
     */
    pons_status (*keep)(void *context, const char *key, const char *value, double seconds,
                        pons_error *err);
} pons_autotune_cache;

typedef struct pons_device_memory {
    void *(*allocate)(void *device, size_t size, pons_error *err); /* multiple of 4096; zeroed    */
    void (*release)(void *device, void *memory, size_t size);
    /*
     * The rest is there where host_memory is false. Host memory that copies reach without this
     * process's help; not zeroed.
     */
    void *(*allocate_host)(void *device, size_t size, pons_error *err);
    void (*release_host)(void *device, void *memory, size_t size);
    /*
     * Put a copy at the end of a stream; one side at least is memory of the device. Memory of
     * 'allocate_host' is nobody else's until the copy has ended; of any other memory of this
     * process the call is done with when it returns.
     */
    pons_status (*copy)(void *device, pons_stream stream, void *to, const void *from, size_t size,
                        pons_error *err);
} pons_device_memory;

/* Order between streams; all but 'synchronize' where host_memory is false. */
typedef struct pons_device_streams {
    /*
     * Optional: return when all kernels that were run have ended, or with what went wrong in them.
     * Without it a kernel has ended when 'run' returns.
     */
    pons_status (*synchronize)(void *device, pons_error *err);
    /* Record event 'number' (from 0) at the tail of the stream; it is no longer where it was. */
    pons_status (*event_record)(void *device, pons_stream stream, int number, pons_error *err);
    /* Work queued later on the stream waits for the event; for one never recorded it does not. */
    pons_status (*stream_wait_event)(void *device, pons_stream stream, int number,
                                     pons_error *err);
    /* This process waits for the event. */
    pons_status (*event_synchronize)(void *device, int number, pons_error *err);
    /*
     * Optional, both. The stream for a communicator of this process (comm.h), the same one whenever
     * asked; work queued later on a stream of this device waits for all kernels run so far.
     */
    void *(*comm_stream)(void *device, pons_error *err);
    pons_status (*stream_wait_stream)(void *device, void *stream, pons_error *err);
} pons_device_streams;

/*
 * Kernels captured as a graph and launched together. Optional, all four.
 *
 * Between 'begin' and 'end' one thread runs kernels that were prepared here and have been run
 * before, and asks nothing else of the device but ranges: their work is kept instead of done.
 * 'launch' queues it on the stream of kernels, with the addresses that it had, as often as wanted.
 * 'end' also ends a capture that has failed: then there is no graph. The caller destroys each graph
 * before its kernels are freed; a launch may still be under way.
 */
typedef struct pons_device_capture {
    pons_status (*begin)(void *device, pons_error *err);
    pons_status (*end)(void *device, void **graph, pons_error *err);
    pons_status (*launch)(void *device, void *graph, pons_error *err);
    void (*destroy)(void *device, void *graph);
} pons_device_capture;

/* Measurements; all optional. */
typedef struct pons_device_profiling {
    /*
     * Both: seconds that kernels run from 'timer_start' to 'timer_stop' take on the device, without
     * what this process needs to run them; 'timer_stop' waits for them, and they may begin only
     * then.
     */
    pons_status (*timer_start)(void *device, pons_error *err);
    pons_status (*timer_stop)(void *device, double *seconds, pons_error *err);
    /* Both: what this thread does in between has a name in a profiler. */
    void (*range_begin)(void *device, const char *name);
    void (*range_end)(void *device);
    /* Ask the sensors, which takes milliseconds; by the thread that runs kernels. */
    pons_status (*sensors)(void *device, pons_device_sensors *sensors, pons_error *err);
    /* May measure, which takes about a second; by the thread that is attached. */
    pons_status (*peak)(void *device, pons_device_peak *peak, pons_error *err);
} pons_device_profiling;

typedef struct pons_device_operations {
    pons_status (*open)(const pons_device_settings *settings, void **device, pons_error *err);
    void (*close)(void *device);
    void (*facts)(void *device, pons_device_facts *facts);
    /* Called by the thread that will run kernels, once, before anything runs. */
    pons_status (*attach)(void *device, pons_error *err);
    /*
     * Make a kernel. *supported = false and PONS_OK: no kernel for this request. 'request' and all
     * that it points to live as long as the kernel.
     */
    pons_status (*prepare)(void *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err);
    pons_device_memory memory;
    pons_device_streams streams;
    pons_device_capture capture;
    pons_device_profiling profiling;
    /*
     * Optional: no request follows for now. What kernels still need before they can run may begin,
     * on a thread of the device's own: 'run' waits for it and says what went wrong, 'close' waits.
     */
    void (*compile)(void *device);
    /*
     * Optional: from now on 'prepare' asks 'cache', which lives until the device closes. Where it
     * has an entry that can be taken, that is taken; else, where it can keep one, kernels are
     * timed, in memory that is released again, and the entry is kept.
     */
    void (*autotune)(void *device, const pons_autotune_cache *cache);
    /*
     * Optional, for lists that are read by people: one line of all libraries that kernels may use,
     * with versions, or what they lack. It may take a moment: it opens them. NULL: facts tell all.
     */
    void (*describe)(void *device, char *text, size_t size);
    /*
     * Optional, likewise: how many of its devices there are, also those that would not open. NULL:
     * the first that does not open is behind the last.
     */
    int (*count)(void);
} pons_device_operations;

#define PONS_DEVICE(NAME, VERSION, SUMMARY, OPERATIONS)                                           \
    PONS_PLUGIN_DEFINE_(PONS_KIND_DEVICE, NAME, 0, VERSION, SUMMARY, NULL, OPERATIONS)

#endif
