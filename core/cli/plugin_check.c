/*
 * plugin_check.c - the checks of all kinds, and those that need no graph.
 */
#include "cli/plugin_check.h"

#include "base/arena.h"
#include "config/config.h"

#include <math.h>
#include <pons/schedule.h>
#include <stdlib.h>
#include <string.h>

/*
 * Values for options without a default, by the names that models share, else by type. A model with
 * 'upsample_kernel_size' has a stride into its first level as well.
 */
static const struct {
    const char *name; pons_option_type type; const char *value, *beside;
} small[] = {
    { "channels", PONS_OPTION_INTEGERS, "4 8", NULL },
    { "strides", PONS_OPTION_TRIPLES, "1 2 2", "upsample_kernel_size" },
    { "strides", PONS_OPTION_TRIPLES, "2", NULL },
    { "kernel_size", PONS_OPTION_TRIPLES, "3 3 3", "upsample_kernel_size" },
    { "upsample_kernel_size", PONS_OPTION_TRIPLES, "2 2", NULL },
    { NULL, PONS_OPTION_REAL, "1", NULL },
    { NULL, PONS_OPTION_INTEGER, "1", NULL },
    { NULL, PONS_OPTION_SIZE, "4096", NULL },
    { NULL, PONS_OPTION_REALS, "1", NULL },
    { NULL, PONS_OPTION_INTEGERS, "1", NULL },
    { NULL, PONS_OPTION_AXES, "1", NULL },
    { NULL, PONS_OPTION_REAL_AXES, "1", NULL },
    { NULL, PONS_OPTION_TRIPLES, "1", NULL },
    { NULL, PONS_OPTION_TEXT, "text", NULL },
};

static bool has_option(const pons_option *options, const char *name)
{
    while (options->name != NULL && strcmp(options->name, name) != 0)
        options++;
    return options->name != NULL;
}

static const char *small_value(const pons_option *options, const pons_option *o)
{
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (small[i].type == o->type
            && (small[i].name == NULL || strcmp(small[i].name, o->name) == 0)
            && (small[i].beside == NULL || has_option(options, small[i].beside)))
            return small[i].value;
    return "";
}

/* The command line's values, and before them small ones for what must be given. */
static pons_status open_values(const plugin *p, const invocation *call, config **values,
                               pons_error *err)
{
    const char *kind = plugin_kind_name((pons_kind)p->descriptor->kind);
    arena *memory = arena_new();
    const char **set;
    int rows = 0, count = 0;
    pons_status status;

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (const pons_option *o = p->descriptor->options; o != NULL && o->name != NULL; o++)
        rows++;
    set = arena_alloc(memory, (size_t)(rows + call->set_count + 1) * sizeof *set);
    for (const pons_option *o = p->descriptor->options; o != NULL && o->name != NULL; o++)
        if (o->fallback == NULL)
            set[count++] = arena_format(memory, "%s.%s=%s", kind, o->name,
                                        small_value(p->descriptor->options, o));
    for (int i = 0; i < call->set_count; i++)
        set[count++] = call->set[i];
    status = config_open(NULL, count, set, values, err);
    arena_free(memory);
    return status;
}

pons_status plugin_check_options(const plugin *p, const invocation *call, void **target,
                                 config **values, pons_error *err)
{
    const char *kind = plugin_kind_name((pons_kind)p->descriptor->kind);
    pons_status status = open_values(p, call, values, err);

    if (status != PONS_OK)
        return status;
    *target = calloc(1, p->descriptor->config_size + 1);
    if (*target == NULL)
        status = pons_fail(err, PONS_DEVICE, "out of memory");
    if (status == PONS_OK)
        status = config_fill(*values, kind, p->descriptor->options, *target, err);
    if (status == PONS_OK)
        status = config_refuse_unknown(*values, err);
    if (status != PONS_OK) {
        config_close(*values);
        free(*target);
    }
    return status;
}

/* A factor is finite, not negative, and a pure function of its arguments. */
static pons_status check_factor(const plugin *p, const void *config, pons_error *err)
{
    const pons_schedule_operations *o = p->operations;

    for (int t = 0; t <= 100; t++) {
        double first = o->factor(config, t, 100), second = o->factor(config, t, 100);
        if (!isfinite(first) || first < 0)
            return pons_fail(err, PONS_PLUGIN, "factor(%d, 100) is %g, expected a finite number, "
                             "at least 0", t, first);
        if (first != second)
            return pons_fail(err, PONS_PLUGIN, "factor(%d, 100) is %.17g and then %.17g, expected "
                             "a pure function", t, first, second);
    }
    return PONS_OK;
}

static pons_status check_schedule(const plugin *p, const invocation *call, pons_error *err)
{
    const pons_schedule_operations *o = p->operations;
    config *values;
    void *target;
    pons_status status;

    if (o->factor == NULL)
        return pons_fail(err, PONS_PLUGIN, "operation 'factor' is missing");
    status = plugin_check_options(p, call, &target, &values, err);
    if (status != PONS_OK)
        return status;
    status = check_factor(p, target, err);
    config_close(values);
    free(target);
    return status;
}

const plugin_check plugin_checks[] = {
    { PONS_KIND_MODEL, "gradients agree with finite differences in double, an evaluate build finds "
                       "all parameters", plugin_check_model },
    { PONS_KIND_LOSS, "gradient agrees with finite differences in double", plugin_check_loss },
    { PONS_KIND_OPTIMIZER, "steps can be repeated and descend", plugin_check_optimizer },
    { PONS_KIND_OP, "float and double agree in one piece and in parts, nothing else is written, "
                    "the gradient agrees with finite differences", plugin_check_op },
    { PONS_KIND_SCHEDULE, "factor is finite, not negative and a pure function", check_schedule },
    { PONS_KIND_COMM, "collectives of one process change nothing, an abort ends them",
      plugin_check_comm },
    { 0, NULL, NULL }
};
