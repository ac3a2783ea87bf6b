/*
 * op.h - an op plugin: a kind of node that the builders of graph.h cannot compose.
 *
 * Compose first: nodes of graph.h fuse with their neighbours, run on every device and have their
 * gradient for nothing. An op is right if elements depend on many others in a way that no
 * reduction, convolution or pool has: a sort, a distance transform, a filter that is adapted at
 * each voxel. A model or a loss names it:
 *
 *     y = pons_op(g, "box_mean", pons_name(g, "radius = %d", radius), 1, &x);
 *
 * The plugin is a struct with its option table, the functions below, and
 *
 *     static const pons_op_operations operations = {
 *         .input_count = 1, .sliced = true, .shape = shape, .run_float = run_float,
 *         .run_double = run_double, .gradient = gradient
 *     };
 *     PONS_OP(box_mean, "1.0", "mean of a box around each voxel", options, operations);
 *
 * An op has 1 to PONS_OP_INPUTS_MAX inputs (f32, or u8 and i32 for labels and indices) and one f32
 * output. It is a pure function of its inputs and options: two nodes with equal options and inputs
 * become one, and the backward pass may compute it again. Its inputs and its output stay f32 in
 * bf16 programs. 'pons plugin check FILE.so' holds it to all that is said here.
 */
#ifndef CORE_PONS_OP_H
#define CORE_PONS_OP_H

#include <pons/graph.h>

PONS_C_BEGIN

#define PONS_OP_INPUTS_MAX 8

/*
 * Arguments of 'run'. Tensors are dense and row-major. The output is seen as rows of its last axis
 * (rank 0: one row of one element); rows begin .. end - 1 are to be written, every element of them,
 * and nothing else. Inputs may be read anywhere. An op allocates nothing: further memory is a
 * second input or on the stack.
 */
typedef struct pons_op_call {
    const void *config;
    const pons_tensor *input;   /* types and shapes; what is f32 is double in run_double          */
    const void *const *from;    /* their elements                                                 */
    pons_shape shape;           /* of the output                                                  */
    void *to;                   /* its first row, whatever 'begin'                                */
    int64_t begin, end;
} pons_op_call;

typedef struct pons_op_operations {
    pons_status (*check)(const void *config, pons_error *err); /* may be NULL; see plugin.h       */
    int input_count;
    /*
     * Rows may be computed on several threads at once, each a part of them. The parts do not depend
     * on the number of threads, so neither do the bits, as long as a row does not depend on
     * 'begin'.
     */
    bool sliced;
    /*
     * The shape of the output, or a status with one line of what is wrong with the inputs: after it
     * 'run' cannot fail. Called when a graph is built, on its thread.
     */
    pons_status (*shape)(const void *config, const pons_tensor *input, pons_shape *output,
                         pons_error *err);
    /* The same function in float and in double; the tests of gradients need the second (R13). */
    void (*run_float)(const pons_op_call *call);
    void (*run_double)(const pons_op_call *call);
    /*
     * Give gradient[i] a node for every input that is wanted, from dy, that of the output. NULL:
     * nothing depends on it. It has the shape of the input, or one that the input is repeated to.
     * The node may be an op again: pons_op, or pons_op_again with this op's own options. Without
     * this operation nothing can be trained through the op.
     */
    pons_status (*gradient)(pons_graph *g, const void *config, pons_node *const *input,
                            pons_node *output, pons_node *dy, const bool *wanted,
                            pons_node **gradient, pons_error *err);
    /*
     * NULL, or CUDA C for devices that compile it; 'pons plugin show' prints it, and the devices of
     * this version do not use it. It defines
     *
     *     extern "C" __global__ void NAME(float *to, const void *const *from,
     *                                     const long long *extent, const unsigned char *config)
     *
     * with extent[6 t + axis] that of tensor t (0: the output, then the inputs; missing axes are 1,
     * shapes are aligned at their last axis) and 'config' the bytes of the options' struct.
     */
    const char *cuda;
    /*
     * Types and shapes for 'pons plugin check', number 0, 1, ...; false: there is no such one.
     * NULL: the check looks among images and their usual companions for shapes that 'shape'
     * accepts.
     */
    bool (*example)(const void *config, int number, pons_tensor *input);
} pons_op_operations;

#define PONS_OP(NAME, VERSION, SUMMARY, OPTIONS, OPERATIONS)                                      \
    PONS_PLUGIN_DEFINE_(PONS_KIND_OP, pons_op_operations, NAME, VERSION, SUMMARY,                 \
                        OPERATIONS, OPTIONS)

PONS_C_END

#endif
