/*
 * check_dnn_library.c - the installed cuDNN itself, without a card: every attribute, type and kind
 * has the number of its headers, and every convolution of the published networks that the device
 * hands to it, forward and both gradients, becomes a graph and a plan for a card that is described
 * in text.
 *
 * What this cannot show, as it needs a card: that plans run, their time and bits; and plans of
 * engines that compile when they are made, which load what they have compiled.
 */
#include "../plugins/devices/cuda/dnn.h"
#include "golden_program.h"
#include "suite.h"

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

/* ---- a card in text -------------------------------------------------------------------------- */

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
};
enum { CARDS = sizeof cards / sizeof *cards };

/* ---- networks -------------------------------------------------------------------------------- */

static pons_error error;

#define MUST(call) ck_assert_msg((error = (pons_error)PONS_ERROR_INIT, (call)) == PONS_OK, "%s",  \
                                 error.text)

static const struct network {
    const char *name, *model, *arguments;
    int extent, channels, classes;
    bool flat;
} networks[] = {
    { "spleen", "unet", "{\"channels\":[16,32,64,128,256],\"strides\":[2,2,2,2],"
                        "\"num_res_units\":2,\"norm\":\"batch\"}", 96, 1, 2, false },
    { "brats", "segresnet", "{\"init_filters\":16}", 64, 4, 3, false },
    { "nnU-Net", "dynunet", "{\"kernel_size\":[[3,3,3],[3,3,3],[3,3,3],[3,3,3],[3,3,3]],"
                            "\"strides\":[[1,1,1],[2,2,2],[2,2,2],[2,2,2],[2,2,2]],"
                            "\"upsample_kernel_size\":[[2,2,2],[2,2,2],[2,2,2],[2,2,2]]}",
      128, 1, 3, false },
    { "2D", "unet", "{\"channels\":[16,32,64],\"strides\":[2,2],\"num_res_units\":2}", 64, 1, 2,
      true },
};
enum { NETWORKS = sizeof networks / sizeof *networks };

/* ---- a device that only plans ---------------------------------------------------------------- */

static struct {
    cuda_dnn dnn;
    dnn_wishes wishes;
    device reference;
    int taken[PONS_KERNEL_KIND_COUNT], left;
    size_t workspace;
} planner;

static pons_status plan_one(void *handle, const pons_request *r, pons_kernel *kernel,
                            bool *supported, pons_error *err)
{
    dnn_convolution c;
    dnn_plan plan;

    if (dnn_takes(r, &c)) {
        MUST(dnn_plan_make(&planner.dnn, &c, &planner.wishes, &plan, &error));
        ck_assert_msg(plan.plan != NULL, "no engine for '%s'", r->name);
        ck_assert_uint_le(plan.workspace, planner.wishes.workspace);
        planner.taken[r->kind]++;
        if (plan.workspace > planner.workspace)
            planner.workspace = plan.workspace;
        dnn_plan_free(&plan);
    } else if (r->kind >= PONS_KERNEL_CONVOLUTION
               && r->kind <= PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT) {
        planner.left++;
    }
    return planner.reference.operations->prepare(planner.reference.handle, r, kernel, supported,
                                                 err);
}

static void plan_network(const struct network *n, precision p)
{
    pons_device_operations operations = *planner.reference.operations;
    device d = planner.reference;
    program_settings settings = { .precision = p, .micro_batches = 1, .accumulate = 1,
                                  .bucket = 1 << 22 };
    json_document arguments;
    golden_plugin model, loss, optimizer;
    golden_net net;
    program *made;
    storage *s;

    operations.prepare = plan_one;
    d.operations = &operations;
    MUST(json_parse(n->arguments, strlen(n->arguments), "arguments", PONS_DATA, &arguments,
                    &error));
    golden_load(&model, PONS_KIND_MODEL, n->model, sizeof(pons_model_operations), arguments.root,
                n->flat);
    golden_load(&loss, PONS_KIND_LOSS, "dice_ce", sizeof(pons_loss_operations), NULL, false);
    golden_load(&optimizer, PONS_KIND_OPTIMIZER, "sgd", sizeof(pons_optimizer_operations), NULL,
                false);
    settings.optimizer = optimizer.plugin->operations;
    settings.optimizer_config = optimizer.options;
    MUST(storage_new(&d, &s, &error));
    net = golden_build(&model, &loss,
                       (pons_shape){ 5, { 2, n->flat ? 1 : n->extent, n->extent, n->extent,
                                          n->channels } }, n->classes, n->flat, true);
    MUST(program_new(s, &d, net.graph, net.loss, 1, &net.logits, &settings, &made, &error));
    program_free(made);
    storage_free(s);
    golden_unload(&model);
    golden_unload(&loss);
    golden_unload(&optimizer);
    json_free(&arguments);
}

static dnn_descriptor describe_card(dnn_list *l, const card *c)
{
    dnn_descriptor d = dnn_add(l, DNN_CARD);

    dnn_set(l, d, DNN_CARD_JSON, DNN_TYPE_CHAR, (int64_t)strlen(c->text) + 1, c->text);
    dnn_finish(l, d);
    return d;
}

static void plan_all(precision p, bool deterministic, size_t workspace)
{
    for (int i = 0; i < CARDS; i++) {
        dnn_list l = { .dnn = &planner.dnn };
        planner.wishes = (dnn_wishes){ .architecture = cards[i].architecture,
                                       .deterministic = deterministic, .workspace = workspace,
                                       .card = describe_card(&l, &cards[i]) };
        ck_assert_int_eq(l.status, 0);
        for (int k = 0; k < NETWORKS; k++)
            plan_network(&networks[k], p);
        dnn_list_free(&l);
    }
    for (int kind = PONS_KERNEL_CONVOLUTION; kind <= PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT;
         kind++)
        ck_assert_int_gt(planner.taken[kind], CARDS * NETWORKS);
    ck_assert_int_gt(planner.left, 0);
}

START_TEST(every_convolution_of_the_networks_is_planned_in_bf16)
{
    plan_all(PRECISION_BF16, false, (size_t)1 << 30);
}
END_TEST

START_TEST(also_where_bits_are_to_be_equal)
{
    plan_all(PRECISION_BF16, true, (size_t)1 << 30);
}
END_TEST

START_TEST(also_in_fp32_without_tensor_cores)
{
    plan_all(PRECISION_FP32, true, (size_t)1 << 30);
}
END_TEST

START_TEST(also_with_a_small_workspace)
{
    plan_all(PRECISION_BF16, true, (size_t)32 << 20);
    ck_assert_uint_gt(planner.workspace, 0);
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

/* Each is found again by its name, and is the same: engine, workspace. */
static void names_lead_back(const pons_request *r, const dnn_wishes *w, int *knobs)
{
    dnn_candidates all, again;
    dnn_convolution c;
    dnn_plan plan;

    ck_assert(dnn_takes(r, &c));
    MUST(dnn_candidates_make(&planner.dnn, &c, w, DNN_CANDIDATES, &all, &error));
    ck_assert_int_gt(all.count, 1);
    for (int i = 0; i < all.count; i++) {
        dnn_wishes one = *w;
        one.name = all.item[i].name;
        *knobs += strstr(one.name, ", knobs ") != NULL;
        MUST(dnn_candidates_make(&planner.dnn, &c, &one, DNN_CANDIDATES, &again, &error));
        ck_assert_msg(again.count == 1, "%d of '%s'", again.count, one.name);
        ck_assert_int_eq(again.item[0].engine, all.item[i].engine);
        ck_assert_uint_eq(again.item[0].workspace, all.item[i].workspace);
        dnn_candidates_take(&again, 0, &plan);
        dnn_plan_free(&plan);
    }
    dnn_candidates_take(&all, -1, &plan);
    dnn_plan_free(&plan);
}

START_TEST(every_candidate_has_a_name_that_leads_back)
{
    const struct card *card = &cards[_i];
    pons_tensor t[3] = { { PONS_BF16, { 5, { 2, 48, 48, 48, 32 } } },
                         { PONS_BF16, { 5, { 64, 3, 3, 3, 32 } } },
                         { PONS_BF16, { 5, { 2, 48, 48, 48, 64 } } } };
    const pons_convolution v = { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, 1 };
    dnn_list l = { .dnn = &planner.dnn };
    const dnn_wishes w = { .architecture = card->architecture, .workspace = (size_t)1 << 30,
                           .card = describe_card(&l, card) };
    int knobs = 0;

    for (size_t i = 0; i < sizeof directions / sizeof *directions; i++) {
        const struct direction *d = &directions[i];
        const pons_tensor in[2] = { t[d->x], t[d->w] };
        pons_tensor out = t[d->out];
        out.type = d->out == 1 ? PONS_F32 : PONS_BF16;
        names_lead_back(&(pons_request){ .kind = d->kind, .name = "y", .input_count = 2,
                                         .output_count = 1, .input = in, .output = &out,
                                         .attributes = &v }, &w, &knobs);
    }
    ck_assert_int_gt(knobs, 0);
    dnn_list_free(&l);
}
END_TEST

/* Read by AddressSanitizer: cuDNN keeps memory of its own. Ours is weighed in check_dnn. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

int main(void)
{
    TCase *c = suite_new("dnn library");

    dnn_find(&planner.dnn);
    if (planner.dnn.library == NULL || planner.dnn.version < 90800) {
        fprintf(stderr, "no cuDNN of 9.8 or later, which configure has found: %s\n",
                planner.dnn.missing);
        return 1;
    }
    device_reference(&planner.reference, false);
    tcase_add_test(c, every_convolution_of_the_networks_is_planned_in_bf16);
    tcase_add_test(c, also_where_bits_are_to_be_equal);
    tcase_add_test(c, also_in_fp32_without_tensor_cores);
    tcase_add_test(c, also_with_a_small_workspace);
    tcase_add_loop_test(c, every_candidate_has_a_name_that_leads_back, 0, CARDS);
    return suite_run();
}
