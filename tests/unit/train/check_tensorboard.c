/*
 * check_tensorboard.c - event files equal those of TensorBoard's writer byte by byte, and a resumed
 * run's files hold each step once. tests/peers/events.py has written the golden file.
 */
#include "base/arena.h"
#include "base/file/file.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "report/sinks/network_boxes.h"
#include "sinks/tensorboard/event.h"
#include "sinks/tensorboard/graph_def.h"
#include "support/run/run_pons.h"
#include "support/run/sink_plugin.h"
#include "support/suite.h"

#include <pons/nn.h>
#include <pons/sink.h>

#include <dirent.h>

START_TEST(the_checksum_is_castagnolis_masked)
{
    uint32_t crc = 0xe3069283; /* of "123456789" */

    ck_assert_uint_eq(event_crc("123456789", 9), (crc >> 15 | crc << 17) + 0xa282ead8);
}
END_TEST

static const pons_picture liver = {
    .name = "liver_1", .width = 3, .height = 2, .png = "\x89PNG", .size = 4
};

static void write_golden_graph(FILE *file)
{
    const pons_network_node node[] = {
        { "level_1/input", "input", { 5, { 2, 1, 4, 4, 1 } }, 0, NULL },
        { "level_1/a/convolution", "convolution", { 5, { 2, 1, 4, 4, 8 } }, 1, (const int[]){ 0 } }
    };
    message event = { 0 }, graph = { 0 };

    graph_def_put(&graph, &(pons_network){ 2, node });
    event_begin(&event, 1.5, 0);
    event_put_graph(&event, &graph);
    ck_assert(event_write(file, &event));
    message_free(&event);
    message_free(&graph);
}

/* Write the five events of the golden file. */
static void write_events(FILE *file)
{
    message event = { 0 }, summary = { 0 };

    event_begin(&event, 1, 0);
    event_put_version(&event);
    ck_assert(event_write(file, &event));
    write_golden_graph(file);
    summary_put_scalar(&summary, "step/loss", 0.5f);
    summary_put_scalar(&summary, "step/lr", 0.25f);
    event_begin(&event, 2.5, 300);
    event_put_summary(&event, &summary);
    ck_assert(event_write(file, &event));
    summary.size = 0;
    summary_put_image(&summary, "case/liver_1", "columns", &liver);
    event_begin(&event, 3, 300);
    event_put_summary(&event, &summary);
    ck_assert(event_write(file, &event));
    event_begin(&event, 3.5, 301);
    event_put_start(&event);
    ck_assert(event_write(file, &event));
    message_free(&event);
    message_free(&summary);
}

START_TEST(records_are_those_of_tensorboards_writer)
{
    char *expected, *found;
    size_t expected_size, found_size;
    pons_error err = PONS_ERROR_INIT;

    make_root();
    FILE *file = fopen(in_root("events"), "w");
    write_events(file);
    fclose(file);
    ck_assert_int_eq(file_read(golden_path("sinks/tensorboard.events"), 4096, &expected,
                               &expected_size, PONS_DATA, &err), PONS_OK);
    ck_assert_int_eq(file_read(in_root("events"), 4096, &found, &found_size, PONS_DATA, &err),
                     PONS_OK);
    ck_assert_uint_eq(found_size, expected_size);
    ck_assert_mem_eq(found, expected, found_size);
    free(expected);
    free(found);
    remove_root();
}
END_TEST

/* ---- resumed runs ---------------------------------------------------------------------------- */

static const pons_network network = {
    1, &(const pons_network_node){ "input", "input", { 1, { 3 } }, 0, NULL }
};

/*
 * Write the network, and a record for each step, a validation every second one, and its picture
 * when two more steps are done, or at the end.
 */
static void write_steps(pons_sink_kept keep, int first, int last)
{
    const pons_sink_operations *o = sink_plugin("tensorboard");
    pons_error err = PONS_ERROR_INIT;
    pons_picture late = liver;
    void *sink;

    ck_assert_msg(o->open(NULL, root, keep, &sink, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(o->network(sink, &network, &err), PONS_OK);
    for (int step = first; step <= last; step++) {
        pons_metric m[] = { { "loss", 1.0 / step }, { "dice.a", 0.0 / 0.0 } };
        ck_assert_int_eq(o->write(sink, &(pons_record){ "step", step, 0, 2, m }, &err), PONS_OK);
        if (step % 2 == 0 && late.step > 0)
            ck_assert_int_eq(o->picture(sink, &late, &err), PONS_OK);
        if (step % 2 == 0)
            late.step = step;
        if (step % 2 == 0)
            ck_assert_int_eq(o->write(sink, &(pons_record){ "validation", step, 0, 1, m }, &err),
                             PONS_OK);
    }
    if (late.step > 0)
        ck_assert_int_eq(o->picture(sink, &late, &err), PONS_OK);
    ck_assert_int_eq(o->flush(sink, &err), PONS_OK);
    o->close(sink);
}

static int is_event_file(const struct dirent *e)
{
    return strstr(e->d_name, ".tfevents.") != NULL;
}

/* "g s1 s2 v2 | s3 c2": graph, steps, validations and cases in the order in which they are read. */
static const char *events_of_root(void)
{
    static char text[512];
    struct dirent **entry;
    int count = scandir(root, &entry, is_event_file, alphasort);
    message event = { 0 };
    event_facts f;

    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        FILE *file = fopen(in_root(entry[i]->d_name), "r");
        if (i > 0)
            strcat(text, " |");
        while (event_read(file, &event, &f))
            if (f.step > 0)
                sprintf(text + strlen(text), " %c%d", f.tag[0] != '\0' ? f.tag[0] : '+',
                        (int)f.step);
            else if (f.graph)
                strcat(text, " g");
        fclose(file);
        free(entry[i]);
    }
    free(entry);
    message_free(&event);
    return text;
}

START_TEST(a_resumed_run_has_each_step_once)
{
    make_root();
    write_steps((pons_sink_kept){ -1, -1 }, 1, 4);
    ck_assert_str_eq(events_of_root(), " g s1 s2 v2 s3 s4 c2 v4 c4");
    write_steps((pons_sink_kept){ 3, 2 }, 4, 4); /* a start event, '+', forgets step 4 */
    ck_assert_str_eq(events_of_root(), " g s1 s2 v2 s3 c2 | +4 s4 v4 c4");
    write_steps((pons_sink_kept){ 2, 2 }, 3, 3); /* nothing of the second file is kept */
    ck_assert_str_eq(events_of_root(), " g s1 s2 v2 c2 | +3 s3");
    write_steps((pons_sink_kept){ -1, -1 }, 1, 1); /* a new run in the folder */
    ck_assert_str_eq(events_of_root(), " g s1");
    remove_root();
}
END_TEST

START_TEST(text_that_is_not_utf8_has_question_marks)
{
    message text = { 0 };
    message_field f;

    message_put_text(&text, 1, "caf\xe9 1");
    message_put_text(&text, 2, "caf\xc3\xa9 1");
    message_put_text(&text, 3, "\xed\xa0\x80"); /* a surrogate */
    ck_assert(message_find((message_view){ text.data, text.data + text.size }, 1, &f));
    ck_assert_mem_eq(f.bytes.at, "caf? 1", 6);
    ck_assert(message_find((message_view){ text.data, text.data + text.size }, 2, &f));
    ck_assert_mem_eq(f.bytes.at, "caf\xc3\xa9 1", 7);
    ck_assert(message_find((message_view){ text.data, text.data + text.size }, 3, &f));
    ck_assert_mem_eq(f.bytes.at, "???", 3);
    message_free(&text);
}
END_TEST

/* ---- the network ----------------------------------------------------------------------------- */

/* Two levels, of which the upper one is left and entered again, with a sum across the gap. */
static pons_node *make_network(pons_graph *g)
{
    const pons_conv same = { .out = 4, .kernel = PONS_CUBE(3), .padding = PONS_CUBE(1) };
    const pons_conv down = { .out = 4, .kernel = PONS_CUBE(2), .stride = PONS_CUBE(2),
                             .bias = true };
    const pons_conv up = { .out = 4, .kernel = PONS_CUBE(2), .stride = PONS_CUBE(2),
                           .transposed = true };
    pons_node *x = node_input(g, "image", PONS_F32,
                              pons_shape_make(5, (const int64_t[]){ 1, 8, 8, 8, 1 }));
    pons_node *top = pons_layer_conv(g, "net.top", &same, x);
    pons_node *low = pons_layer_conv(g, "net.low.a", &down, top);

    low = pons_layer_act(g, "net.low.a", PONS_ACT_RELU, low);
    low = pons_layer_conv(g, "net.low.b", &same, low);
    return pons_add(g, top, pons_layer_conv(g, "net.up", &up, low));
}

/* "name < input input;" of each node. */
static const char *boxes_text(const pons_network *n)
{
    static char text[2048];
    size_t used = 0;

    for (int i = 0; i < n->count; i++) {
        used += (size_t)sprintf(text + used, "%s <", n->node[i].name);
        for (int j = 0; j < n->node[i].input_count; j++)
            used += (size_t)sprintf(text + used, " %d", n->node[i].input[j]);
        used += (size_t)sprintf(text + used, "\n");
    }
    return text;
}

START_TEST(a_network_is_levels_of_modules)
{
    pons_graph *g = graph_new(false);
    arena *memory = arena_new();
    pons_network n;
    pons_node *output = make_network(g);

    network_boxes_of(output, 20, memory, &n);
    ck_assert_str_eq(boxes_text(&n), "8x8x8/input <\n"
                                     "8x8x8/net.top/weight <\n"
                                     "8x8x8/net.top/convolution < 0 1\n"
                                     "4x4x4/net.low/a/weight <\n"
                                     "4x4x4/net.low/a/convolution < 2 3\n"
                                     "4x4x4/net.low/a/bias <\n"
                                     "4x4x4/net.low/a/add < 4 5\n"
                                     "4x4x4/net.low/a/greater < 6\n"
                                     "4x4x4/net.low/a/select < 7 6\n"
                                     "4x4x4/net.low/b/weight <\n"
                                     "4x4x4/net.low/b/convolution < 8 9\n"
                                     "up_8x8x8/net.up/weight <\n"
                                     "up_8x8x8/net.up/transposed_convolution < 10 11\n"
                                     "up_8x8x8/add < 2 12\n");
    ck_assert_int_eq(n.node[13].shape.extent[4], 4);
    network_boxes_of(output, 6, memory, &n); /* too many: a node for each module */
    ck_assert_str_eq(boxes_text(&n), "8x8x8/input <\n8x8x8/net.top < 0\n4x4x4/net.low/a < 1\n"
                                     "4x4x4/net.low/b < 2\nup_8x8x8/net.up < 3\n"
                                     "up_8x8x8/add < 1 4\n");
    network_boxes_of(output, 4, memory, &n);
    ck_assert_int_eq(n.count, 0);
    graph_free(g);
    arena_free(memory);
}
END_TEST

START_TEST(files_of_others_stay)
{
    make_root();
    write_text("events.out.tfevents.1700000000.host.1.0", "of another program");
    write_steps((pons_sink_kept){ -1, -1 }, 1, 1);
    ck_assert_str_eq(root_text("events.out.tfevents.1700000000.host.1.0"), "of another program");
    remove_root();
}
END_TEST

START_TEST(a_damaged_record_ends_what_is_read)
{
    message event = { 0 };
    event_facts f;

    make_root();
    FILE *file = fopen(in_root("events"), "w+");
    write_events(file);
    fseek(file, -5, SEEK_END);
    fputc('x', file);
    rewind(file);
    for (int i = 0; i < 4; i++)
        ck_assert(event_read(file, &event, &f));
    ck_assert_int_eq(f.step, 300);
    ck_assert_str_eq(f.tag, "case/liver_1");
    ck_assert(!event_read(file, &event, &f));
    message_free(&event);
    fclose(file);
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("tensorboard");

    tcase_add_test(c, the_checksum_is_castagnolis_masked);
    tcase_add_test(c, records_are_those_of_tensorboards_writer);
    tcase_add_test(c, a_resumed_run_has_each_step_once);
    tcase_add_test(c, text_that_is_not_utf8_has_question_marks);
    tcase_add_test(c, a_network_is_levels_of_modules);
    tcase_add_test(c, files_of_others_stay);
    tcase_add_test(c, a_damaged_record_ends_what_is_read);
    return suite_run();
}
