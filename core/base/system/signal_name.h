/*
 * signal_name.h - what a signal is called, "SIGSEGV"; "a signal" for those that end no process of
 * ours. Any thread.
 */
#ifndef CORE_BASE_SYSTEM_SIGNAL_NAME_H
#define CORE_BASE_SYSTEM_SIGNAL_NAME_H

const char *signal_name(int number);

#endif
