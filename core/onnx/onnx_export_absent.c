/*
 * onnx_export_absent.c - onnx_export of a build without protobuf-c or onnx.proto.
 */
#include "onnx/onnx_export.h"

pons_status onnx_export(const onnx_request *q, const char *path, onnx_freedom *out,
                        pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "the export needs onnx, which is not in this build\n"
                     "hint: install libprotobuf-c-dev, protobuf-c-compiler and libonnx-dev, and "
                     "configure again");
}
