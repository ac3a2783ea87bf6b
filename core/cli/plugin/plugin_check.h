/*
 * plugin_check.h - the checks of 'pons plugin check' for each kind of plugin.
 */
#ifndef CORE_CLI_PLUGIN_PLUGIN_CHECK_H
#define CORE_CLI_PLUGIN_PLUGIN_CHECK_H

#include "cli/command.h"
#include "graph/ir/node.h"
#include "plugin/plugin_load.h"

#include <pons/optimizer.h>
#include <pons/transform.h>

typedef struct plugin_check {
    int kind;                 /* pons_kind                                                        */
    const char *operations;   /* names of the called operations, for the error about a hang       */
    const char *passed;       /* line that is printed if the check passes                         */
    pons_status (*run)(const plugin *p, const invocation *call, pons_error *err);
} plugin_check;

extern const plugin_check plugin_checks[]; /* ends with a NULL run */

/*
 * Make the plugin's configuration from --set KIND.key=value, defaults, and small values for
 * required options. *values owns texts and lists. The caller frees both.
 */
pons_status plugin_check_options(const plugin *p, const invocation *call, void **target,
                                 config **values, pons_error *err);
/*
 * The same, with other values in place of some defaults. They make the check quick, or let it see
 * an effect. *used, malloc'ed, lists them ("": none).
 */
pons_status plugin_check_quick_options(const plugin *p, const invocation *call, void **target,
                                       config **values, char **used, pons_error *err);

extern const pons_optimizer_operations plugin_check_descent; /* p - lr g                        */

/*
 * Check the gradient of 'loss' by every parameter of 'g' against finite differences, in double.
 * Inputs get small random numbers. The function owns 'g'.
 */
pons_status plugin_check_differences(pons_graph *g, pons_node *loss, pons_error *err);

/* All channels of a check's case, and its second channel alone. */
extern const pons_transform_scope plugin_check_all, plugin_check_second;

pons_status plugin_check_transform(const plugin *p, const invocation *call, pons_error *err);
pons_status plugin_check_random(const pons_transform_operations *o, const void *config,
                                pons_error *err);
/*
 * A request to check (plugin_check_requests.c). 'build' gets an image [N, D, H, W, C]. A NULL name
 * ends the table.
 */
typedef struct device_request {
    const char *name;
    pons_node *(*build)(pons_graph *g, pons_node *x, int which);
    int which;                 /* variant that 'build' makes                                      */
    bool half;                 /* check it in bf16 too                                            */
} device_request;

extern const device_request device_requests[];

/* plugin_check_device.c */
pons_status plugin_check_device(const plugin *p, const invocation *call, pons_error *err);
/* plugin_check_sink.c */
pons_status plugin_check_sink(const plugin *p, const invocation *call, pons_error *err);
/* plugin_check_op.c */
pons_status plugin_check_op(const plugin *p, const invocation *call, pons_error *err);
/* plugin_check_comm.c */
pons_status plugin_check_comm(const plugin *p, const invocation *call, pons_error *err);
/* plugin_check_graph.c */
pons_status plugin_check_model(const plugin *p, const invocation *call, pons_error *err);
pons_status plugin_check_loss(const plugin *p, const invocation *call, pons_error *err);
pons_status plugin_check_optimizer(const plugin *p, const invocation *call, pons_error *err);

#endif
