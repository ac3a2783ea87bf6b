/*
 * cuda_visible_devices.h - CUDA_VISIBLE_DEVICES: the physical devices of cuda:0, cuda:1, ...
 *
 * The variable lists numbers or begins of UUIDs ("GPU-8932f937", "MIG-..."), and the devices are
 * numbered in its order. CUDA silently drops the first item that it does not know and all items
 * after it; here such an item is an error. -1, an empty value and SLURM's NoDevFiles leave no
 * device.
 */
#ifndef CORE_DEVICE_CUDA_VISIBLE_DEVICES_H
#define CORE_DEVICE_CUDA_VISIBLE_DEVICES_H

#include "device/device_list.h"

typedef struct cuda_visible_devices {
    bool given;                     /* false: all devices, in the machine's order                 */
    const char *text;               /* value of the variable; the caller owns it                  */
    int count;                 /* -1: the variable is not set, and the machine's count is unknown */
    char item[DEVICES_MAX][64];     /* physical devices, where 'given'                            */
} cuda_visible_devices;

/*
 * Parse 'text', the variable's value or NULL. 'physical' is the number of the machine's devices, -1
 * if unknown. PONS_CONFIG unless the text is a list of different devices of this machine.
 */
pons_status cuda_visible_devices_parse(const char *text, int physical, cuda_visible_devices *out,
                                       pons_error *err);
/* PONS_DEVICE if a device of 'list' does not exist; 'where' begins the message. */
pons_status cuda_visible_devices_check(const cuda_visible_devices *v, const device_list *list,
                                       const char *where, pons_error *err);
/*
 * The device of a process without a list: the only one where each process sees one device, as with
 * SLURM's --gpus-per-task; else the one with the number of its local rank. PONS_DEVICE if there are
 * fewer devices than processes.
 */
pons_status cuda_visible_devices_rank(const cuda_visible_devices *v, int local_rank, int local_size,
                                      int *index, pons_error *err);
/* The item of 'list' for a process: of several, that of its local rank; else the only one. */
pons_status cuda_visible_devices_entry(const cuda_visible_devices *v, const device_list *list,
                                       int local_rank, int local_size, device_item *out,
                                       pons_error *err);
/*
 * Write "cuda:0 and cuda:2 are the devices 5 and 3 of CUDA_VISIBLE_DEVICES = 5,1,3"; "" if not
 * given.
 */
void cuda_visible_devices_print(const cuda_visible_devices *v, const device_list *list, char *out,
                                size_t size);

#endif
