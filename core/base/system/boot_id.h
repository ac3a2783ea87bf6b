/*
 * boot_id.h - the boot id of the Linux kernel, which all containers of a machine share. Processes
 * with equal ids run on one machine.
 */
#ifndef CORE_BASE_SYSTEM_BOOT_ID_H
#define CORE_BASE_SYSTEM_BOOT_ID_H

#define BOOT_ID_SIZE 64

/* Write the id, padded with zeros. */
void boot_id(char out[BOOT_ID_SIZE]);

#endif
