/*
 * free_port.h - a loopback port without a listener. The port lies outside of the range from which
 * the kernel assigns ports, and no other test takes it while this one runs.
 */
#ifndef TESTS_FREE_PORT_H
#define TESTS_FREE_PORT_H

#include "support/asserts.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FREE_PORT_FIRST = 10000, FREE_PORT_COUNT = 10000 };

int free_port(void);

#endif
