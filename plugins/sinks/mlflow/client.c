/*
 * client.c - requests by libcurl.
 */
#include "sinks/mlflow/client.h"

#include "base/clock.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct client {
    CURL *curl;
    struct curl_slist *headers;
    char *uri;
    double timeout;
    _Atomic double deadline;
};

/* A longer reply is cut, and then is no JSON. */
enum { REPLY_LIMIT = 1 << 20 };

typedef struct text {
    char *data;
    size_t size;
} text;

static size_t on_data(char *data, size_t one, size_t count, void *context)
{
    text *t = context;
    size_t size = one * count;
    char *larger;

    if (t->size + size > REPLY_LIMIT || (larger = realloc(t->data, t->size + size + 1)) == NULL)
        return 0;
    memcpy(larger + t->size, data, size);
    t->data = larger;
    t->size += size;
    return size;
}

/* libcurl calls this at least once a second; anything but 0 ends the request. */
static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const client *owner = context;

    (void)a, (void)b, (void)c, (void)d;
    return seconds_now() > atomic_load(&owner->deadline);
}

static bool add_header(client *c, const char *line)
{
    struct curl_slist *longer = curl_slist_append(c->headers, line);

    if (longer != NULL)
        c->headers = longer;
    return longer != NULL;
}

static bool set_up(client *c, const char *uri)
{
    const char *token = getenv("MLFLOW_TRACKING_TOKEN");
    char *line = NULL;
    bool good = (c->uri = strdup(uri)) != NULL && (c->curl = curl_easy_init()) != NULL
                && add_header(c, "Content-Type: application/json") && add_header(c, "Expect:");

    if (good && token != NULL) {
        good = asprintf(&line, "Authorization: Bearer %s", token) >= 0 && add_header(c, line);
        free(line);
    }
    for (size_t size = good ? strlen(c->uri) : 0; size > 0 && c->uri[size - 1] == '/'; size--)
        c->uri[size - 1] = '\0';
    return good;
}

client *client_new(const char *uri, double timeout)
{
    client *c = calloc(1, sizeof *c);

    if (c == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        free(c);
        return NULL;
    }
    c->timeout = timeout;
    atomic_init(&c->deadline, 1e300);
    if (!set_up(c, uri)) {
        client_free(c);
        return NULL;
    }
    return c;
}

void client_free(client *c)
{
    if (c == NULL)
        return;
    curl_easy_cleanup(c->curl);
    curl_slist_free_all(c->headers);
    free(c->uri);
    free(c);
    curl_global_cleanup();
}

void client_set_deadline(client *c, double deadline)
{
    atomic_store(&c->deadline, deadline);
}

static void set_options(client *c, const char *url, const char *sent, text *got)
{
    const char *user = getenv("MLFLOW_TRACKING_USERNAME");
    const char *password = getenv("MLFLOW_TRACKING_PASSWORD");

    curl_easy_reset(c->curl);
    curl_easy_setopt(c->curl, CURLOPT_URL, url);
    curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)(1e3 * c->timeout));
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, got);
    curl_easy_setopt(c->curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c->curl, CURLOPT_XFERINFODATA, c);
    if (user != NULL)
        curl_easy_setopt(c->curl, CURLOPT_USERNAME, user);
    if (password != NULL)
        curl_easy_setopt(c->curl, CURLOPT_PASSWORD, password);
    if (sent != NULL)
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, sent);
}

/* Describe a reply that is none, or not 200, in one line. */
static void describe(const client *c, const char *path, CURLcode code, reply *r)
{
    const char *why = json_string_value(json_object_get(r->body, "message"));

    if (code != CURLE_OK)
        snprintf(r->failure, sizeof r->failure, "%s: %s", c->uri, curl_easy_strerror(code));
    else
        snprintf(r->failure, sizeof r->failure, "%s/%s: code %ld%s%.200s", c->uri, path, r->code,
                 why != NULL ? ": " : "", why != NULL ? why : "");
    for (char *at = r->failure; *at != '\0'; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
}

static void request(client *c, const char *path, const char *url, const char *sent, reply *r)
{
    text got = { NULL, 0 };
    CURLcode code;

    set_options(c, url, sent, &got);
    code = seconds_now() > atomic_load(&c->deadline) ? CURLE_OPERATION_TIMEDOUT
                                                     : curl_easy_perform(c->curl);
    if (code == CURLE_ABORTED_BY_CALLBACK) /* by on_progress, at the deadline                     */
        code = CURLE_OPERATION_TIMEDOUT;
    if (code == CURLE_OK)
        curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &r->code);
    if (got.size > 0)
        r->body = json_loadb(got.data, got.size, 0, NULL);
    if (r->code != 200)
        describe(c, path, code, r);
    free(got.data);
}

reply client_send(client *c, const char *path, json_t *body)
{
    reply r = { 0, NULL, "out of memory" };
    char *url = NULL, *sent = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;

    if ((body == NULL || sent != NULL)
        && asprintf(&url, "%s/api/2.0/mlflow/%s", c->uri, path) >= 0) {
        request(c, path, url, sent, &r);
        free(url);
    }
    free(sent);
    json_decref(body);
    return r;
}

reply client_get(client *c, const char *path, const char *key, const char *value)
{
    reply r = { 0, NULL, "out of memory" };
    char *encoded = curl_easy_escape(c->curl, value, 0), *whole = NULL;

    if (encoded != NULL && asprintf(&whole, "%s?%s=%s", path, key, encoded) >= 0) {
        r = client_send(c, whole, NULL);
        free(whole);
    }
    curl_free(encoded);
    return r;
}

void reply_clear(reply *r)
{
    json_decref(r->body);
    r->body = NULL;
}
