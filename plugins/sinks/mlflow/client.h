/*
 * client.h - requests of MLflow's REST interface, api/2.0/mlflow.
 *
 * Name and password, or a token, are those of MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD
 * and MLFLOW_TRACKING_TOKEN, as for MLflow's own client. Redirections are not followed.
 */
#ifndef PLUGINS_SINKS_MLFLOW_CLIENT_H
#define PLUGINS_SINKS_MLFLOW_CLIENT_H

#include <jansson.h>
#include <stdbool.h>

typedef struct client client;

/* NULL: out of memory. A request takes at most 'timeout' seconds. */
client *client_new(const char *uri, double timeout);
void client_free(client *c);
/* Requests end at this time of CLOCK_MONOTONIC, in seconds; any thread. */
void client_set_deadline(client *c, double deadline);

typedef struct reply {
    long code;          /* of HTTP; 0: there is no reply                                          */
    json_t *body;       /* NULL: none, or no JSON                                                 */
    char failure[320];  /* one line, unless 'code' is 200                                         */
} reply;

/* POST 'body' to 'path', or GET it without one. 'body' is released. */
reply client_send(client *c, const char *path, json_t *body);
void reply_clear(reply *r);
/* GET PATH?KEY=VALUE, with the value encoded. */
reply client_get(client *c, const char *path, const char *key, const char *value);

#endif
