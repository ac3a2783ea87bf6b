/*
 * graph_capture.c - capture the work queued on the kernel stream as a graph, and launch the graph.
 *
 * A capture belongs to the thread that began it. Threads of other replicas may wait and allocate
 * meanwhile.
 */
#include "cuda/cuda.h"

pons_status cuda_capture_begin(void *device, pons_error *err)
{
    cuda_device *d = device;

    if (cuda_check(d, d->driver.use(d->context), "use the GPU", err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.capture(d->stream[PONS_STREAM_KERNELS],
                                           CUDA_CAPTURE_THREAD_LOCAL),
                      "record kernels", err);
}

pons_status cuda_capture_end(void *device, void **captured, pons_error *err)
{
    cuda_device *d = device;
    cuda_graph graph = NULL;
    cuda_executable executable = NULL;
    pons_status status = cuda_check(d, d->driver.end_capture(d->stream[PONS_STREAM_KERNELS],
                                                             &graph),
                                    "record kernels", err);

    if (status == PONS_OK)
        status = cuda_check(d, d->driver.graph_instantiate(&executable, graph, 0),
                            "prepare recorded kernels", err);
    if (graph != NULL)
        d->driver.graph_free(graph);
    if (status == PONS_OK)
        *captured = executable;
    return status;
}

pons_status cuda_graph_launch(void *device, void *captured, pons_error *err)
{
    cuda_device *d = device;

    if (cuda_check(d, d->driver.use(d->context), "use the GPU", err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.graph_launch(captured, d->stream[PONS_STREAM_KERNELS]),
                      "run recorded kernels", err);
}

void cuda_graph_destroy(void *device, void *captured)
{
    cuda_device *d = device;

    d->driver.use(d->context);
    d->driver.executable_free(captured);
}
