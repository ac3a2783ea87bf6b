/*
 * onednn.c - make and run oneDNN primitives. Activations are dense, channels last. Weights have the
 * layout that the library wants.
 *
 * A tensor whose layout differs from ours is reordered. 'pack' reorders a weight that may be packed
 * once a step. Other inputs are reordered before the primitive and outputs after it, in scratch.
 */
#include "cpu/conv/onednn/onednn.h"

#include "cpu/cpu.h"
#include "cpu/alloc_probe.h"
#include "cpu/isa.h"
#include "cpu/conv/onednn/onednn_compat.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum {
    ARGUMENTS = 3,
    PARTS = 8, PART_BYTES = 1 << 15,
    UNIT = 16, UNIT_MOST = 64, /* channels: the library's blocks have as many */
    KERNEL_ROOM = 8 << 20
};

struct onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream[PARTS]; /* one for each reorder that runs beside others */
    dnnl_primitive_attr_t attributes;
};

/* A part of an argument along its first axis, which one thread reorders. */
typedef struct part {
    dnnl_memory_t ours, theirs;
    dnnl_primitive_t reorder;
} part;

/* One argument of a primitive: its memory in the library's layout; parts where ours differs. */
typedef struct argument {
    int name;            /* DNNL_ARG_* */
    bool output, packed;
    int index;           /* among the request's inputs or outputs */
    dnnl_memory_t theirs;
    int parts;           /* 0: no difference */
    part part[PARTS];
    size_t offset;       /* of 'theirs' in scratch */
} argument;

typedef struct onednn_kernel {
    onednn *library;
    dnnl_primitive_t primitive;
    dnnl_memory_t scratchpad;
    argument argument[ARGUMENTS];
} onednn_kernel;

/* The library's message; a shortage of memory in our words, for which the core has a hint. */
static pons_status refuse(pons_error *err, const char *what, dnnl_status_t status)
{
    return pons_fail(err, PONS_DEVICE, "oneDNN cannot %s: %s", what,
                     status == dnnl_out_of_memory ? "out of memory" : dnnl_status2str(status));
}

/* ---- device ---------------------------------------------------------------------------------- */

/*
 * The library obeys this only before its first primitive. Tile registers are left to our own
 * solvers: the library's kernels for them (2.6.3) end the process where a window of a convolution
 * lies in the padding, and add wrong terms to some strided and dilated ones.
 */
static void limit_instructions(void)
{
    static const dnnl_cpu_isa_t most[] = { dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2,
                                           dnnl_cpu_isa_avx512_core,
                                           dnnl_cpu_isa_avx512_core_bf16 };

    dnnl_set_max_cpu_isa(most[min_int(isa_limit(), ISA_AVX512BF16)]);
}

pons_status onednn_open(onednn **out, pons_error *err)
{
    onednn *o = calloc(1, sizeof *o);
    dnnl_status_t status;

    if (o == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory opening oneDNN");
    limit_instructions();
    status = dnnl_engine_create(&o->engine, dnnl_cpu, 0);
    for (int i = 0; i < PARTS && status == dnnl_success; i++)
        status = dnnl_stream_create(&o->stream[i], o->engine, dnnl_stream_default_flags);
    if (status != dnnl_success ||
        (status = dnnl_primitive_attr_create(&o->attributes)) != dnnl_success ||
        (status = dnnl_primitive_attr_set_scratchpad_mode(
             o->attributes, dnnl_scratchpad_mode_user)) != dnnl_success) {
        onednn_close(o);
        return refuse(err, "start", status);
    }
    *out = o;
    return PONS_OK;
}

void onednn_close(onednn *o)
{
    if (o == NULL)
        return;
    if (o->attributes != NULL)
        dnnl_primitive_attr_destroy(o->attributes);
    for (int i = 0; i < PARTS; i++)
        if (o->stream[i] != NULL)
            dnnl_stream_destroy(o->stream[i]);
    if (o->engine != NULL)
        dnnl_engine_destroy(o->engine);
    free(o);
}

void onednn_version(char *text, size_t size)
{
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, size, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
}

/* ---- run ------------------------------------------------------------------------------------- */

static void point(dnnl_memory_t memory, const void *data)
{
    dnnl_memory_set_data_handle(memory, (void *)data);
}

typedef struct reordering {
    const onednn *library;
    const argument *argument;
    dnnl_status_t status[PARTS];
} reordering;

static void reorder_part(void *context, int64_t i, int thread)
{
    reordering *r = context;
    const part *p = &r->argument->part[i];
    bool output = r->argument->output;
    dnnl_exec_arg_t list[2] = { { DNNL_ARG_FROM, output ? p->theirs : p->ours },
                                { DNNL_ARG_TO, output ? p->ours : p->theirs } };

    (void)thread;
    r->status[i] = dnnl_primitive_execute(p->reorder, r->library->stream[i], 2, list);
}

/* Between our layout at 'ours' and the library's at 'theirs'. */
static dnnl_status_t reorder_run(const onednn_kernel *k, const argument *a, const void *ours,
                                 const void *theirs)
{
    reordering r = { .library = k->library, .argument = a };
    int threads = omp_get_max_threads();
    dnnl_status_t status = dnnl_success;

    for (int i = 0; i < a->parts; i++) {
        point(a->part[i].ours, ours);
        point(a->part[i].theirs, theirs);
    }
    omp_set_num_threads(1); /* the library asks when a reorder is made and when it runs */
    cpu_parallel_for(threads, a->parts, reorder_part, &r);
    omp_set_num_threads(threads);
    for (int i = 0; i < a->parts && status == dnnl_success; i++)
        status = r.status[i];
    return status;
}

/* The address at which the primitive finds the argument; inputs that need it are reordered. */
static dnnl_status_t place(const onednn_kernel *k, const argument *a, const pons_call *call)
{
    void *data = a->output ? call->output[a->index] : call->input[a->index];

    if (a->parts > 0 && !a->packed) {
        char *theirs = (char *)call->scratch + a->offset;
        point(a->theirs, theirs);
        return a->output ? dnnl_success : reorder_run(k, a, data, theirs);
    }
    point(a->theirs, data);
    return dnnl_success;
}

static pons_status kernel_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const onednn_kernel *k = kernel->state;
    dnnl_exec_arg_t list[ARGUMENTS + 1];
    dnnl_status_t status = dnnl_success;

    for (int i = 0; i < ARGUMENTS && status == dnnl_success; i++) {
        status = place(k, &k->argument[i], call);
        list[i] = (dnnl_exec_arg_t){ k->argument[i].name, k->argument[i].theirs };
    }
    point(k->scratchpad, call->scratch);
    list[ARGUMENTS] = (dnnl_exec_arg_t){ DNNL_ARG_SCRATCHPAD, k->scratchpad };
    if (status == dnnl_success)
        status = dnnl_primitive_execute(k->primitive, k->library->stream[0], ARGUMENTS + 1, list);
    for (int i = 0; i < ARGUMENTS && status == dnnl_success; i++) {
        const argument *a = &k->argument[i];
        if (a->output && a->parts > 0)
            status = reorder_run(k, a, call->output[a->index], (char *)call->scratch + a->offset);
    }
    return status == dnnl_success ? PONS_OK : refuse(err, "run a kernel", status);
}

static pons_status kernel_pack(const pons_kernel *kernel, int input, const void *from, void *to,
                               pons_error *err)
{
    const onednn_kernel *k = kernel->state;

    for (int i = 0; i < ARGUMENTS; i++) {
        const argument *a = &k->argument[i];
        if (a->output || a->index != input || a->parts == 0)
            continue;
        dnnl_status_t status = reorder_run(k, a, from, to);
        return status == dnnl_success ? PONS_OK : refuse(err, "pack a weight", status);
    }
    return pons_fail(err, PONS_DEVICE, "oneDNN has nothing to pack in input %d", input);
}

static void parts_free(argument *a)
{
    for (int i = 0; i < PARTS; i++) {
        part *p = &a->part[i];
        if (p->reorder != NULL)
            dnnl_primitive_destroy(p->reorder);
        if (p->ours != NULL)
            dnnl_memory_destroy(p->ours);
        if (p->theirs != NULL)
            dnnl_memory_destroy(p->theirs);
        *p = (part){ NULL };
    }
    a->parts = 0;
}

static void kernel_free(pons_kernel *kernel)
{
    onednn_kernel *k = kernel->state;

    for (int i = 0; i < ARGUMENTS; i++) {
        argument *a = &k->argument[i];
        parts_free(a);
        if (a->theirs != NULL)
            dnnl_memory_destroy(a->theirs);
    }
    if (k->scratchpad != NULL)
        dnnl_memory_destroy(k->scratchpad);
    if (k->primitive != NULL)
        dnnl_primitive_destroy(k->primitive);
    free(k);
}

/* ---- prepare --------------------------------------------------------------------------------- */

/* The role of an argument of a primitive descriptor. */
typedef struct argument_plan {
    int name;
    dnnl_query_t query;
    bool output;
    int index;
    onednn_layout plain; /* our layout */
} argument_plan;

static dnnl_status_t reorder_make(const onednn_kernel *k, part *p, bool output,
                                  onednn_layout_view ours, onednn_layout_view theirs)
{
    dnnl_engine_t engine = k->library->engine;
    dnnl_primitive_desc_t description = NULL;
    int threads = omp_get_max_threads();
    dnnl_status_t status;

    if ((status = dnnl_memory_create(&p->ours, ours, engine, DNNL_MEMORY_NONE)) != dnnl_success ||
        (status = dnnl_memory_create(&p->theirs, theirs, engine, DNNL_MEMORY_NONE)) !=
            dnnl_success)
        return status;
    omp_set_num_threads(1);
    status = dnnl_reorder_primitive_desc_create(&description, output ? theirs : ours, engine,
                                                output ? ours : theirs, engine, NULL);
    if (status == dnnl_success) {
        status = dnnl_primitive_create(&p->reorder, description);
        dnnl_primitive_desc_destroy(description);
    }
    omp_set_num_threads(threads);
    return status;
}

/* The index-th of 'count' parts, which begin at multiples of 'unit'. */
static dnnl_status_t part_make(const onednn_kernel *k, argument *a, onednn_layout_view ours,
                               onednn_layout_view theirs, int64_t unit, int index, int count)
{
    int64_t units = onednn_layout_extent(theirs) / unit;
    int64_t first = units * index / count * unit, end = units * (index + 1) / count * unit;
    onednn_layout our_part = NULL, their_part = NULL;
    dnnl_status_t status = onednn_layout_part(&our_part, ours, first, end);

    if (status == dnnl_success)
        status = onednn_layout_part(&their_part, theirs, first, end);
    if (status == dnnl_success)
        status = reorder_make(k, &a->part[index], a->output, our_part, their_part);
    onednn_layout_free(our_part);
    onednn_layout_free(their_part);
    return status;
}

static bool try_parts(const onednn_kernel *k, argument *a, onednn_layout_view ours,
                      onednn_layout_view theirs, int64_t unit, int count)
{
    int64_t extent = onednn_layout_extent(theirs);
    dnnl_status_t status = dnnl_success;

    if (extent % unit != 0 || extent / unit < count)
        return false;
    for (int i = 0; i < count && status == dnnl_success; i++)
        status = part_make(k, a, ours, theirs, unit, i, count);
    if (status == dnnl_success)
        a->parts = count;
    else
        parts_free(a);
    return status == dnnl_success;
}

/* Make as many parts as are worth a task each and divide no block of the library's layout. */
static dnnl_status_t parts_make(const onednn_kernel *k, argument *a, onednn_layout_view ours,
                                onednn_layout_view theirs)
{
    size_t most = dnnl_memory_desc_get_size(theirs) / PART_BYTES;

    for (int count = omp_get_max_threads() > 1 ? PARTS : 1; count > 1; count /= 2)
        for (int unit = UNIT; unit <= UNIT_MOST && (size_t)count <= most; unit *= 2)
            if (try_parts(k, a, ours, theirs, unit, count))
                return dnnl_success;
    a->parts = 1;
    return reorder_make(k, &a->part[0], a->output, ours, theirs);
}

static dnnl_status_t argument_make(const onednn_kernel *k, argument *a, const argument_plan *plan,
                                   const_dnnl_primitive_desc_t description,
                                   const pons_request *request, pons_kernel *kernel)
{
    onednn_layout_view wanted = dnnl_primitive_desc_query_md(description, plan->query, 0);
    dnnl_engine_t engine = k->library->engine;
    dnnl_status_t status;

    a->name = plan->name;
    a->output = plan->output;
    a->index = plan->index;
    status = dnnl_memory_create(&a->theirs, wanted, engine, DNNL_MEMORY_NONE);
    if (status != dnnl_success || dnnl_memory_desc_equal(wanted, plan->plain))
        return status;
    if (!a->output && (request->packable & (1u << a->index)) != 0) {
        a->packed = true;
        kernel->pack_size[a->index] = dnnl_memory_desc_get_size(wanted);
        kernel->pack_key[a->index] = onednn_layout_key(wanted);
        kernel->pack = kernel_pack;
    } else {
        a->offset = kernel->scratch_size;
        kernel->scratch_size += round_up_size(dnnl_memory_desc_get_size(wanted), 64);
    }
    return parts_make(k, a, plan->plain, wanted);
}

/*
 * Decline the library's "gemm" implementations. Their code is generated inside the first call that
 * runs one, which takes up to 12 MiB, and a shortage then ends the process without a message. Those
 * of the newer kind, "brgemm", are generated when a kernel is prepared.
 */
static dnnl_status_t decline_late(dnnl_primitive_desc_t *description)
{
    const char *name = "";

    dnnl_primitive_desc_query(*description, dnnl_query_impl_info_str, 0, &name);
    if (strstr(name, "gemm") == NULL || strstr(name, "brg") != NULL)
        return dnnl_success;
    dnnl_primitive_desc_destroy(*description);
    *description = NULL;
    return dnnl_unimplemented;
}

/* A kernel of a descriptor, which is released; *supported stays false if the library has none. */
static pons_status kernel_make(onednn *o, dnnl_primitive_desc_t description,
                               const argument_plan plan[ARGUMENTS], const pons_request *request,
                               pons_kernel *kernel, pons_error *err)
{
    onednn_layout_view scratch = dnnl_primitive_desc_query_md(description,
                                                              dnnl_query_scratchpad_md, 0);
    onednn_kernel *k = calloc(1, sizeof *k);
    dnnl_status_t status;

    if (k == NULL) {
        dnnl_primitive_desc_destroy(description);
        return pons_fail(err, PONS_DEVICE, "out of memory making a kernel");
    }
    k->library = o;
    kernel->state = k;
    kernel->run = kernel_run;
    kernel->free = kernel_free;
    kernel->scratch_size = round_up_size(dnnl_memory_desc_get_size(scratch), 64);
    status = dnnl_memory_create(&k->scratchpad, scratch, o->engine, DNNL_MEMORY_NONE);
    for (int i = 0; i < ARGUMENTS && status == dnnl_success; i++)
        status = argument_make(k, &k->argument[i], &plan[i], description, request, kernel);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&k->primitive, description);
    dnnl_primitive_desc_destroy(description);
    if (status == dnnl_success)
        return PONS_OK;
    kernel_free(kernel);
    return refuse(err, "make a kernel", status);
}

static bool type_of(pons_type type, dnnl_data_type_t *out)
{
    switch (type) {
    case PONS_F32: *out = dnnl_f32; return true;
    case PONS_BF16: *out = dnnl_bf16; return true;
    default: return false;
    }
}

/* [N, D, H, W, C] as the library's N, C, D, H, W. */
static dnnl_status_t image_layout(onednn_layout *layout, const pons_tensor *t)
{
    const int64_t *e = t->shape.extent;
    dnnl_dims_t extent = { e[0], e[4], e[1], e[2], e[3] };
    dnnl_data_type_t type;

    if (!type_of(t->type, &type))
        return dnnl_unimplemented;
    return onednn_layout_new(layout, 5, extent, type, dnnl_ndhwc);
}

/* [O, kD, kH, kW, I / groups] as the library's (G,) O, I, kD, kH, kW, in our order or in any. */
static dnnl_status_t weight_layout(onednn_layout *layout, const pons_tensor *t, pons_type as,
                                   int groups, bool any)
{
    const int64_t *e = t->shape.extent;
    dnnl_dims_t plain = { e[0], e[4], e[1], e[2], e[3] };
    dnnl_dims_t grouped = { groups, e[0] / groups, e[4], e[1], e[2], e[3] };
    dnnl_data_type_t type;

    if (!type_of(as, &type))
        return dnnl_unimplemented;
    if (groups > 1)
        return onednn_layout_new(layout, 6, grouped, type,
                                 any ? dnnl_format_tag_any : dnnl_abdefc);
    return onednn_layout_new(layout, 5, plain, type, any ? dnnl_format_tag_any : dnnl_acdeb);
}

/* Arguments in the order x, w, y. */
static void plan_arguments(const conv_problem *p, argument_plan plan[ARGUMENTS])
{
    static const argument_plan forward[ARGUMENTS] = {
        { DNNL_ARG_SRC, dnnl_query_src_md, false, 0, NULL },
        { DNNL_ARG_WEIGHTS, dnnl_query_weights_md, false, 1, NULL },
        { DNNL_ARG_DST, dnnl_query_dst_md, true, 0, NULL }
    }, input_gradient[ARGUMENTS] = {
        { DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, true, 0, NULL },
        { DNNL_ARG_WEIGHTS, dnnl_query_weights_md, false, 1, NULL },
        { DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, false, 0, NULL }
    }, weight_gradient[ARGUMENTS] = {
        { DNNL_ARG_SRC, dnnl_query_src_md, false, 0, NULL },
        { DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, true, 0, NULL },
        { DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, false, 1, NULL }
    };

    memcpy(plan, p->direction == CONV_FORWARD ? forward : p->direction == CONV_INPUT_GRADIENT
                     ? input_gradient : weight_gradient, sizeof forward);
}

static onednn_direction direction_of(const conv_problem *p)
{
    return p->direction == CONV_FORWARD ? ONEDNN_FORWARD
         : p->direction == CONV_INPUT_GRADIENT ? ONEDNN_INPUT_GRADIENT : ONEDNN_WEIGHT_GRADIENT;
}

/* Whether some point of y reads no padding along an axis. */
static bool reads_whole(const conv_problem *p, int axis)
{
    int reach = p->dilation[axis] * (p->kernel[axis] - 1) + 1;
    int point = ceil_div_int(p->pad[axis], p->stride[axis]);

    return point < p->y.extent[axis] &&
           point * p->stride[axis] - p->pad[axis] + reach <= p->x.extent[axis];
}

/*
 * Gradients that the library computes wrongly. oneDNN#6035 reports that the float weight gradient
 * of a strided 1x1x1 convolution with fewer input channels than a vector writes out of bounds. In
 * bf16, 2.6.3 reads uninitialised memory, adds wrong terms or reads beside x for some small images.
 * All known ones (tests/kernels/cpu/check_onednn.c) have an axis along which every point reads
 * padding, or are narrower than a stride. Input gradients of 1x1x1 convolutions in bf16 are wrong
 * for some extents where the channels of y are odd.
 */
static bool known_wrong(const conv_problem *p)
{
    if (p->direction == CONV_INPUT_GRADIENT)
        return p->x.type == PONS_BF16 && p->taps == 1 && p->y.channels / p->groups % 2 != 0;
    if (p->direction != CONV_WEIGHT_GRADIENT)
        return false;
    if (p->taps == 1 && p->strided && p->x.channels / p->groups < 16)
        return true;
    return p->x.type == PONS_BF16 &&
           !(reads_whole(p, 0) && reads_whole(p, 1) && reads_whole(p, 2) &&
             p->x.extent[2] >= p->stride[2]);
}

/* The library wants paddings that fit the extents exactly: surplus input at the end is cut. */
static void fit_padding(onednn_convolution *o, const conv_problem *p)
{
    for (int i = 0; i < 3; i++) {
        int reach = p->dilation[i] * (p->kernel[i] - 1) + 1;
        int used = (p->y.extent[i] - 1) * p->stride[i] + reach;
        o->stride[i] = p->stride[i];
        o->dilation[i] = p->dilation[i] - 1;
        o->pad_low[i] = p->pad[i];
        o->pad_high[i] = used - p->x.extent[i] - p->pad[i];
    }
}

static pons_status make_convolution(onednn *o, const conv_problem *p, pons_kernel *kernel,
                                    pons_error *err)
{
    onednn_convolution how = { .direction = direction_of(p) };
    argument_plan plan[ARGUMENTS];
    onednn_layout weight = NULL;
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = dnnl_unimplemented;
    pons_status result = PONS_OK;

    fit_padding(&how, p);
    if ((status = image_layout(&how.x, p->x_tensor)) == dnnl_success &&
        (status = image_layout(&how.y, p->y_tensor)) == dnnl_success &&
        (status = weight_layout(&how.w, p->w_tensor, p->weight_type, p->groups, true)) ==
            dnnl_success &&
        (status = weight_layout(&how.forward_w, p->w_tensor, p->x.type, p->groups, true)) ==
            dnnl_success &&
        (status = weight_layout(&weight, p->w_tensor, p->weight_type, p->groups, false)) ==
            dnnl_success)
        status = onednn_convolution_describe(&description, o->engine, &how, o->attributes);
    if (status == dnnl_success)
        status = decline_late(&description);
    if (status == dnnl_success) {
        plan_arguments(p, plan);
        plan[0].plain = how.x;
        plan[1].plain = weight;
        plan[2].plain = how.y;
        result = kernel_make(o, description, plan, p->request, kernel, err);
    } else if (status != dnnl_unimplemented) {
        result = refuse(err, "describe a convolution", status);
    }
    onednn_layout_free(how.x);
    onednn_layout_free(how.y);
    onednn_layout_free(how.w);
    onednn_layout_free(how.forward_w);
    onednn_layout_free(weight);
    return result;
}

static bool supports(const conv_problem *p)
{
    return !known_wrong(p);
}

static bool profitable(const conv_problem *p, const conv_machine *machine)
{
    (void)p;
    return machine->onednn;
}

static pons_status prepare(const cpu_device *cpu, const conv_problem *p, pons_kernel *kernel,
                           pons_error *err)
{
    pons_status status;

    omp_set_num_threads(cpu->threads); /* the library cuts its work when a kernel is made */
    if (alloc_probe_begin(KERNEL_ROOM, "a kernel of oneDNN", err) != PONS_OK)
        return err->status;
    status = make_convolution(cpu->library, p, kernel, err);
    alloc_probe_end();
    return status;
}

const conv_operations onednn_operations = {
    .supports = supports, .profitable = profitable, .prepare = prepare,
};

/* Row-major [..., rows, columns], leading axes joined; stored transposed if asked. */
static dnnl_status_t matrix_layout(onednn_layout *layout, const pons_tensor *t, bool transpose)
{
    int rank = t->shape.rank;
    const int64_t *e = t->shape.extent;
    dnnl_dims_t extent = { 1, e[rank - 2], e[rank - 1] };
    dnnl_data_type_t type;

    if (!type_of(t->type, &type))
        return dnnl_unimplemented;
    for (int i = 0; i < rank - 2; i++)
        extent[0] *= e[i];
    if (transpose) {
        extent[1] = e[rank - 1];
        extent[2] = e[rank - 2];
    }
    return onednn_layout_new(layout, 3, extent, type, transpose ? dnnl_acb : dnnl_abc);
}

static pons_status make_matmul(onednn *o, const pons_request *request, pons_kernel *kernel,
                               bool *supported, pons_error *err)
{
    const pons_matmul_attributes *m = request->attributes;
    onednn_layout a = NULL, b = NULL, c = NULL;
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status;
    pons_status result = PONS_OK;

    if ((status = matrix_layout(&a, &request->input[0], m->transpose_a)) == dnnl_success &&
        (status = matrix_layout(&b, &request->input[1], m->transpose_b)) == dnnl_success &&
        (status = matrix_layout(&c, &request->output[0], false)) == dnnl_success)
        status = onednn_matmul_describe(&description, o->engine, a, b, c, o->attributes);
    if (status == dnnl_success)
        status = decline_late(&description);
    if (status == dnnl_success) {
        argument_plan plan[ARGUMENTS] = {
            { DNNL_ARG_SRC, dnnl_query_src_md, false, 0, a },
            { DNNL_ARG_WEIGHTS, dnnl_query_weights_md, false, 1, b },
            { DNNL_ARG_DST, dnnl_query_dst_md, true, 0, c },
        };
        result = kernel_make(o, description, plan, request, kernel, err);
        kernel->implementation = "onednn";
        *supported = result == PONS_OK;
    } else if (status != dnnl_unimplemented) {
        result = refuse(err, "describe a matrix product", status);
    }
    onednn_layout_free(a);
    onednn_layout_free(b);
    onednn_layout_free(c);
    return result;
}

pons_status onednn_prepare_matmul(const cpu_device *cpu, const pons_request *request,
                                  pons_kernel *kernel, bool *supported, pons_error *err)
{
    pons_status status;

    *supported = false;
    omp_set_num_threads(cpu->threads);
    if (alloc_probe_begin(KERNEL_ROOM, "a kernel of oneDNN", err) != PONS_OK)
        return err->status;
    status = make_matmul(cpu->library, request, kernel, supported, err);
    alloc_probe_end();
    return status;
}
