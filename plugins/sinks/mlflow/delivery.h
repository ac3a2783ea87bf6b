/*
 * delivery.h - the numbers in a run folder that a server of MLflow has not got yet.
 *
 * 'mlflow.jsonl' has a line per record: a list of metrics in the form of runs/log-batch.
 * 'mlflow.json' has the run on the server and the number of bytes of mlflow.jsonl that it has. A
 * batch that is sent twice changes nothing: the server drops metrics that are equal in all parts.
 */
#ifndef PLUGINS_SINKS_MLFLOW_DELIVERY_H
#define PLUGINS_SINKS_MLFLOW_DELIVERY_H

#include <jansson.h>
#include <pons/sink.h>

/* The options of [log.mlflow]. */
typedef struct mlflow {
    const char *uri, *experiment, *run;
    double interval_s, timeout_s, end_s;
} mlflow;

typedef struct delivery delivery;

/* DELIVERED: everything is there. LATER: worth another try. REFUSED: it is not. */
typedef enum outcome { DELIVERED, LATER, REFUSED } outcome;

/*
 * Read the state of 'folder'; 'fresh' forgets an earlier one. An end that is known is told to the
 * server after the numbers: status "RUNNING", "FINISHED", "FAILED" or "KILLED".
 */
pons_status delivery_open(const mlflow *config, const char *folder, bool fresh, delivery **out,
                          pons_error *err);
void delivery_set_status(delivery *d, const char *status);
/* The bytes of mlflow.jsonl that the server has. */
int64_t delivery_sent(const delivery *d);
/* Requests that are made or begun later end within 'seconds' of this call. Any thread. */
void delivery_limit(delivery *d, double seconds);
/* Send what is there, in batches of at most 1000 metrics. */
outcome delivery_run(delivery *d);
/* One line about the last LATER or REFUSED. */
const char *delivery_failure(const delivery *d);
void delivery_close(delivery *d);

#endif
