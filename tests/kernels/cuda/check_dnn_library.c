/*
 * check_dnn_library.c - the installed cuDNN, without a GPU. Every attribute, type and kind has the
 * number of its headers. The convolutions are all those of the published and of the golden networks
 * that the device hands to cuDNN, forward and both gradients, in every precision. Each becomes a
 * graph, from which the library reports the attributes that were set, and a plan for GPUs that are
 * described in text.
 *
 * Some things need a GPU: execution of plans, their time and bits, and plans of engines that are
 * compiled at run time.
 */
#include "cuda/cudnn/cudnn.h"
#include "experiment/experiment.h"
#include "graph/program/program_internal.h"
#include "graph/reference/reference.h"
#include "support/graph/golden_program.h"
#include "support/must.h"
#include "support/suite.h"

#include <cudnn_graph.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours " is not " #theirs)
SAME(DNN_CONVOLUTION, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
SAME(DNN_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(DNN_CHOICE, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(DNN_HEURISTIC, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(DNN_KNOB, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
SAME(DNN_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(DNN_FORWARD, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
SAME(DNN_BACKWARD_FILTER, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
SAME(DNN_BACKWARD_DATA, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
SAME(DNN_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(DNN_PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(DNN_TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(DNN_CARD, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
SAME(DNN_CONVOLUTION_COMPUTE, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
SAME(DNN_CONVOLUTION_MODE, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
SAME(DNN_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_DILATIONS);
SAME(DNN_CONVOLUTION_STRIDES, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
SAME(DNN_CONVOLUTION_PADS_HIGH, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
SAME(DNN_CONVOLUTION_PADS_LOW, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
SAME(DNN_CONVOLUTION_RANK, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
SAME(DNN_HEURISTIC_MODE, CUDNN_ATTR_ENGINEHEUR_MODE);
SAME(DNN_HEURISTIC_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(DNN_HEURISTIC_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(DNN_HEURISTIC_CARD, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
SAME(DNN_CHOICE_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(DNN_CHOICE_KNOBS, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
SAME(DNN_KNOB_KIND, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
SAME(DNN_KNOB_VALUE, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
SAME(DNN_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
SAME(DNN_PLAN_CHOICE, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(DNN_PLAN_WORKSPACE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(DNN_PLAN_CARD, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
SAME(DNN_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
SAME(DNN_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
SAME(DNN_FORWARD_CONVOLUTION, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
SAME(DNN_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
SAME(DNN_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
SAME(DNN_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
SAME(DNN_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
SAME(DNN_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
SAME(DNN_DATA_CONVOLUTION, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
SAME(DNN_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
SAME(DNN_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
SAME(DNN_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
SAME(DNN_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
SAME(DNN_FILTER_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
SAME(DNN_FILTER_CONVOLUTION, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
SAME(DNN_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
SAME(DNN_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
SAME(DNN_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
SAME(DNN_GRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
SAME(DNN_GRAPH_OPERATIONS, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(DNN_TENSOR_ALIGNMENT, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
SAME(DNN_TENSOR_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(DNN_TENSOR_EXTENTS, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(DNN_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES);
SAME(DNN_TENSOR_NUMBER, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SAME(DNN_PACK_NUMBERS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(DNN_PACK_POINTERS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(DNN_PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME(DNN_ENGINE_NUMBER, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
SAME(DNN_ENGINE_NOTES, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
SAME(DNN_CARD_JSON, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
SAME(DNN_TYPE_HANDLE, CUDNN_TYPE_HANDLE);
SAME(DNN_TYPE_DATA, CUDNN_TYPE_DATA_TYPE);
SAME(DNN_TYPE_INT64, CUDNN_TYPE_INT64);
SAME(DNN_TYPE_FLOAT, CUDNN_TYPE_FLOAT);
SAME(DNN_TYPE_POINTER, CUDNN_TYPE_VOID_PTR);
SAME(DNN_TYPE_CONVOLUTION_MODE, CUDNN_TYPE_CONVOLUTION_MODE);
SAME(DNN_TYPE_HEURISTIC_MODE, CUDNN_TYPE_HEUR_MODE);
SAME(DNN_TYPE_KNOB, CUDNN_TYPE_KNOB_TYPE);
SAME(DNN_TYPE_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
SAME(DNN_TYPE_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(DNN_TYPE_CHAR, CUDNN_TYPE_CHAR);
SAME(DNN_F32, CUDNN_DATA_FLOAT);
SAME(DNN_F16, CUDNN_DATA_HALF);
SAME(DNN_BF16, CUDNN_DATA_BFLOAT16);
SAME(DNN_CROSS_CORRELATION, CUDNN_CROSS_CORRELATION);
SAME(DNN_MODE_FALLBACK, CUDNN_HEUR_MODE_FALLBACK);
SAME(DNN_MODE_A, CUDNN_HEUR_MODE_A);
SAME(DNN_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
SAME(DNN_NOTE_DOWN_CONVERT, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
SAME(DNN_NOTE_REDUCED_SUMS, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
SAME(DNN_NOTE_FFT, CUDNN_NUMERICAL_NOTE_FFT);
SAME(DNN_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
SAME(DNN_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD);
SAME(DNN_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED / 1000);
SAME(sizeof(cudnnDataType_t), sizeof(int));

/* ---- a GPU in text --------------------------------------------------------------------------- */

typedef struct card {
    int architecture;
    const char *text;
} card;

#define CARD(NAME, VERSION, COUNT, SHARED, CACHE, MEMORY, CLOCK)                                  \
    "{\"version\":1,\"deviceName\":\"" NAME "\",\"deviceVer\":" VERSION                           \
    ",\"driverVer\":13000,\"cudaDeviceId\":0,\"multiProcessorCount\":" COUNT                      \
    ",\"maxSharedMemoryPerBlockOptin\":" SHARED ",\"l2CacheSize\":" CACHE                         \
    ",\"totalGlobalMem\":" MEMORY ",\"smClockRateKHz\":" CLOCK ",\"memClockRateKHz\":2619000"     \
    ",\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64]"                   \
    ",\"regsPerBlock\":65536,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152"                   \
    ",\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32"      \
    ",\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0"                     \
    ",\"isTccDriver\":0,\"supportCoopLaunch\":1}"

static const card cards[] = {
    { 80, CARD("NVIDIA A100-SXM4-80GB", "800", "108", "166912", "41943040", "85014478848",
               "1410000") },
    { 90, CARD("NVIDIA H200", "900", "132", "232448", "62914560", "150754820096", "1980000") },
    { 75, CARD("Tesla T4", "750", "40", "65536", "4194304", "15835660288", "1590000") },
    { 100, CARD("NVIDIA B200", "1000", "148", "232448", "132644864", "191514345472", "1965000") },
};
enum { A100 = 0, H200, T4, B200 };

/* ---- networks -------------------------------------------------------------------------------- */

static const struct network {
    const char *name, *model, *arguments;
    int extent, channels, classes;
    bool flat;
} networks[] = {
    { "spleen", "unet", "{\"channels\":[16,32,64,128,256],\"strides\":[2,2,2,2],"
                        "\"num_res_units\":2,\"norm\":\"batch\"}", 96, 1, 2, false },
    { "fast spleen", "unet", "{\"channels\":[32,64,128,256,512],\"strides\":[2,2,2,2],"
                             "\"num_res_units\":2,\"norm\":\"batch\",\"dropout\":0.2}",
      96, 1, 2, false },
    { "brain tumours by unet", "unet", "{\"channels\":[16,32,64,128,256],\"strides\":[2,2,2,2],"
                                       "\"num_res_units\":2}", 64, 4, 3, false },
    { "nobrainer", "unet", "{\"channels\":[16,32,64,128,256],\"strides\":[2,2,2,2],"
                           "\"norm\":\"batch\",\"act\":\"relu\"}", 64, 1, 2, false },
    { "brain tumours", "segresnet", "{\"init_filters\":16}", 64, 4, 3, false },
    { "nnU-Net", "dynunet", "{\"kernel_size\":[[3,3,3],[3,3,3],[3,3,3],[3,3,3],[3,3,3]],"
                            "\"strides\":[[1,1,1],[2,2,2],[2,2,2],[2,2,2],[2,2,2]],"
                            "\"upsample_kernel_size\":[[2,2,2],[2,2,2],[2,2,2],[2,2,2]]}",
      128, 1, 3, false },
    { "2D", "unet", "{\"channels\":[16,32,64],\"strides\":[2,2],\"num_res_units\":2}", 64, 1, 2,
      true },
};
enum { NETWORKS = sizeof networks / sizeof *networks, GOLDEN = 11 };

/* ---- a device that only collects ------------------------------------------------------------- */

/* A complete request that is handed to cuDNN. */
typedef struct wanted {
    pons_request request;
    pons_tensor in[2], out;
    pons_convolution convolution;
    cudnn_convolution taken;
} wanted;

enum { WANTED = 2000 };

static struct {
    cudnn_library dnn;
    device reference;
    int count, taken[PONS_KERNEL_KIND_COUNT], left, strided, of_one, flat;
    wanted item[WANTED];
} planner;

static bool is_same(const pons_request *a, const pons_request *b)
{
    return a->kind == b->kind && a->tf32 == b->tf32
        && memcmp(a->input, b->input, 2 * sizeof *a->input) == 0
        && memcmp(a->output, b->output, sizeof *a->output) == 0
        && memcmp(a->attributes, b->attributes, sizeof(pons_convolution)) == 0;
}

static void collect_request(const pons_request *r)
{
    const pons_convolution *v = r->attributes;
    wanted *w = &planner.item[planner.count];

    for (int i = 0; i < planner.count; i++)
        if (is_same(&planner.item[i].request, r))
            return;
    ck_assert_int_lt(planner.count++, WANTED);
    *w = (wanted){ .request = *r, .in = { r->input[0], r->input[1] }, .out = r->output[0],
                   .convolution = *v };
    w->request.input = w->in;
    w->request.output = &w->out;
    w->request.attributes = &w->convolution;
    w->request.name = kernel_kind_name(r->kind);
    ck_assert(cudnn_supports(&w->request, &w->taken));
    planner.taken[r->kind]++;
    planner.strided += v->stride[1] > 1;
    planner.of_one += w->taken.w.shape.extent[2] == 1;
    planner.flat += w->taken.flat;
}

static pons_status collect_one(void *handle, const pons_request *r, pons_kernel *kernel,
                               bool *supported, pons_error *err)
{
    cudnn_convolution c;

    if (cudnn_supports(r, &c))
        collect_request(r);
    else if (r->kind >= PONS_KERNEL_CONVOLUTION
             && r->kind <= PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        planner.left++;
    return planner.reference.operations->prepare(planner.reference.handle, r, kernel, supported,
                                                 err);
}

static void collect_network(const char *name, json_t *arguments, pons_shape image,
                            int classes, bool flat, precision p)
{
    pons_device_operations operations = *planner.reference.operations;
    device d = planner.reference;
    program_settings settings = { .precision = p, .micro_batches = 1, .accumulate = 1,
                                  .bucket = 1 << 22 };
    golden_plugin model, loss, optimizer;
    golden_net net;
    program *made;
    storage *s;

    operations.prepare = collect_one;
    d.operations = &operations;
    golden_load(&model, PONS_KIND_MODEL, name, sizeof(pons_model_operations), arguments, flat);
    golden_load(&loss, PONS_KIND_LOSS, "dice_ce", sizeof(pons_loss_operations), NULL, false);
    golden_load(&optimizer, PONS_KIND_OPTIMIZER, "sgd", sizeof(pons_optimizer_operations), NULL,
                false);
    settings.optimizer = optimizer.plugin->operations;
    settings.optimizer_config = optimizer.options;
    MUST(storage_new(&d, &s, &error));
    net = golden_build(&model, &loss, image, classes, flat, true);
    MUST(program_new(s, &d, net.graph, net.loss, 1, &net.logits, &settings, &made, &error));
    program_free(made);
    storage_free(s);
    golden_unload(&model);
    golden_unload(&loss);
    golden_unload(&optimizer);
}

static void collect_published(const struct network *n, precision p)
{
    json_t *arguments;

    MUST(json_parse(n->arguments, strlen(n->arguments), "arguments", PONS_DATA, &arguments,
                    &error));
    collect_network(n->model, arguments,
                    (pons_shape){ 5, { 2, n->flat ? 1 : n->extent, n->extent, n->extent,
                                       n->channels } }, n->classes, n->flat, p);
    json_decref(arguments);
}

static int collect_golden(precision p)
{
    const json_t *c;
    golden g;
    int count = 0;
    size_t i;

    golden_open(&g, "networks");
    json_array_foreach(g.cases, i, c) {
        json_t *arguments = json_object_get(c, "arguments");
        if (golden_network_plugin(c) == NULL || arguments == NULL)
            continue;
        collect_network(golden_network_plugin(c), arguments,
                        golden_image_shape(golden_find(&g, "%s/image",
                                                       golden_text(c, "name"))),
                        (int)golden_number(arguments, "out_channels"),
                        golden_number(arguments, "spatial_dims") == 2, p);
        count++;
    }
    golden_close(&g);
    return count;
}

/*
 * All requests differ. Each kind includes some with strides, some of a single point and some in 2D.
 */
static void collect_all(precision p)
{
    for (int k = 0; k < NETWORKS; k++)
        collect_published(&networks[k], p);
    ck_assert_int_eq(collect_golden(p), GOLDEN);
    for (int kind = PONS_KERNEL_CONVOLUTION; kind <= PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT;
         kind++)
        ck_assert_int_gt(planner.taken[kind], 30);
    ck_assert_int_gt(planner.left, 0);
    ck_assert_int_gt(planner.strided, 30);
    ck_assert_int_gt(planner.of_one, 10);
    ck_assert_int_gt(planner.flat, 10);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static cudnn_descriptor describe_card(cudnn_list *l, const card *c)
{
    cudnn_descriptor d = cudnn_add(l, DNN_CARD);

    cudnn_set(l, d, DNN_CARD_JSON, DNN_TYPE_CHAR, (int64_t)strlen(c->text) + 1, c->text);
    cudnn_finish(l, d);
    return d;
}

static const struct way {
    int card;
    precision precision;
    bool deterministic;
    size_t workspace;
} ways[] = {
    { A100, PRECISION_BF16, false, (size_t)1 << 30 },
    { A100, PRECISION_BF16, true, (size_t)32 << 20 },
    { A100, PRECISION_FP16, false, (size_t)1 << 30 },
    { A100, PRECISION_TF32, false, (size_t)1 << 30 },
    { A100, PRECISION_FP32, true, (size_t)1 << 30 },
    { H200, PRECISION_BF16, false, (size_t)1 << 30 },
    { H200, PRECISION_BF16, true, (size_t)32 << 20 },
    { H200, PRECISION_FP16, true, (size_t)1 << 30 },
    { H200, PRECISION_TF32, true, (size_t)1 << 30 },
    { H200, PRECISION_FP32, true, (size_t)1 << 30 },
    { T4, PRECISION_FP16, false, (size_t)1 << 30 },
    { T4, PRECISION_FP32, true, (size_t)1 << 30 },
    { B200, PRECISION_BF16, false, (size_t)1 << 30 },
    { B200, PRECISION_FP16, true, (size_t)1 << 30 },
    { B200, PRECISION_TF32, false, (size_t)1 << 30 },
    { B200, PRECISION_FP32, true, (size_t)1 << 30 },
};
enum { WAYS = sizeof ways / sizeof *ways };

START_TEST(every_convolution_of_the_networks_is_planned)
{
    const struct way *way = &ways[_i];
    cudnn_list l = { .dnn = &planner.dnn };
    const cudnn_constraints wishes = { .architecture = cards[way->card].architecture,
                                       .deterministic = way->deterministic, .workspace
                                           = way->workspace,
                                       .card = describe_card(&l, &cards[way->card]) };
    size_t most = 0;
    cudnn_plan plan;

    ck_assert_int_eq(l.status, 0);
    collect_all(way->precision);
    for (int i = 0; i < planner.count; i++) {
        const wanted *w = &planner.item[i];
        MUST(cudnn_plan_make(&planner.dnn, &w->taken, &wishes, &plan, &error));
        ck_assert_msg(plan.plan != NULL, "no engine on sm_%d for %s of %lld to %lld channels in %s",
                      wishes.architecture, w->request.name, (long long)w->taken.x.shape.extent[4],
                      (long long)w->taken.y.shape.extent[4], precision_name(way->precision));
        ck_assert_uint_le(plan.workspace, wishes.workspace);
        most = plan.workspace > most ? plan.workspace : most;
        cudnn_plan_free(&plan);
    }
    ck_assert_uint_gt(most, 0);
    cudnn_list_free(&l);
}
END_TEST

/* ---- attributes that the library reports ----------------------------------------------------- */

static void expect_attribute(cudnn_descriptor d, int attribute, int type, int64_t count,
                             const void *expected, size_t size, const char *what)
{
    char found[64] = { 0 };
    int64_t told = 0;

    ck_assert_uint_le((size_t)count * size, sizeof found);
    ck_assert_msg(planner.dnn.get(d, attribute, type, count, &told, found) == 0, "%s is not told",
                  what);
    ck_assert_msg(told == count && memcmp(found, expected, (size_t)count * size) == 0,
                  "%s is another one", what);
}

static void expect_numbers(cudnn_descriptor d, int attribute, int64_t count,
                           const int64_t *expected, const char *what)
{
    expect_attribute(d, attribute, DNN_TYPE_INT64, count, expected, sizeof *expected, what);
}

/*
 * A tensor [N, D, H, W, C] as the library stores it: N, C, D, H, W and the strides of those axes.
 */
static void expect_tensor(cudnn_descriptor d, pons_tensor t, bool flat, int64_t number)
{
    const int64_t *e = t.shape.extent, rows = e[2] * e[3] * e[4];
    const int64_t extents[2][5] = { { e[0], e[4], e[1], e[2], e[3] }, { e[0], e[4], e[2], e[3] } };
    const int64_t strides[2][5] = { { e[1] * rows, 1, rows, e[3] * e[4], e[4] },
                                    { e[1] * rows, 1, e[3] * e[4], e[4] } };
    const int type = t.type == PONS_F32 ? CUDNN_DATA_FLOAT
                   : t.type == PONS_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;

    expect_numbers(d, CUDNN_ATTR_TENSOR_DIMENSIONS, flat ? 4 : 5, extents[flat], "an extent");
    expect_numbers(d, CUDNN_ATTR_TENSOR_STRIDES, flat ? 4 : 5, strides[flat], "a stride");
    expect_numbers(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 1, &number, "a tensor's number");
    expect_attribute(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type, sizeof type,
                     "a type");
}

static void expect_convolution(cudnn_descriptor d, const pons_convolution *v, bool flat)
{
    const int type = CUDNN_DATA_FLOAT;
    const int64_t rank = flat ? 2 : 3;
    int64_t step[3], wide[3], low[3], high[3];

    for (int a = 0; a < rank; a++) {
        step[a] = v->stride[a + flat];
        wide[a] = v->dilation[a + flat];
        low[a] = v->pad_low[a + flat];
        high[a] = v->pad_high[a + flat];
    }
    expect_numbers(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 1, &rank, "the rank");
    expect_numbers(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, rank, step, "a kernel's step");
    expect_numbers(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, rank, wide, "a dilation");
    expect_numbers(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, rank, low, "a low pad");
    expect_numbers(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, rank, high, "a high pad");
    expect_attribute(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type,
                     sizeof type, "the type of sums");
}

/*
 * Attributes of an operation, and the tensors of the operation that are a request's inputs and
 * output.
 */
static const struct sides {
    int alpha, beta, place[3];
} sides[PONS_KERNEL_KIND_COUNT] = {
    [PONS_KERNEL_CONVOLUTION] = {
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, { DNN_X, DNN_W, DNN_Y } },
    [PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT] = {
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, { DNN_Y, DNN_W, DNN_X } },
    [PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT] = {
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, { DNN_X, DNN_Y, DNN_W } },
};

/*
 * Attributes of the three tensors, of the convolution and of the operation, which is the last
 * descriptor before the graph.
 *
 * The library does not report a graph's operations, a convolution's mode and a tensor's alignment.
 * The tensors of an operation are copies with one more axis and other numbers.
 */
static void expect_all_attributes(const wanted *w)
{
    const struct sides *of = &sides[w->request.kind];
    const pons_tensor whole[3] = { w->in[0], w->in[1], w->out };
    const float one = 1, zero = 0;
    cudnn_list l = { .dnn = &planner.dnn };
    cudnn_descriptor node;

    cudnn_graph(&l, &w->taken, NULL);
    ck_assert_msg(l.status == 0, "%s: %d", l.failed, l.status);
    node = l.item[l.count - 2];
    expect_attribute(node, of->alpha, CUDNN_TYPE_FLOAT, 1, &one, sizeof one, "alpha");
    expect_attribute(node, of->beta, CUDNN_TYPE_FLOAT, 1, &zero, sizeof zero, "beta");
    expect_convolution(l.item[l.count - 3], &w->convolution, w->taken.flat);
    for (int i = 0; i < 3; i++) {
        pons_tensor t = whole[i];
        if (of->place[i] == DNN_W)
            t.type = w->in[0].type; /* the gradient becomes float afterwards                      */
        expect_tensor(l.item[of->place[i] - DNN_X], t, w->taken.flat, of->place[i]);
    }
    cudnn_list_free(&l);
}

START_TEST(cudnn_reports_every_attribute_as_it_was_set)
{
    static const precision all[] = { PRECISION_FP32, PRECISION_BF16, PRECISION_FP16 };

    collect_all(all[_i]);
    for (int i = 0; i < planner.count; i++)
        expect_all_attributes(&planner.item[i]);
}
END_TEST

/* ---- candidates ------------------------------------------------------------------------------ */

static const struct direction {
    pons_kernel_kind kind;
    int x, w, out;             /* inputs and output among the tensors x, w, y                     */
} directions[] = {
    { PONS_KERNEL_CONVOLUTION, 0, 1, 2 }, { PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT, 2, 1, 0 },
    { PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT, 0, 2, 1 },
};

/* The name of each candidate leads to the same engine and workspace. */
static void find_candidates_by_name(const pons_request *r, const cudnn_constraints *w, int *knobs)
{
    cudnn_candidates all, again;
    cudnn_convolution c;
    cudnn_plan plan;

    ck_assert(cudnn_supports(r, &c));
    MUST(cudnn_candidates_make(&planner.dnn, &c, w, DNN_CANDIDATES, &all, &error));
    ck_assert_int_gt(all.count, 1);
    for (int i = 0; i < all.count; i++) {
        cudnn_constraints one = *w;
        one.name = all.item[i].name;
        *knobs += strstr(one.name, ", knobs ") != NULL;
        MUST(cudnn_candidates_make(&planner.dnn, &c, &one, DNN_CANDIDATES, &again, &error));
        ck_assert_msg(again.count == 1, "%d of '%s'", again.count, one.name);
        ck_assert_int_eq(again.item[0].engine, all.item[i].engine);
        ck_assert_uint_eq(again.item[0].workspace, all.item[i].workspace);
        cudnn_candidates_take(&again, 0, &plan);
        cudnn_plan_free(&plan);
    }
    cudnn_candidates_take(&all, -1, &plan);
    cudnn_plan_free(&plan);
}

START_TEST(every_candidate_is_found_by_its_name)
{
    const struct card *card = &cards[_i];
    pons_tensor t[3] = { { PONS_BF16, { 5, { 2, 48, 48, 48, 32 } } },
                         { PONS_BF16, { 5, { 64, 3, 3, 3, 32 } } },
                         { PONS_BF16, { 5, { 2, 48, 48, 48, 64 } } } };
    const pons_convolution v = { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, 1 };
    cudnn_list l = { .dnn = &planner.dnn };
    const cudnn_constraints w = { .architecture = card->architecture, .workspace = (size_t)1 << 30,
                                  .card = describe_card(&l, card) };
    int knobs = 0;

    for (size_t i = 0; i < sizeof directions / sizeof *directions; i++) {
        const struct direction *d = &directions[i];
        const pons_tensor in[2] = { t[d->x], t[d->w] };
        pons_tensor out = t[d->out];
        out.type = d->out == 1 ? PONS_F32 : PONS_BF16;
        find_candidates_by_name(&(pons_request){ .kind = d->kind, .name = "y", .input_count = 2,
                                                 .output_count = 1, .input = in, .output = &out,
                                                 .attributes = &v }, &w, &knobs);
    }
    ck_assert_int_gt(knobs, 0);
    cudnn_list_free(&l);
}
END_TEST

/*
 * Options that AddressSanitizer reads. cuDNN does not free all of its memory. check_dnn finds leaks
 * of our memory.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

int main(void)
{
    TCase *c = suite_new("dnn library");

    cudnn_find(&planner.dnn);
    if (planner.dnn.library == NULL || planner.dnn.version < 90800) {
        fprintf(stderr, "no cuDNN of 9.8 or later, which configure has found: %s\n",
                planner.dnn.missing);
        return 1;
    }
    device_reference(&planner.reference, false);
    tcase_add_loop_test(c, every_convolution_of_the_networks_is_planned, 0, WAYS);
    tcase_add_loop_test(c, cudnn_reports_every_attribute_as_it_was_set, 0, 3);
    tcase_add_loop_test(c, every_candidate_is_found_by_its_name, A100, H200 + 1);
    return suite_run();
}
