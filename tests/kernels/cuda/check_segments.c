/*
 * check_segments.c - a training step of the golden and of the published networks is at most six
 * launches. Replicas are alone, summed by the host or summed on the GPU, with any number of
 * buckets. The driver of tests/fake counts the launches.
 */
#include "device/device_open.h"
#include "fake/fake.h"
#include "graph/program/explain.h"
#include "support/graph/fakes.h"
#include "support/graph/golden_program.h"
#include "support/must.h"
#include "support/suite.h"

#include <string.h>

enum { SEGMENTS = 6, GOLDEN = 11, BUCKET = 512 };

/* ---- replicas -------------------------------------------------------------------------------- */

typedef struct sums {
    int started, waited;
} sums;

static pons_status start_sum(void *context, void *buffer, int64_t size, pons_type type,
                             void **pending, pons_error *err)
{
    ((sums *)context)->started++;
    return PONS_OK;
}

static pons_status wait_sum(void *context, void *pending, pons_error *err)
{
    ((sums *)context)->waited++;
    return PONS_OK;
}

/* The collective of a replica without others: the sums are its own. */
static const struct way {
    const char *name;
    bool joined, on_card;
} ways[] = {
    { "alone", false, false }, { "dp and ddp", true, false }, { "ddp by NCCL", true, true }
};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- networks -------------------------------------------------------------------------------- */

typedef struct network {
    const char *name, *model;
    json_t *arguments;
    pons_shape image;
    int classes;
    bool flat, runs;           /* runs: the network has few operations                            */
} network;

static long (*count)(fake_deed deed);
static device card;

static void run_step(program *p, uint64_t number)
{
    step_result result;

    MUST(program_step_begin(p, number, &error));
    MUST(program_micro(p, 0, &error));
    MUST(program_step_finish(p, 0, &result, &error));
}

/* Every launch is the launch of a captured graph. */
static void count_step(const network *n, const struct way *way, program *p, const sums *s)
{
    program_facts facts;
    long launches, graphs;
    int started;

    program_describe(p, &facts);
    ck_assert_msg(facts.captured_graph_count >= 2 && facts.captured_graph_count <= SEGMENTS,
                  "%s, %s: %d segments", n->name, way->name, facts.captured_graph_count);
    ck_assert_msg(!way->joined || facts.bucket_count > SEGMENTS, "%s: %d buckets", n->name,
                  facts.bucket_count);
    if (!n->runs)
        return;
    run_step(p, 0);
    launches = count(FAKE_LAUNCHES);
    graphs = count(FAKE_GRAPH_LAUNCHES);
    started = s->started;
    run_step(p, 1);
    ck_assert_int_eq(count(FAKE_LAUNCHES) - launches, 0);
    ck_assert_int_eq(count(FAKE_GRAPH_LAUNCHES) - graphs, facts.captured_graph_count);
    ck_assert_int_eq(s->started - started, way->joined ? facts.bucket_count : 0);
}

static void check_network(const network *n, const struct way *way)
{
    sums s = { 0 };
    const program_collective others = { .count = 1, .context = &s, .start = start_sum,
                                        .wait = wait_sum,
                                        .stream = !way->on_card ? NULL
                                            : card.operations->streams.comm_stream(card.handle,
                                                                                  &error) };
    program_settings settings = { .precision = PRECISION_FP32, .micro_batches = 1, .accumulate = 1,
                                  .collective = way->joined ? &others : NULL, .bucket = BUCKET };
    golden_plugin model, loss, optimizer;
    golden_net net;
    storage *weights;
    program *p;

    golden_load(&model, PONS_KIND_MODEL, n->model, sizeof(pons_model_operations), n->arguments,
                n->flat);
    golden_load(&loss, PONS_KIND_LOSS, "dice_ce", sizeof(pons_loss_operations), NULL, false);
    golden_load(&optimizer, PONS_KIND_OPTIMIZER, "sgd", sizeof(pons_optimizer_operations), NULL,
                false);
    settings.optimizer = optimizer.plugin->operations;
    settings.optimizer_config = optimizer.options;
    net = golden_build(&model, &loss, n->image, n->classes, n->flat, true);
    MUST(storage_new(&card, &weights, &error));
    MUST(program_new(weights, &card, net.graph, net.loss, 0, NULL, &settings, &p, &error));
    MUST(storage_initialise(weights, 1, &error));
    count_step(n, way, p, &s);
    program_free(p);
    storage_free(weights);
    golden_unload(&model);
    golden_unload(&loss);
    golden_unload(&optimizer);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void open_card(void)
{
    golden_device(&golden_modes[0], &card);
    *(void **)&count = fakes_function("fake_count");
}

static void close_card(void) { device_close(&card); }

START_TEST(a_step_of_golden_networks_has_few_launches)
{
    const char *before = "";
    const json_t *c;
    int networks = 0;
    size_t i;
    golden g;

    golden_open(&g, "networks");
    json_array_foreach(g.cases, i, c) {
        network n = { .name = golden_text(c, "name"),
                      .model = golden_network_plugin(c),
                      .arguments = json_object_get(c, "arguments") };
        if (n.model == NULL || n.arguments == NULL)
            continue;
        n.image = golden_image_shape(golden_find(&g, "%s/image", n.name));
        n.classes = (int)golden_number(n.arguments, "out_channels");
        n.flat = golden_number(n.arguments, "spatial_dims") == 2;
        n.runs = strcmp(n.model, before) != 0; /* one network of each model                       */
        before = n.model;
        check_network(&n, &ways[_i]);
        networks++;
    }
    ck_assert_int_eq(networks, GOLDEN);
    golden_close(&g);
}
END_TEST

/* Networks with the channels and depths of published ones. Extents do not matter. */
static const struct {
    const char *name, *model, *arguments;
    int channels, classes;
} published[] = {
    { "spleen", "unet", "{\"channels\":[16,32,64,128,256],\"strides\":[2,2,2,2],"
                        "\"num_res_units\":2,\"norm\":\"batch\"}", 1, 2 },
    { "fast spleen", "unet", "{\"channels\":[32,64,128,256,512],\"strides\":[2,2,2,2],"
                             "\"num_res_units\":2,\"norm\":\"batch\",\"dropout\":0.2}", 1, 2 },
    { "brain tumours by unet", "unet", "{\"channels\":[16,32,64,128,256],\"strides\":[2,2,2,2],"
                                       "\"num_res_units\":2}", 4, 3 },
    { "nobrainer", "unet", "{\"channels\":[16,32,64,128,256],\"strides\":[2,2,2,2],"
                           "\"norm\":\"batch\",\"act\":\"relu\"}", 1, 2 },
    { "brain tumours", "segresnet", "{\"init_filters\":16}", 4, 3 },
    { "nnU-Net", "dynunet", "{\"kernel_size\":[[3,3,3],[3,3,3],[3,3,3],[3,3,3],[3,3,3]],"
                            "\"strides\":[[1,1,1],[2,2,2],[2,2,2],[2,2,2],[2,2,2]],"
                            "\"upsample_kernel_size\":[[2,2,2],[2,2,2],[2,2,2],[2,2,2]]}", 1, 3 },
};

START_TEST(a_step_of_published_networks_has_few_launches)
{
    json_t *arguments;

    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        network n = { .name = published[i].name, .model = published[i].model,
                      .image = { 5, { 1, 32, 32, 32, published[i].channels } },
                      .classes = published[i].classes };
        MUST(json_parse(published[i].arguments, strlen(published[i].arguments), "arguments",
                        PONS_DATA, &arguments, &error));
        n.arguments = arguments;
        check_network(&n, &ways[_i]);
        json_decref(arguments);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("segments");

    tcase_add_checked_fixture(c, open_card, close_card);
    fakes_add_loop_test(c, a_step_of_golden_networks_has_few_launches, 0, WAYS);
    fakes_add_loop_test(c, a_step_of_published_networks_has_few_launches, 0, WAYS);
    return suite_run();
}
