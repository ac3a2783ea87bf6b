/*
 * signal_name.h - the name of a signal, "SIGSEGV"; "a signal" for those that are not in the table.
 * Any thread.
 */
#ifndef CORE_BASE_SYSTEM_SIGNAL_NAME_H
#define CORE_BASE_SYSTEM_SIGNAL_NAME_H

const char *signal_name(int number);

#endif
