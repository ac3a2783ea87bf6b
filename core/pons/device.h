/*
 * device.h - a device plugin: memory, and one prepared kernel for each request of the compiler.
 *
 * The compiler turns a graph into requests. The device makes a kernel for each request once
 * ('prepare', may be slow) and runs it thousands of times ('run', allocates nothing). A request
 * that the device declines runs on the core's reference kernel. Memory that is not host memory is
 * then copied to the host and back.
 *
 * Kinds of requests: MAP is a fused group of pointwise nodes and reductions, described by a
 * pons_map. Every other kind is one node of the graph, described by its attributes.
 */
#ifndef CORE_PONS_DEVICE_H
#define CORE_PONS_DEVICE_H

#include <pons/graph.h>

PONS_C_BEGIN

/* ---- map programs ---------------------------------------------------------------------------- */

/*
 * A map has an index space of at most six axes, the last one innermost, and values computed at each
 * of its points. Values are numbered. A value's arguments have smaller numbers. The compiler has
 * collapsed axes if every operand allows it.
 *
 * Linear form (channels = 0): every value exists at every point.
 *
 * Channel form (channels = C > 0): C is the extent of the last axis, at most 64. A value has one
 * number per channel, or one per point of the axes before the last ('per_point'). CHANNEL_* reduce
 * the channels to one number per point. A per-point argument of a per-channel value is repeated
 * along the channels.
 *
 * Ragged form (segment_count > 0): the space is [segment][element]. Segment s has segment_length[s]
 * elements from element segment_start[s] of the flat buffers on. An operand is per element
 * (PONS_INDEX_ELEMENT), per segment (number s of a dense table) or a single number. axis_count is
 * 1, extent[0] is the sum of the lengths, and strides are not read. Stores are per element. A
 * reduction is per segment or over all elements (PONS_INDEX_SCALAR). Segments ascend and do not
 * overlap.
 *
 * In place: outputs may share memory with inputs, as in the update section, which reads and writes
 * parameters. Input and output are then the same element at the same point. So a kernel must load a
 * tile before it stores that tile.
 */
enum {
    PONS_VALUE_LOAD = PONS_MAP_OPERATION_COUNT, /* operand                                        */
    PONS_VALUE_CONSTANT,                        /* number                                         */
    PONS_VALUE_IOTA,            /* (linear index / divisor) % modulus, over the whole space       */
    PONS_VALUE_UNIFORM,         /* R5: counter (stream, step, micro-batch, linear index / 4)      */
    PONS_VALUE_NORMAL,
    PONS_VALUE_CHANNEL_SUM,     /* channel form: reduces a per-channel value to one per point     */
    PONS_VALUE_CHANNEL_MAX,     /* NaN if a channel is NaN                                        */
    PONS_VALUE_CHANNEL_MIN,
    PONS_VALUE_CHANNEL_ARG_MAX, /* index of the first largest                                     */
    PONS_VALUE_COUNT
};

#define PONS_MAP_AXES PONS_RANK_MAX

typedef enum pons_index_space {
    PONS_INDEX_SPACE = 0, /* index by 'stride'                                                    */
    PONS_INDEX_ELEMENT,   /* ragged form                                                          */
    PONS_INDEX_SEGMENT,
    PONS_INDEX_SCALAR    /* one number                                                           */
} pons_index_space;

/*
 * The place in memory that a value is read from or written to. Numbers are converted from and to
 * f32. To u8 and i32 they are truncated towards zero and clamped to the type's range (NaN gives 0).
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
    uint8_t per_point;        /* channel form: one number for all channels of a point             */
    uint8_t argument_count;
    int argument[3];          /* value numbers                                                    */
    int operand;              /* LOAD: index into 'load'                                          */
    double number;            /* CONSTANT                                                         */
    uint64_t stream;          /* UNIFORM, NORMAL                                                  */
    int64_t divisor, modulus; /* IOTA                                                             */
} pons_value;

/* A value stored at every point. A per-point value is stored once for all channels. */
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
    int groups;        /* MOMENTS: groups of the last kept axis, merged, then repeated; 0: none   */
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
    /* x, y's gradient -> x's gradient; pons_pool. MEAN does not read x. */
    PONS_KERNEL_POOL_GRADIENT,
    PONS_KERNEL_RESIZE,                /* x; pons_resize_attributes                               */
    PONS_KERNEL_RESIZE_GRADIENT,       /* y's gradient -> x's gradient                            */
    PONS_KERNEL_TRANSPOSE,             /* pons_transpose_attributes                               */
    PONS_KERNEL_FLIP,                  /* pons_flip_attributes                                    */
    PONS_KERNEL_CROP,                  /* pons_crop_attributes                                    */
    PONS_KERNEL_PAD,                   /* pons_pad_attributes                                     */
    PONS_KERNEL_PAD_GRADIENT,          /* of edge and reflect: the sum of an element's copies     */
    PONS_KERNEL_CONCATENATE,           /* n inputs; pons_axis_attributes                          */
    PONS_KERNEL_GATHER,                /* x, index; pons_axis_attributes                          */
    PONS_KERNEL_ARG_MAX,               /* pons_axis_attributes                                    */
    /* x, y's gradient -> x's gradient, to the first extreme; pons_minmax_attributes. */
    PONS_KERNEL_REDUCE_MINMAX_GRADIENT,
    PONS_KERNEL_COPY,                  /* same shape; converts the type                           */
    /*
     * x; pons_all_reduce_attributes. With several replicas the communicator runs it instead of the
     * device.
     */
    PONS_KERNEL_ALL_REDUCE,
    /*
     * pons_op_attributes. The plugin's function runs it if a device with host memory declines it.
     */
    PONS_KERNEL_OP,
    PONS_KERNEL_PATCH,                 /* resident cases, rows -> [N, D, H, W, C], see below      */
    PONS_KERNEL_PATCH_NORMAL,          /* key, i32 [N, 3] -> [N, D, H, W, C], see below           */
    PONS_KERNEL_PATCH_ACCUMULATE,      /* resident sums, rows, weight, x -> the sums, see below   */
    PONS_KERNEL_KIND_COUNT
} pons_kernel_kind;

typedef struct pons_matmul_attributes { bool transpose_a, transpose_b; } pons_matmul_attributes;
typedef struct pons_resize_attributes { pons_resize_mode mode; } pons_resize_attributes;
typedef struct pons_transpose_attributes { int order[PONS_RANK_MAX]; } pons_transpose_attributes;
typedef struct pons_flip_attributes { unsigned axes; } pons_flip_attributes;
typedef struct pons_crop_attributes {
    int64_t start[PONS_RANK_MAX], step[PONS_RANK_MAX];
} pons_crop_attributes;
/* ZERO may dilate the input: input element i is at low + i * step. */
typedef struct pons_pad_attributes {
    pons_pad_mode mode;
    int64_t low[PONS_RANK_MAX], high[PONS_RANK_MAX], step[PONS_RANK_MAX];
} pons_pad_attributes;
typedef struct pons_axis_attributes { int axis; } pons_axis_attributes;
typedef struct pons_minmax_attributes { unsigned axes; bool minimum; } pons_minmax_attributes;

/* A sum may be two requests: START takes x, WAIT takes the sum that START has begun. */
typedef struct pons_all_reduce_attributes {
    enum { PONS_ALL_REDUCE_WHOLE = 0, PONS_ALL_REDUCE_START, PONS_ALL_REDUCE_WAIT } part;
    int index; /* of the sum in its program                                                       */
} pons_all_reduce_attributes;

/*
 * PATCH extracts N patches from preprocessed cases. Input 0 is the memory of resident cases, of any
 * size (its tensor has one byte). Input 1, i32 [N, PONS_PATCH_COORDINATES + D + H + W], has a row
 * for each patch: the numbers below, then one coordinate for each index along D, H and W. The sum
 * of three coordinates is the index of a voxel in the case. A negative coordinate lies outside the
 * case, and the patch is 0 there. The output, f32 or u8, has the C values of each voxel, which are
 * adjacent in the case.
 */
enum {
    PONS_PATCH_VALUES = 0,  /* offset of the case, in units of PONS_PATCH_UNIT bytes              */
    PONS_PATCH_TABLE,       /* offset of a table of f32, in the same units                        */
    /*
     * Bytes of an index into the table, 1 or 2 (f32 only): the case has indices; else the case has
     * values.
     */
    PONS_PATCH_CODE_SIZE,
    PONS_PATCH_COORDINATES,
    PONS_PATCH_UNIT = 64
};

/*
 * PATCH_NORMAL computes pons_voxel_normals (transform.h) for all elements of a patch. A row of
 * input 0 has the low and the high half of the patch's key, and 0 or 1. With 0 the patch is 0.
 */
enum { PONS_PATCH_KEY_LOW = 0, PONS_PATCH_KEY_HIGH, PONS_PATCH_KEY_WANTED, PONS_PATCH_KEY_SIZE };

/*
 * PATCH_ACCUMULATE adds N patches in order to f32 sums in resident memory. Input 0 is memory as in
 * PATCH, and the output is the same memory. Input 1 is i32 [N, PONS_PATCH_COORDINATES + 2 (D + H +
 * W)]. A row begins with PATCH's row, which locates the C sums of each voxel. No voxel appears
 * twice in a patch. Then the row has 1 or 0 for each index along D, H and W. A voxel with three 1
 * is new, and the old content of its sums counts as 0. Inputs 2 and 3 are weight [D, H, W] and x
 * [N, D, H, W, C]:
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
    /* Bit i: input i is a weight that may be packed once a step, see pons_kernel.pack. */
    uint32_t packable;
    /* Products may round f32 inputs to tf32 (10 mantissa bits). */
    bool tf32;
} pons_request;

/* The key of a step's random numbers (R5). */
typedef struct pons_step_key {
    uint64_t seed, step, micro_batch;
} pons_step_key;

typedef struct pons_call {
    void *const *input;   /* inputs in the request's order; packed ones in the kernel's layout    */
    void *const *output;
    void *scratch;        /* 'scratch_size' bytes, at a multiple of 256                           */
    const pons_step_key *step_key; /* memory of the device, like all other members                */
} pons_call;

#define PONS_KERNEL_INPUTS_MAX 64

/* A prepared kernel. The caller of 'prepare' zeroes it. */
typedef struct pons_kernel {
    pons_status (*run)(const struct pons_kernel *kernel, const pons_call *call, pons_error *err);
    void (*free)(struct pons_kernel *kernel);
    void *state;
    const char *implementation; /* its name: "winograd", "onednn", "jit", "reference", ...        */
    size_t scratch_size;
    uint64_t share;             /* bit i: output 0 may lie in the memory of input i               */
    /*
     * pack_size[i] > 0: the kernel needs input i in another layout, which 'pack' writes. The
     * program runs 'pack' once a step before all kernels, or before each 'run'. In a step, kernels
     * with an equal pack_key for the same tensor may share the result.
     */
    size_t pack_size[2];
    uint64_t pack_key[2];
    pons_status (*pack)(const struct pons_kernel *kernel, int input, const void *from, void *to,
                        pons_error *err);
} pons_kernel;

/* ---- operations ------------------------------------------------------------------------------ */

typedef struct pons_device_settings {
    int index, count;      /* share 'index' of 'count' shares of this process's processors        */
    int threads;           /* kernel threads; 0: one for each processor of the share              */
    bool deterministic;
    const char *cache_dir; /* folder of compiled kernels; NULL or "": no cache                    */
    /*
     * Bytes of workspace; a kernel with more is used only if there is no other; 0: the device's
     * default.
     */
    size_t workspace_limit;
    bool no_winograd;      /* no kernel that rounds sums of factors before it multiplies (R11)    */
} pons_device_settings;

typedef struct pons_device_facts {
    char name[128];        /* the processor's or GPU's own name                                   */
    char library[256];     /* "oneDNN 2.6.3", ""                                                  */
    int threads;           /* kernel threads                                                      */
    /*
     * Kernels use memory of this process; else only 'copy' and collectives reach the device's
     * memory.
     */
    bool host_memory;
    bool bf16;             /* the device multiplies bf16 (precision auto)                         */
    bool fp16, tf32;       /* the device multiplies fp16 and tf32, and has these precisions       */
    uint64_t memory_size;  /* bytes                                                               */
    char features[256];    /* features that results may depend on: "avx2 fma avx512f"             */
    char address[32];      /* address on the bus, "0000:01:00.0"; ""                              */
} pons_device_facts;

/*
 * The peak of the device, measured with all its kernel threads or known from its construction. 0:
 * not known.
 */
typedef struct pons_device_peak {
    double copy;   /* bytes read and written a second, copying memory larger than the caches      */
    double f32;    /* operations a second, fused multiply-add in float                            */
    double bf16, fp16, tf32; /* operations a second with products of the type; 0: none            */
} pons_device_peak;

/* Values of the device's sensors. NaN: not known. */
typedef struct pons_device_sensors {
    char id[32];           /* id of the device in all lists: "00000000:01:00.0"                   */
    double utilisation;    /* share of the last sampling period with kernels running, 0 to 1      */
    double memory_used, memory_total; /* bytes, of all processes                                  */
    double power;          /* watts                                                               */
    double temperature;    /* degrees Celsius                                                     */
    double engine_active, tensor_active; /* share of time, 0 to 1: any unit, and the tensor units */
    double pcie_sent, pcie_received; /* bytes a second over PCIe, from the device and to it       */
} pons_device_sensors;

/*
 * A device with memory of its own has two streams: one of kernels and one of copies. Work of a
 * stream runs in order. Events order work between streams.
 */
typedef enum pons_stream {
    PONS_STREAM_KERNELS = 0, /* stream in which 'run' queues kernels                              */
    PONS_STREAM_COPY,
    PONS_STREAM_COUNT
} pons_stream;

/*
 * Entries made by timing kernels. The core keeps them for all devices of a run.
 *
 * A key identifies a computation. It does not name the GPU, nor facts of a library that the facts'
 * 'library' has. Its value identifies the kernel; "": the kernel without timing. The device chooses
 * both texts. They are printable ASCII of at most PONS_AUTOTUNE_ENTRY_SIZE bytes, the 0 included.
 */
#define PONS_AUTOTUNE_ENTRY_SIZE 512

typedef struct pons_autotune_cache {
    void *context;
    /* The value of a key, or NULL. It is valid until 'keep' replaces it. */
    const char *(*find)(void *context, const char *key);
    /*
     * Keep an entry, and the seconds of its kernel (NaN: not timed). NULL: nothing is timed. The
     * core changes 'find' and 'keep' only while no thread is in 'prepare'.
     */
    pons_status (*keep)(void *context, const char *key, const char *value, double seconds,
                        pons_error *err);
} pons_autotune_cache;

typedef struct pons_device_memory {
    void *(*allocate)(void *device, size_t size, pons_error *err); /* multiple of 4096; zeroed    */
    void (*release)(void *device, void *memory, size_t size);
    /*
     * Pinned host memory, not zeroed. This member and the following ones are needed only if
     * host_memory is false.
     */
    void *(*allocate_host)(void *device, size_t size, pons_error *err);
    void (*release_host)(void *device, void *memory, size_t size);
    /*
     * Queue a copy at the tail of a stream. At least one side is memory of the device. Memory of
     * 'allocate_host' belongs to the copy until it has ended. Other memory of this process may be
     * used again when the call returns.
     */
    pons_status (*copy)(void *device, pons_stream stream, void *to, const void *from, size_t size,
                        pons_error *err);
} pons_device_memory;

/* Order between streams. With host_memory only 'synchronize' is used. */
typedef struct pons_device_streams {
    /*
     * Optional. Wait until all queued kernels have ended, and return their error. Without it a
     * kernel has ended when 'run' returns.
     */
    pons_status (*synchronize)(void *device, pons_error *err);
    /* Record event 'number' (from 0) at the tail of the stream. Its earlier record is replaced. */
    pons_status (*event_record)(void *device, pons_stream stream, int number, pons_error *err);
    /* Work queued later on the stream waits for the event, unless it was never recorded. */
    pons_status (*stream_wait_event)(void *device, pons_stream stream, int number,
                                     pons_error *err);
    /* This process waits for the event. */
    pons_status (*event_synchronize)(void *device, int number, pons_error *err);
    /*
     * Both are optional. comm_stream returns the stream for communicators of this process (comm.h),
     * always the same one. stream_wait_stream: work queued later on 'stream', a stream of this
     * device, waits for all kernels queued so far.
     */
    void *(*comm_stream)(void *device, pons_error *err);
    pons_status (*stream_wait_stream)(void *device, void *stream, pons_error *err);
} pons_device_streams;

/*
 * Kernels captured as a graph and launched together. All four members are optional.
 *
 * Between 'begin' and 'end' one thread runs kernels of this device that have run once already. It
 * calls no other operation except ranges. The work of the kernels is captured instead of executed.
 * 'launch' queues the graph on the stream of kernels, with the captured addresses, any number of
 * times. 'end' also ends a failed capture, which gives no graph. The caller destroys each graph
 * before it frees the kernels, possibly while a launch is still running.
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
     * Time the kernels between 'timer_start' and 'timer_stop' in seconds on the device, without the
     * time of this process to launch them. 'timer_stop' waits for the kernels, which may start only
     * then.
     */
    pons_status (*timer_start)(void *device, pons_error *err);
    pons_status (*timer_stop)(void *device, double *seconds, pons_error *err);
    /* Name the work of this thread between the two calls for a profiler. */
    void (*range_begin)(void *device, const char *name);
    void (*range_end)(void *device);
    /* Read the sensors, which takes milliseconds. The thread that runs kernels calls it. */
    pons_status (*sensors)(void *device, pons_device_sensors *sensors, pons_error *err);
    /* Find the peak. A measurement takes about a second. The attached thread calls it. */
    pons_status (*peak)(void *device, pons_device_peak *peak, pons_error *err);
} pons_device_profiling;

typedef struct pons_device_operations {
    pons_status (*check)(const void *config, pons_error *err); /* NULL; see plugin.h              */
    pons_status (*open)(const pons_device_settings *settings, void **device, pons_error *err);
    void (*close)(void *device);
    void (*facts)(void *device, pons_device_facts *facts);
    /* The thread that will run kernels calls it once, before its first kernel. */
    pons_status (*attach)(void *device, pons_error *err);
    /*
     * Make a kernel. *supported = false with PONS_OK means that the device declines the request.
     * 'request' and all that it points to live as long as the kernel.
     */
    pons_status (*prepare)(void *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err);
    pons_device_memory memory;
    pons_device_streams streams;
    pons_device_capture capture;
    pons_device_profiling profiling;
    /*
     * Optional. A series of requests is complete, so the device may begin to compile its kernels on
     * a thread of its own. 'run' waits for a kernel's compilation and returns its error. 'close'
     * waits too.
     */
    void (*compile)(void *device);
    /*
     * Optional. After this call 'prepare' uses 'cache', which lives until the device closes. It
     * takes a usable entry of the cache. Without one it times kernels, if the cache can keep an
     * entry, and keeps the fastest. The memory of the timing is released.
     */
    void (*autotune)(void *device, const pons_autotune_cache *cache);
    /*
     * Optional, for lists for the user. Write one line with all libraries that kernels may use, and
     * their versions or the reason why they are missing. The call may be slow, because it opens
     * them. NULL: the facts name all libraries.
     */
    void (*describe)(void *device, char *text, size_t size);
    /*
     * Optional, for lists for the user. Return the number of devices, with those that do not open.
     * NULL: the devices end before the first one that does not open.
     */
    int (*count)(void);
    /*
     * Optional. As profiling.range_begin, which it replaces, with a colour 0xAARRGGBB. The ranges
     * of threads that transform patches come to the first device of the process, whichever its
     * thread.
     */
    void (*colored_range_begin)(void *device, const char *name, uint32_t color);
} pons_device_operations;

#define PONS_DEVICE(NAME, VERSION, SUMMARY, OPTIONS, OPERATIONS)                                  \
    PONS_PLUGIN_DEFINE_(PONS_KIND_DEVICE, pons_device_operations, NAME, VERSION, SUMMARY,         \
                        OPERATIONS, OPTIONS)

PONS_C_END

#endif
