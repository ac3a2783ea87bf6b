/*
 * boot_id.h - which kernel this process runs under: processes of one name share a machine.
 */
#ifndef CORE_BASE_SYSTEM_BOOT_ID_H
#define CORE_BASE_SYSTEM_BOOT_ID_H

#define KERNEL_NAME_SIZE 64

/* Padded with zeros. */
void kernel_name(char out[KERNEL_NAME_SIZE]);

#endif
