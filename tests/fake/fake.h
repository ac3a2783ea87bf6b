/*
 * fake.h - NVIDIA's driver and NCCL on machines without a GPU: libraries with the names and the
 * functions of the real ones, as far as pons calls them. 'Memory of the GPU' is memory of the
 * process that is known as such, a stream is a thread, a collective exchanges bytes between
 * processes through a file that they all map. Who breaks a rule of the real ones (a call without a
 * context, a buffer of the host, a call while another one is in progress) is refused.
 *
 * FAKE_CUDA       none: no GPU is found; N: that many (1)
 * FAKE_NCCL       words that go wrong, of the process that has them:
 *                   version=N     what ncclGetVersion says
 *                   init-never    the group never comes together
 *                   init-error    joining it fails
 *                   init-memory   the same: the GPU has no memory for it
 *                   error=N       the N-th collective fails, asynchronously
 *                   lost=N        the same, and the next rank is to blame
 *                   mute          the death of another process is not noticed
 *                   abort-hangs   ncclCommAbort does not return, and the GPU goes on
 * FAKE_NCCL_DIR   the folder of the files (/tmp)
 */
#ifndef TESTS_FAKE_FAKE_H
#define TESTS_FAKE_FAKE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#define FAKE_PUBLIC __attribute__((visibility("default")))

/* On the stream's thread, behind what was pushed before. */
FAKE_PUBLIC void fake_stream_push(CUstream stream, void (*run)(void *context), void *context);
/* Whether 'size' bytes lie in one piece of memory of the GPU. */
FAKE_PUBLIC bool fake_on_device(const void *memory, size_t size);
FAKE_PUBLIC bool fake_has_context(void);
/* Pieces of memory and events that were made and not freed. */
FAKE_PUBLIC int fake_left_over(void);

#endif
