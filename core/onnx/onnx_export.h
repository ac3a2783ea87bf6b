/*
 * onnx_export.h - write a trained network as an ONNX model, opset 17.
 */
#ifndef CORE_ONNX_ONNX_EXPORT_H
#define CORE_ONNX_ONNX_EXPORT_H

#include "infer/predict.h"

typedef struct onnx_request {
    const predictor *network;
    bool probabilities;       /* the output is activated, else it has the logits                  */
    bool fixed;               /* extents are those of the window, else they are free              */
    const char *version;      /* of pons, for the model's producer                                */
} onnx_request;

/*
 * The extents N, D, H, W that a model accepts: 'extent' and multiples of 'step' more or less, from
 * 'smallest' on.
 */
typedef struct onnx_freedom {
    int64_t extent[4], smallest[4];
    int64_t step[4];          /* 0: fixed                                                         */
} onnx_freedom;

/*
 * Write the evaluation graph and its weights (f32) to 'path', complete or not at all.
 *
 * Input 'image' [N, C, D, H, W] ([N, C, H, W] of a 2D network), after the preprocessing that the
 * metadata names; D, H, W are the axes i, j, k of a file. Output 'logits' or 'probabilities',
 * [N, classes, D, H, W]; of a classification [N, classes]. N, D, H and W are free where the graph
 * allows it, which *out tells.
 *
 * PONS_CONFIG: a node has no rule, which the line names; the build lacks ONNX; over 2 GiB.
 */
pons_status onnx_export(const onnx_request *q, const char *path, onnx_freedom *out,
                        pons_error *err);

#endif
