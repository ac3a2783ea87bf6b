/*
 * model.h - a model plugin: image in, logits out.
 *
 * 'build' is called once per program (training at the patch extent, evaluation at the window
 * extent) and asks pons_graph_training(g) where the two differ. Parameters and states are bound
 * by name, so every build must create the same ones.
 */
#ifndef CORE_PONS_MODEL_H
#define CORE_PONS_MODEL_H

#include <pons/graph.h>

PONS_C_BEGIN

typedef enum pons_target_kind {
    PONS_TARGET_LABELS = 1, /* u8 [N, D, H, W, 1], class ids 0 .. classes - 1; or pons_task.whole */
    PONS_TARGET_REGIONS,    /* u8 [N, D, H, W, R], 0 or 1, may overlap                            */
    PONS_TARGET_IMAGE       /* f32 [N, D, H, W, classes], values that the outputs approach        */
} pons_target_kind;

/* The task of a model. classes: entries of 'labels' (background included) or of 'regions'. */
typedef struct pons_task {
    uint32_t size;
    int channels;
    int classes;
    const char *const *class_names;
    const char *const *channel_names; /* may be NULL                                              */
    pons_target_kind target;
    bool flat;                        /* 2D: D is 1 in every patch (R26)                          */
    /* The file axis i, j, k that is flat, or -1; values per axis arrive in D H W order already. */
    int flat_axis;
    /* One class for the whole image: outputs are [N, 1, 1, 1, classes], the target is i32. */
    bool whole;
} pons_task;

typedef struct pons_named_node {
    const char *name;
    pons_node *node;
} pons_named_node;

typedef struct pons_inputs {
    int count;
    /*
     * "image": f32 [N, D, H, W, channels]. For task = synthesis also "timestep": f32 [N], the step
     * of the diffusion.
     */
    const pons_named_node *item;
} pons_inputs;

#define PONS_OUTPUTS_MAX 8

/*
 * Logits [N, D, H, W, classes], or [N, 1, 1, 1, classes] if the task is of whole images; the first
 * is the prediction, the others are deep supervision heads.
 */
typedef struct pons_outputs {
    int count;
    pons_node *item[PONS_OUTPUTS_MAX];
} pons_outputs;

typedef struct pons_model_operations {
    pons_status (*check)(const void *config, pons_error *err); /* may be NULL; see plugin.h       */
    pons_status (*build)(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err);
    /* The extent of a patch along i, j, k must be a multiple of divisor[axis]. */
    pons_status (*divisor)(const void *config, int divisor[3], pons_error *err);
} pons_model_operations;

/* The input named 'name'; a failed node if the task has none. */
pons_node *pons_input_named(pons_graph *g, const pons_inputs *inputs, const char *name);

/* The divisor of a model that takes these strides one after another: their product. */
pons_status pons_strides_divisor(const pons_triples *strides, int divisor[3], pons_error *err);

#define PONS_MODEL(NAME, VERSION, SUMMARY, OPTIONS, OPERATIONS)                                   \
    PONS_PLUGIN_DEFINE_(PONS_KIND_MODEL, pons_model_operations, NAME, VERSION, SUMMARY,           \
                        OPERATIONS, OPTIONS)

PONS_C_END

#endif
