/*
 * graph_capture.c - what is put into the queue of kernels, captured as a graph and launched as one.
 *
 * A capture concerns the thread that has begun it: others, of other replicas, go on to wait and to
 * allocate meanwhile.
 */
#include "cuda/cuda.h"

pons_status cuda_record(void *device, pons_error *err)
{
    cuda_device *d = device;

    if (cuda_check(d, d->driver.use(d->context), "use the card", err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.capture(d->queue[PONS_STREAM_KERNELS],
                                           CUDA_CAPTURE_THREAD_LOCAL),
                      "record kernels", err);
}

pons_status cuda_end_record(void *device, void **recording, pons_error *err)
{
    cuda_device *d = device;
    cuda_graph graph = NULL;
    cuda_executable executable = NULL;
    pons_status status = cuda_check(d, d->driver.end_capture(d->queue[PONS_STREAM_KERNELS], &graph),
                                    "record kernels", err);

    if (status == PONS_OK)
        status = cuda_check(d, d->driver.graph_instantiate(&executable, graph, 0),
                            "prepare recorded kernels", err);
    if (graph != NULL)
        d->driver.graph_free(graph);
    if (status == PONS_OK)
        *recording = executable;
    return status;
}

pons_status cuda_replay(void *device, void *recording, pons_error *err)
{
    cuda_device *d = device;

    if (cuda_check(d, d->driver.use(d->context), "use the card", err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.graph_launch(recording, d->queue[PONS_STREAM_KERNELS]),
                      "run recorded kernels", err);
}

void cuda_forget(void *device, void *recording)
{
    cuda_device *d = device;

    d->driver.use(d->context);
    d->driver.executable_free(recording);
}
