/*
 * plugin_check.c - the checks of all kinds, their options, and the check of a schedule.
 */
#include "cli/plugin/plugin_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pons/schedule.h>

#include "base/arena.h"
#include "config/config.h"
#include "plugin/plugin_options.h"

/*
 * Values of options without a default. A row is for a name that plugins of a kind share, or for a
 * type. It may apply only to plugins with the option 'beside': a model with 'upsample_kernel_size'
 * has a stride into its first level too.
 */
typedef struct small_value {
    const char *name;
    pons_option_type type;
    const char *value, *beside;
} small_value;

static const small_value small[] = {
    { "channels", PONS_OPTION_INTEGERS, "4 8", NULL },
    { "features_per_stage", PONS_OPTION_INTEGERS, "2 4", "kernel_sizes" },
    { "kernel_sizes", PONS_OPTION_TRIPLES, "3", "features_per_stage" },
    { "strides", PONS_OPTION_TRIPLES, "1 2", "features_per_stage" },
    { "strides", PONS_OPTION_TRIPLES, "1 1 2", "upsample_kernel_size" },
    { "strides", PONS_OPTION_TRIPLES, "2", NULL },
    { "kernel_size", PONS_OPTION_TRIPLES, "3 3 3", "upsample_kernel_size" },
    { "upsample_kernel_size", PONS_OPTION_TRIPLES, "1 2", NULL },
    { "from", PONS_OPTION_REALS, "10 90", NULL },
    { "factors", PONS_OPTION_REALS, "0.5", NULL },
    { "mm", PONS_OPTION_REAL_AXES, "1.3 1.7 1.1", NULL },
    { "extent", PONS_OPTION_AXES, "15 13 12", NULL },
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

/*
 * Values that replace defaults: the smallest network, random transforms of probability 1, and one
 * of the two options of which a schedule needs one.
 */
static const small_value quick[] = {
    { "every", PONS_OPTION_INTEGER, "3", "milestones" },
    { "gamma", PONS_OPTION_REAL, "0.9", "end_factor" },
    { "filters", PONS_OPTION_INTEGERS, "2 4 4", "upsample_kernel_size" },
    { "init_filters", PONS_OPTION_INTEGER, "2", "blocks_down" },
    { "num_groups", PONS_OPTION_INTEGER, "2", NULL },
    { "blocks_down", PONS_OPTION_INTEGERS, "1 1", "blocks_up" },
    { "blocks_up", PONS_OPTION_INTEGERS, "1", "blocks_down" },
    { "features", PONS_OPTION_INTEGERS, "1 1 2 2 2 1", "upsample" },
    { "filters", PONS_OPTION_INTEGER, "2", "receptive_field" },
    { "base_filters", PONS_OPTION_INTEGER, "2", "n_blocks" },
    { "n_blocks", PONS_OPTION_INTEGER, "1", "base_filters" },
    { "ch", PONS_OPTION_INTEGER, "4", "ch_mult" },
    { "ch_mult", PONS_OPTION_INTEGERS, "1 2", "ch" },
    { "num_res_blocks", PONS_OPTION_INTEGER, "1", "ch" },
    { "depth", PONS_OPTION_CHOICE, "10", "block_inplanes" },
    { "block_inplanes", PONS_OPTION_INTEGERS, "2 2 4 4", "depth" },
    { "depth", PONS_OPTION_CHOICE, "10", "stem_szs" },
    { "stem_szs", PONS_OPTION_INTEGERS, "2 2 2", "depth" },
    { "widen", PONS_OPTION_REAL, "0.03125", "stem_szs" },
    { "probability", PONS_OPTION_REAL, "1", NULL },
    { "rotate_range", PONS_OPTION_REALS, "0.5", "shear_range" },
};

/* The list's value for an option, or NULL. */
static const char *find_value(const small_value *list, size_t count, const pons_option *options,
                              const pons_option *o)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].type == o->type
            && (list[i].name == NULL || strcmp(list[i].name, o->name) == 0)
            && (list[i].beside == NULL || option_find(options, list[i].beside) != NULL))
            return list[i].value;
    return NULL;
}

/* Add a value. If it replaces a default, it is added to 'used'. */
static void add_value(arena *memory, const char *kind, const pons_option *o, const char *value,
                      const char **set, int *count, const char **used)
{
    set[(*count)++] = arena_format(memory, "%s.%s=%s", kind, o->name, value);
    if (o->fallback != NULL)
        *used = arena_format(memory, "%s%s%s = %s", *used, **used != '\0' ? ", " : "", o->name,
                             value);
}

/*
 * Open the values of the command line, preceded by small values of required options. Defaults stay
 * if 'used' is NULL.
 */
static pons_status open_values(const plugin *p, const invocation *call, config **values,
                               char **used, pons_error *err)
{
    const pons_option *options = p->descriptor->options;
    const char *replaced = "";
    const char *kind = plugin_kind_name((pons_kind)p->descriptor->kind);
    arena *memory = arena_new();
    const char **set;
    int rows = 0, count = 0;
    pons_status status;

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (const pons_option *o = options; o != NULL && o->name != NULL; o++)
        rows++;
    set = arena_alloc(memory, (size_t)(rows + call->set_count + 1) * sizeof *set);
    for (const pons_option *o = options; o != NULL && o->name != NULL; o++) {
        const char *value = NULL;
        if (config_set_value(memory, call->set_count, call->set, kind, o->name) != NULL)
            continue;
        if (o->fallback == NULL)
            value = find_value(small, sizeof small / sizeof *small, options, o);
        else if (used != NULL)
            value = find_value(quick, sizeof quick / sizeof *quick, options, o);
        if (value != NULL || o->fallback == NULL)
            add_value(memory, kind, o, value != NULL ? value : "", set, &count, &replaced);
    }
    for (int i = 0; i < call->set_count; i++)
        set[count++] = call->set[i];
    status = config_open(NULL, count, set, values, err);
    if (status == PONS_OK && used != NULL && (*used = strdup(replaced)) == NULL) {
        config_close(*values);
        status = pons_fail(err, PONS_DEVICE, "out of memory");
    }
    arena_free(memory);
    return status;
}

static pons_status open_options(const plugin *p, const invocation *call, void **target,
                                config **values, char **used, pons_error *err)
{
    const char *kind = plugin_kind_name((pons_kind)p->descriptor->kind);
    pons_status status = open_values(p, call, values, used, err);

    if (status != PONS_OK)
        return status;
    *target = calloc(1, p->descriptor->config_size + 1);
    if (*target == NULL)
        status = pons_fail(err, PONS_DEVICE, "out of memory");
    if (status == PONS_OK)
        status = config_fill(*values, kind, p->descriptor->options, *target, err);
    if (status == PONS_OK)
        status = config_refuse_unknown(*values, err);
    if (status == PONS_OK && plugin_options_check(p, *target, err) != PONS_OK)
        status = config_location_add(*values, kind, NULL, err);
    if (status != PONS_OK) {
        config_close(*values);
        free(*target);
        if (used != NULL)
            free(*used);
    }
    return status;
}

pons_status plugin_check_options(const plugin *p, const invocation *call, void **target,
                                 config **values, pons_error *err)
{
    return open_options(p, call, target, values, NULL, err);
}

pons_status plugin_check_quick_options(const plugin *p, const invocation *call, void **target,
                                       config **values, char **used, pons_error *err)
{
    return open_options(p, call, target, values, used, err);
}

/* Check that a factor is finite, not negative, and a pure function of its arguments. */
static pons_status check_factor(const plugin *p, const void *config, pons_error *err)
{
    const pons_schedule_operations *o = p->operations;

    static const int totals[] = { 1, 7, 1000 };

    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        int total = totals[i];
        for (int t = 0; t <= total; t++) {
            double first = o->factor(config, t, total), second = o->factor(config, t, total);
            if (!isfinite(first) || first < 0)
                return pons_fail(err, PONS_PLUGIN, "factor(%d, %d) is %g, expected a finite "
                                 "number, at least 0", t, total, first);
            if (first != second)
                return pons_fail(err, PONS_PLUGIN, "factor(%d, %d) is %.17g and then %.17g, "
                                 "expected a pure function", t, total, first, second);
        }
    }
    return PONS_OK;
}

static pons_status check_schedule(const plugin *p, const invocation *call, pons_error *err)
{
    const pons_schedule_operations *o = p->operations;
    config *values;
    void *target;
    char *used;
    pons_status status;

    if (o->factor == NULL)
        return pons_fail(err, PONS_PLUGIN, "operation 'factor' is missing");
    status = plugin_check_quick_options(p, call, &target, &values, &used, err);
    if (status != PONS_OK)
        return status;
    status = check_factor(p, target, err);
    if (status == PONS_OK && used[0] != '\0')
        printf("schedule %s: checked with %s\n", p->descriptor->name, used);
    config_close(values);
    free(target);
    free(used);
    return status;
}

const plugin_check plugin_checks[] = {
    { PONS_KIND_MODEL, "'divisor' or 'build'",
      "gradients agree with finite differences in double, an evaluate build finds "
                       "all parameters", plugin_check_model },
    { PONS_KIND_LOSS, "'build'",
      "gradient agrees with finite differences in double", plugin_check_loss },
    { PONS_KIND_OPTIMIZER, "'update'",
      "steps can be repeated and descend", plugin_check_optimizer },
    { PONS_KIND_OP, "'shape', 'run' or 'gradient'",
      "float and double agree in one piece and in parts, nothing else is written, "
                    "the gradient agrees with finite differences", plugin_check_op },
    { PONS_KIND_SCHEDULE, "'factor'",
      "factor is finite, not negative and a pure function", check_schedule },
    { PONS_KIND_TRANSFORM, "'plan' or 'apply'",
      "a generated case is changed alike twice, its grids, positions and "
                           "label ids stay true", plugin_check_transform },
    { PONS_KIND_DEVICE, "one of the operations",
      "the smallest requests of each kind agree with the reference kernels, "
                        "twice with the same bits", plugin_check_device },
    { PONS_KIND_SINK, "'open', 'write', 'flush' or 'close'",
      "records are taken, kept on disk and continued in a scratch folder",
      plugin_check_sink },
    { PONS_KIND_COMM, "one of the operations",
      "collectives of one process change nothing, an abort ends them",
      plugin_check_comm },
    { 0, NULL, NULL, NULL }
};
