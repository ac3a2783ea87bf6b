/*
 * delivery.c - experiment, run, parameters, batches of metrics and the end of a run, in this order.
 * The state is written after each, so that a process that is killed leaves the rest to the next.
 */
#include "sinks/mlflow/delivery.h"

#include "base/clock.h"
#include "sinks/mlflow/client.h"
#include "sinks/run_parameters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Limits of runs/log-batch: the metrics and parameters of a request, bytes of a name, a value. */
enum { METRICS_LIMIT = 1000, PARAMETERS_LIMIT = 100, NAME_LIMIT = 250, VALUE_LIMIT = 500 };

struct delivery {
    const mlflow *config;
    client *client;
    char *folder, *path, *spool;
    const char *uri;
    json_t *state;
    char failure[400];
};

/* ---- state ----------------------------------------------------------------------------------- */

static const char *state_text(const delivery *d, const char *key)
{
    return json_string_value(json_object_get(d->state, key));
}

static outcome fail_locally(delivery *d, const char *path)
{
    snprintf(d->failure, sizeof d->failure, "cannot write '%.300s': %s", path, strerror(errno));
    return LATER;
}

static outcome save(delivery *d)
{
    char *part = NULL;
    outcome result = DELIVERED;

    if (asprintf(&part, "%s.part", d->path) < 0)
        return fail_locally(d, d->path);
    if (json_dump_file(d->state, part, JSON_INDENT(2)) != 0 || rename(part, d->path) != 0)
        result = fail_locally(d, d->path);
    free(part);
    return result;
}

static bool state_is(const delivery *d, const char *key, const char *value)
{
    const char *found = state_text(d, key);

    return found != NULL && strcmp(found, value) == 0;
}

static const char *run_name(const delivery *d)
{
    return d->config->run != NULL ? d->config->run : run_default_name(d->folder);
}

/* A state of another server or experiment keeps its end alone: there the whole run is sent. */
static void read_state(delivery *d, bool fresh)
{
    const char *experiment = d->config->experiment, *status;
    json_t *begun;

    d->state = fresh ? NULL : json_load_file(d->path, 0, NULL);
    if (state_is(d, "uri", d->uri) && state_is(d, "experiment", experiment)
        && state_text(d, "name") != NULL && state_text(d, "status") != NULL)
        return;
    status = state_text(d, "status");
    begun = json_pack("{s:s, s:s, s:s, s:I, s:s}", "uri", d->uri, "experiment", experiment, "name",
                      run_name(d), "sent", (json_int_t)0, "status",
                      status != NULL ? status : "RUNNING");
    json_decref(d->state);
    d->state = begun;
}

static const char *find_uri(const mlflow *config)
{
    const char *uri = config->uri != NULL ? config->uri : getenv("MLFLOW_TRACKING_URI");

    return uri != NULL && uri[0] != '\0' ? uri : "http://127.0.0.1:5000";
}

pons_status delivery_open(const mlflow *config, const char *folder, bool fresh, delivery **out,
                          pons_error *err)
{
    delivery *d = calloc(1, sizeof *d);

    if (d == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for mlflow");
    d->config = config;
    d->uri = find_uri(config);
    d->client = client_new(d->uri, config->timeout_s);
    d->folder = strdup(folder);
    if (asprintf(&d->path, "%s/mlflow.json", folder) < 0)
        d->path = NULL;
    if (asprintf(&d->spool, "%s/mlflow.jsonl", folder) < 0)
        d->spool = NULL;
    if (d->path != NULL && d->folder != NULL)
        read_state(d, fresh);
    if (d->client == NULL || d->folder == NULL || d->spool == NULL || d->state == NULL) {
        delivery_close(d);
        return pons_fail(err, PONS_DEVICE, "out of memory for mlflow");
    }
    *out = d;
    return PONS_OK;
}

void delivery_close(delivery *d)
{
    client_free(d->client);
    json_decref(d->state);
    free(d->folder);
    free(d->path);
    free(d->spool);
    free(d);
}

int64_t delivery_sent(const delivery *d)
{
    return json_integer_value(json_object_get(d->state, "sent"));
}

const char *delivery_failure(const delivery *d)
{
    return d->failure;
}

void delivery_limit(delivery *d, double seconds)
{
    client_set_deadline(d->client, seconds_now() + seconds);
}

void delivery_set_status(delivery *d, const char *status)
{
    json_object_set_new(d->state, "status", json_string(status));
    save(d);
}

/* ---- requests -------------------------------------------------------------------------------- */

static json_int_t milliseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (json_int_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Whether another try may succeed: no reply, too many requests, or a failure of the server. */
static outcome judge(delivery *d, reply *r)
{
    if (r->code == 200)
        return DELIVERED;
    snprintf(d->failure, sizeof d->failure, "%s", r->failure);
    return r->code == 0 || r->code == 408 || r->code == 429 || r->code >= 500 ? LATER : REFUSED;
}

static outcome post(delivery *d, const char *path, json_t *body)
{
    reply r = client_send(d->client, path, body);
    outcome result = judge(d, &r);

    reply_clear(&r);
    return result;
}

static outcome refuse_reply(delivery *d, const char *path)
{
    snprintf(d->failure, sizeof d->failure, "%s/%s: not a reply of MLflow", d->uri, path);
    return REFUSED;
}

/* Find the experiment, or create it, and put its identity into 'id'. */
static outcome find_experiment(delivery *d, char *id, size_t size)
{
    const char *name = d->config->experiment, *found;
    reply r = client_get(d->client, "experiments/get-by-name", "experiment_name", name);
    outcome result;

    if (r.code == 404) {
        reply_clear(&r);
        r = client_send(d->client, "experiments/create", json_pack("{s:s}", "name", name));
    }
    result = judge(d, &r);
    found = json_string_value(json_object_get(r.body, "experiment_id"));
    if (found == NULL)
        found = json_string_value(json_object_get(json_object_get(r.body, "experiment"),
                                                  "experiment_id"));
    if (result == DELIVERED && found == NULL)
        result = refuse_reply(d, "experiments");
    snprintf(id, size, "%s", found != NULL ? found : "");
    reply_clear(&r);
    return result;
}

static outcome create_run(delivery *d)
{
    char experiment[128];
    outcome result = find_experiment(d, experiment, sizeof experiment);
    const char *id;
    reply r;

    if (result != DELIVERED)
        return result;
    r = client_send(d->client, "runs/create", json_pack("{s:s, s:s, s:I, s:[{s:s, s:s}]}",
        "experiment_id", experiment, "run_name", state_text(d, "name"), "start_time",
        milliseconds(), "tags", "key", "mlflow.source.name", "value", "pons"));
    result = judge(d, &r);
    id = json_string_value(json_object_get(json_object_get(json_object_get(r.body, "run"), "info"),
                                           "run_id"));
    if (result == DELIVERED && id == NULL)
        result = refuse_reply(d, "runs/create");
    if (result == DELIVERED) {
        json_object_set_new(d->state, "run_id", json_string(id));
        json_object_set_new(d->state, "told", json_string("RUNNING"));
        result = save(d);
    }
    reply_clear(&r);
    return result;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* The bytes of a prefix of whole UTF-8 characters. */
static size_t whole_size(const char *text, size_t limit)
{
    size_t size = strlen(text);

    if (size <= limit)
        return size;
    for (size = limit; size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80; size--)
        continue;
    return size;
}

static void add_parameter(void *context, const char *name, const char *value)
{
    json_t *text = json_stringn(value, whole_size(value, VALUE_LIMIT));

    if (text != NULL) /* NULL: no UTF-8 */
        json_array_append_new(context, json_pack("{s:s, s:o}", "key", name, "value", text));
}

static outcome send_parameters(delivery *d)
{
    json_t *all = json_array();
    outcome result = DELIVERED;

    run_parameters_read(d->folder, add_parameter, all);
    for (size_t at = 0; result == DELIVERED && at < json_array_size(all); ) {
        json_t *some = json_array();
        for (int i = 0; i < PARAMETERS_LIMIT && at < json_array_size(all); i++, at++)
            json_array_append(some, json_array_get(all, at));
        result = post(d, "runs/log-batch", json_pack("{s:s, s:o}", "run_id",
                                                     state_text(d, "run_id"), "params", some));
    }
    json_decref(all);
    if (result != DELIVERED)
        return result;
    json_object_set_new(d->state, "parameters", json_true());
    return save(d);
}

/* ---- metrics --------------------------------------------------------------------------------- */

/*
 * Read lines up to METRICS_LIMIT, which one line of more may exceed. An unfinished line stays for
 * another time; a damaged one is left out.
 */
static json_t *read_batch(FILE *file, int64_t *end)
{
    json_t *batch = json_array();
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    while ((size = getline(&line, &room, file)) > 0 && line[size - 1] == '\n') {
        json_t *metrics = json_loadb(line, (size_t)size, 0, NULL);
        size_t count = json_array_size(batch) + json_array_size(metrics);
        if (count <= METRICS_LIMIT || json_array_size(batch) == 0) {
            json_array_extend(batch, metrics);
            *end += size;
        }
        json_decref(metrics);
        if (count >= METRICS_LIMIT)
            break;
    }
    free(line);
    return batch;
}

static outcome send_batch(delivery *d, FILE *file, bool *more)
{
    int64_t end = delivery_sent(d), begin = end;
    json_t *batch;
    outcome result = DELIVERED;

    if (fseeko(file, begin, SEEK_SET) != 0)
        return fail_locally(d, d->spool);
    batch = read_batch(file, &end);
    *more = end > begin;
    if (json_array_size(batch) > 0)
        result = post(d, "runs/log-batch", json_pack("{s:s, s:O}", "run_id",
                                                     state_text(d, "run_id"), "metrics", batch));
    json_decref(batch);
    if (result != DELIVERED || !*more)
        return result;
    json_object_set_new(d->state, "sent", json_integer(end));
    return save(d);
}

static outcome send_metrics(delivery *d)
{
    FILE *file = fopen(d->spool, "re");
    outcome result = DELIVERED;

    if (file == NULL)
        return fail_locally(d, d->spool);
    for (bool more = true; more && result == DELIVERED; )
        result = send_batch(d, file, &more);
    fclose(file);
    return result;
}

static outcome send_status(delivery *d)
{
    const char *status = state_text(d, "status");
    json_t *body = json_pack("{s:s, s:s}", "run_id", state_text(d, "run_id"), "status", status);
    outcome result;

    if (strcmp(status, "RUNNING") != 0)
        json_object_set_new(body, "end_time", json_integer(milliseconds()));
    if ((result = post(d, "runs/update", body)) != DELIVERED)
        return result;
    json_object_set_new(d->state, "told", json_string(status));
    return save(d);
}

outcome delivery_run(delivery *d)
{
    outcome result = DELIVERED;

    if (state_text(d, "run_id") == NULL)
        result = create_run(d);
    if (result == DELIVERED && !json_is_true(json_object_get(d->state, "parameters")))
        result = send_parameters(d);
    if (result == DELIVERED)
        result = send_metrics(d);
    if (result == DELIVERED && !state_is(d, "told", state_text(d, "status")))
        result = send_status(d);
    return result;
}
