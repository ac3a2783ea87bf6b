/*
 * check_mlflow.c - the sink 'mlflow' beside a server that answers, fails, refuses or hangs. The
 * replies are those of a real server; tests/peers/mlflow.sh compares with one.
 */
#include "base/clock.h"
#include "sinks/mlflow/delivery.h"
#include "support/process/http_stub.h"
#include "support/run/run_pons.h"
#include "support/run/sink_plugin.h"
#include "support/suite.h"

static const pons_sink_operations *sink_operations;
static mlflow settings;
static char uri[64];

/* ---- the server ------------------------------------------------------------------------------ */

/* Requests so far, one a line, and the answer to those of 'failing': a code, or 0 for none. */
static struct {
    char log[1 << 20];
    const char *failing;
    int code, failures; /* of the latter as many, -1: all                                         */
    int metrics, largest;
    char headers[1024]; /* of the last request                                                    */
} server;

static int count_keys(const char *body)
{
    int count = 0;

    for (const char *at = body; (at = strstr(at, "\"key\":")) != NULL; at++)
        count++;
    return count;
}

static int answer(void *context, const http_request *request, const char **reply)
{
    static const struct { const char *path, *reply; int code; } known[] = {
        { "experiments/get-by-name", "{\"error_code\": \"RESOURCE_DOES_NOT_EXIST\", "
                                     "\"message\": \"none\"}", 404 },
        { "experiments/create", "{\"experiment_id\": \"7\"}", 200 },
        { "runs/create", "{\"run\": {\"info\": {\"run_id\": \"abc\"}}}", 200 },
        { "runs/", "{}", 200 },
    };
    const char *line = request->line, *body = request->body;

    (void)context;
    snprintf(server.headers, sizeof server.headers, "%s", request->headers);
    if (server.failing != NULL && strstr(line, server.failing) != NULL && server.failures != 0) {
        server.failures--;
        *reply = "{\"error_code\": \"INVALID_PARAMETER_VALUE\", \"message\": \"not\\nso\"}";
        return server.code;
    }
    snprintf(server.log + strlen(server.log), sizeof server.log - strlen(server.log), "%s %.300s\n",
             line, body);
    if (strstr(body, "\"metrics\":") != NULL) {
        int count = count_keys(body);
        server.metrics += count;
        server.largest = count > server.largest ? count : server.largest;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(line, known[i].path) != NULL) {
            *reply = known[i].reply;
            return known[i].code;
        }
    return 404;
}

static http_stub *open_server(void)
{
    http_stub *s;

    memset(&server, 0, sizeof server);
    s = http_stub_open(answer, NULL);
    snprintf(uri, sizeof uri, "http://127.0.0.1:%d", http_stub_port(s));
    settings = (mlflow){ uri, "my trial", NULL, 0, 10, 5 };
    return s;
}

/* Batches get a code, the next 'failures' of them or, with -1, all. */
static void fail_batches(int code, int failures)
{
    server.failing = "runs/log-batch";
    server.code = code;
    server.failures = failures;
}

/* An address that refuses connections. */
static void close_server_at_once(void)
{
    http_stub_close(open_server());
}

/* ---- the sink -------------------------------------------------------------------------------- */

static void *open_sink(int64_t kept)
{
    pons_error err = PONS_ERROR_INIT;
    void *sink;

    ck_assert_msg(sink_operations->open(&settings, root, (pons_sink_kept){ kept, kept }, &sink,
                                        &err) == PONS_OK, "%s", err.text);
    return sink;
}

static void write_steps(void *sink, int first, int last)
{
    pons_error err = PONS_ERROR_INIT;

    for (int step = first; step <= last; step++) {
        pons_metric m[] = { { "loss", 0.5 }, { "dice.\xc3\xa9", 1e-3 }, { "none", 0.0 / 0.0 } };
        pons_record r = { "step", step, 0, 3, m };
        ck_assert_int_eq(sink_operations->write(sink, &r, &err), PONS_OK);
    }
    ck_assert_int_eq(sink_operations->flush(sink, &err), PONS_OK);
}

/* End the run; the warning or "". */
static const char *end(void *sink, pons_status status)
{
    static char text[512];
    char again[512];

    sink_operations->end(sink, status);
    if (!sink_operations->warning(sink, text, sizeof text))
        text[0] = '\0';
    ck_assert(!sink_operations->warning(sink, again, sizeof again));
    sink_operations->close(sink);
    return text;
}

static const char *send_rest(void)
{
    static pons_error err;

    err = (pons_error)PONS_ERROR_INIT;
    sink_operations->send(&settings, root, &err);
    return err.text;
}

static void expect_logged(const char *text)
{
    ck_assert_msg(strstr(server.log, text) != NULL, "no '%s' in:\n%s", text, server.log);
}

START_TEST(a_run_is_sent_whole)
{
    http_stub *s = open_server();

    make_root();
    write_text("resolved.ini", "; pons\n\n[model]\nplugin = unet ; default\nact = \n"
                               "[optimizer]\nlr = 0.1 ; a.ini:3\n");
    void *sink = open_sink(-1);
    write_steps(sink, 1, 3);
    ck_assert_str_eq(end(sink, PONS_OK), "");
    expect_logged("GET /api/2.0/mlflow/experiments/get-by-name?experiment_name=my%20trial \n"
                  "POST /api/2.0/mlflow/experiments/create {\"name\":\"my trial\"}\n"
                  "POST /api/2.0/mlflow/runs/create {\"experiment_id\":\"7\",\"run_name\":");
    expect_logged("runs/log-batch {\"run_id\":\"abc\",\"params\":[{\"key\":\"model.plugin\","
                  "\"value\":\"unet\"},{\"key\":\"optimizer.lr\",\"value\":\"0.1\"}]}");
    expect_logged("{\"run_id\":\"abc\",\"metrics\":[{\"key\":\"step/loss\",\"value\":0.5,");
    expect_logged("{\"key\":\"step/dice.__\",\"value\":0.001,"); /* no name of MLflow has an e' */
    expect_logged("runs/update {\"run_id\":\"abc\",\"status\":\"FINISHED\",\"end_time\":");
    ck_assert_int_eq(server.metrics, 6);
    http_stub_close(s);
    remove_root();
}
END_TEST

/* Send a run; the last request has the header, and no file of the run has the secret. */
static void expect_header(const char *header, const char *secret)
{
    http_stub *s = open_server();

    make_root();
    void *sink = open_sink(-1);
    write_steps(sink, 1, 1);
    ck_assert_str_eq(end(sink, PONS_OK), "");
    ck_assert_msg(strstr(server.headers, header) != NULL, "no '%s' in:\n%s", header,
                  server.headers);
    ck_assert_ptr_null(strstr(root_text("mlflow.jsonl"), secret));
    ck_assert_ptr_null(strstr(root_text("mlflow.json"), secret));
    http_stub_close(s);
    remove_root();
}

START_TEST(passwords_and_tokens_are_sent_and_not_kept)
{
    setenv("MLFLOW_TRACKING_USERNAME", "ann", 1);
    setenv("MLFLOW_TRACKING_PASSWORD", "secret", 1);
    expect_header("Authorization: Basic YW5uOnNlY3JldA==\r\n", "secret");
    unsetenv("MLFLOW_TRACKING_USERNAME");
    unsetenv("MLFLOW_TRACKING_PASSWORD");
    setenv("MLFLOW_TRACKING_TOKEN", "a.token", 1);
    expect_header("Authorization: Bearer a.token\r\n", "a.token");
    unsetenv("MLFLOW_TRACKING_TOKEN");
    expect_header("Content-Type: application/json\r\n", "secret");
    ck_assert_ptr_null(strstr(server.headers, "Authorization"));
}
END_TEST

START_TEST(batches_are_bounded)
{
    http_stub *s = open_server();

    make_root();
    settings.interval_s = 3600; /* all at the end */
    void *sink = open_sink(-1);
    write_steps(sink, 1, 1501);
    ck_assert_str_eq(end(sink, PONS_OK), "");
    ck_assert_int_eq(server.metrics, 3002);
    ck_assert_int_eq(server.largest, 1000);
    http_stub_close(s);
    remove_root();
}
END_TEST

START_TEST(a_server_that_is_down_costs_one_warning)
{
    make_root();
    close_server_at_once();
    void *sink = open_sink(-1);
    write_steps(sink, 1, 5);
    const char *text = end(sink, PONS_INTERRUPTED);
    ck_assert_msg(strstr(text, uri) == text && strstr(text, "report RUN --send") != NULL, "%s",
                  text);
    ck_assert_ptr_nonnull(strstr(send_rest(), uri));
    http_stub *s = open_server(); /* another address, which gets the whole run */
    ck_assert_str_eq(send_rest(), "");
    ck_assert_int_eq(server.metrics, 10);
    ck_assert_str_eq(send_rest(), ""); /* nothing is left */
    ck_assert_int_eq(server.metrics, 10);
    http_stub_close(s);
    remove_root();
}
END_TEST

START_TEST(a_failure_is_tried_again)
{
    http_stub *s = open_server();

    make_root();
    fail_batches(503, 1);
    void *sink = open_sink(-1);
    write_steps(sink, 1, 2);
    for (int i = 0; i < 1000 && __atomic_load_n(&server.metrics, __ATOMIC_ACQUIRE) < 4; i++)
        usleep(10000);
    ck_assert_ptr_nonnull(strstr(end(sink, PONS_FAILURE), "code 503"));
    ck_assert_int_eq(server.metrics, 4);
    expect_logged("\"status\":\"FAILED\"");
    http_stub_close(s);
    remove_root();
}
END_TEST

START_TEST(a_refusal_is_told_in_one_line)
{
    http_stub *s = open_server();

    make_root();
    fail_batches(400, -1);
    void *sink = open_sink(-1);
    write_steps(sink, 1, 2);
    ck_assert_ptr_nonnull(strstr(end(sink, PONS_OK), "code 400: not so;"));
    ck_assert_ptr_nonnull(strstr(send_rest(), "code 400: not so"));
    server.failing = NULL;
    ck_assert_str_eq(send_rest(), "");
    ck_assert_int_eq(server.metrics, 4);
    expect_logged("\"status\":\"FINISHED\"");
    http_stub_close(s);
    remove_root();
}
END_TEST

START_TEST(a_server_that_hangs_delays_the_end_alone)
{
    http_stub *s = open_server();
    double begin;

    make_root();
    server.failing = "experiments";
    server.failures = -1; /* its code is 0 */
    settings.end_s = 0.2;
    settings.timeout_s = 60;
    void *sink = open_sink(-1);
    write_steps(sink, 1, 1);
    usleep(50000);
    begin = seconds_now();
    write_steps(sink, 2, 100);
    const char *text = end(sink, PONS_OK);
    ck_assert_msg(strstr(text, "Timeout was reached;") != NULL && strstr(text, "--send") != NULL,
                  "%s", text);
    ck_assert_double_lt(seconds_now() - begin, 30);
    http_stub_close(s);
    remove_root();
}
END_TEST

START_TEST(a_resumed_run_sends_each_step_once)
{
    http_stub *s = open_server();

    make_root();
    void *sink = open_sink(-1);
    write_steps(sink, 1, 5);
    ck_assert_str_eq(end(sink, PONS_INTERRUPTED), "");
    expect_logged("\"status\":\"KILLED\"");
    sink = open_sink(3);
    write_steps(sink, 4, 6);
    ck_assert_str_eq(end(sink, PONS_OK), "");
    ck_assert_int_eq(server.metrics, 12);
    ck_assert_ptr_eq(strstr(strstr(server.log, "runs/create") + 1, "runs/create"), NULL);
    http_stub_close(s);
    remove_root();
}
END_TEST

START_TEST(lines_that_were_not_sent_are_cut_on_resume)
{
    make_root();
    close_server_at_once();
    void *sink = open_sink(-1);
    write_steps(sink, 1, 5);
    end(sink, PONS_INTERRUPTED);
    http_stub *s = open_server();
    sink = open_sink(3);
    write_steps(sink, 4, 4);
    ck_assert_str_eq(end(sink, PONS_OK), "");
    ck_assert_int_eq(server.metrics, 8);
    http_stub_close(s);
    remove_root();
}
END_TEST

int main(void)
{
    if (!suite_has_plugin("sink/mlflow"))
        return suite_skip("check_mlflow", "curl");
    sink_operations = sink_plugin("mlflow");
    TCase *c = suite_new("mlflow");
    tcase_add_test(c, a_run_is_sent_whole);
    tcase_add_test(c, passwords_and_tokens_are_sent_and_not_kept);
    tcase_add_test(c, batches_are_bounded);
    tcase_add_test(c, a_server_that_is_down_costs_one_warning);
    tcase_add_test(c, a_failure_is_tried_again);
    tcase_add_test(c, a_refusal_is_told_in_one_line);
    tcase_add_test(c, a_server_that_hangs_delays_the_end_alone);
    tcase_add_test(c, a_resumed_run_sends_each_step_once);
    tcase_add_test(c, lines_that_were_not_sent_are_cut_on_resume);
    return suite_run();
}
