/*
 * cuda_visible_devices.h - CUDA_VISIBLE_DEVICES: which physical devices are behind cuda:0, cuda:1,
 * ...
 *
 * The variable is a list of numbers, or of beginnings of UUIDs ("GPU-8932f937", "MIG-..."), in the
 * order in which the devices are counted. CUDA itself drops everything from the first item on that
 * it does not know, without a word; here such an item is an error. -1, an empty value and SLURM's
 * NoDevFiles leave no device.
 */
#ifndef CORE_DEVICE_CUDA_VISIBLE_DEVICES_H
#define CORE_DEVICE_CUDA_VISIBLE_DEVICES_H

#include "device/device_list.h"

typedef struct visible_devices {
    bool given;                     /* else the machine's own, in its order                       */
    const char *text;               /* as given; the caller's                                     */
    int count;                      /* -1: not given, and the machine's number is not known       */
    char item[DEVICES_MAX][64];     /* physical, where given                                      */
} visible_devices;

/*
 * 'text' is the variable's value, or NULL; 'physical' is how many devices the machine has, -1 where
 * that is not known. PONS_CONFIG for what is no list of different devices of this machine.
 */
pons_status visible_devices_parse(const char *text, int physical, visible_devices *out,
                                  pons_error *err);
/* Every device of 'list' is there; PONS_DEVICE with 'where' in front, and what there is. */
pons_status visible_devices_check(const visible_devices *v, const device_list *list,
                                  const char *where, pons_error *err);
/*
 * The device of a process that has not been given a list: of one per process, as SLURM's
 * --gpus-per-task leaves, that one; else the one with the number of its local rank. PONS_DEVICE
 * where there are fewer devices than processes.
 */
pons_status visible_devices_rank(const visible_devices *v, int local_rank, int local_size,
                                 int *index, pons_error *err);
/* The entry of 'list' for a process: of one for each process its own, else the one of all. */
pons_status visible_devices_entry(const visible_devices *v, const device_list *list,
                                  int local_rank, int local_size, device_item *out,
                                  pons_error *err);
/* "cuda:0 and cuda:2 are the devices 5 and 3 of CUDA_VISIBLE_DEVICES = 5,1,3"; "" if not given. */
void visible_devices_tell(const visible_devices *v, const device_list *list, char *out,
                          size_t size);

#endif
