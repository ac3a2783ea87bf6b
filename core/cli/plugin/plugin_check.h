/*
 * plugin_check.h - what 'pons plugin check' asks of each kind of plugin.
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
    const char *operations;   /* that it calls, for the line about one that does not end          */
    const char *passed;       /* what is then known                                               */
    pons_status (*run)(const plugin *p, const invocation *call, pons_error *err);
} plugin_check;

extern const plugin_check plugin_checks[]; /* ends with a NULL run */

/*
 * The plugin's configuration: --set KIND.key=value, else defaults, else (for options that must be
 * given) small values of our own. *values owns texts and lists. Free both.
 */
pons_status plugin_check_options(const plugin *p, const invocation *call, void **target,
                                 config **values, pons_error *err);
/*
 * The same, with values that make the check quick, or sure to see an effect, in place of defaults
 * as well; *used says which ("" : none), and is malloc'ed.
 */
pons_status plugin_check_quick_options(const plugin *p, const invocation *call, void **target,
                                       config **values, char **used, pons_error *err);

extern const pons_optimizer_operations plugin_check_descent; /* p - lr g                        */

/*
 * The gradient of 'loss' by every parameter of 'g' against finite differences, in double; inputs
 * get small random numbers. Takes over 'g'.
 */
pons_status plugin_check_differences(pons_graph *g, pons_node *loss, pons_error *err);

/* plugin_check_transform.c, plugin_check_random.c */
pons_status plugin_check_transform(const plugin *p, const invocation *call, pons_error *err);
pons_status plugin_check_random(const pons_transform_operations *o, const void *config,
                                pons_error *err);
/* plugin_check_requests.c; 'build' gets an image [N, D, H, W, C]; a NULL name ends the table. */
typedef struct device_request {
    const char *name;
    pons_node *(*build)(pons_graph *g, pons_node *x, int which);
    int which;                 /* which of those that it builds                                   */
    bool half;                 /* in bf16 as well                                                 */
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
