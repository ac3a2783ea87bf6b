/*
 * comm_has_options.c - a communicator with an option that no section of an INI file could fill.
 */
#include <pons/comm.h>

typedef struct comm_has_options {
    int64_t piece;
} comm_has_options;

static const pons_option options[] = {
    PONS_INTEGER(comm_has_options, piece, "65536", 1, 1 << 30, "Bytes of a message."),
    PONS_OPTIONS_END
};

static const pons_comm_operations operations = { NULL };

PONS_COMM(comm_has_options, "1.0", "a communicator with an option", options, operations);
