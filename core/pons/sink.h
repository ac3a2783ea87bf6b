/*
 * sink.h - a sink plugin: takes a run's numbers, besides metrics.jsonl; also pictures of cases and
 * the network if it has operations for them.
 *
 * Records arrive in order from one thread. Another thread calls 'flush', also while a record is
 * being written: records written before the call are on disk when it returns. (fflush, which holds
 * the file's own lock, and fsync do that.) On resume 'keep' tells 'open' the earlier records that
 * stay; those written after the checkpoint arrive once more. The calls of a run have the C locale,
 * so printf writes a decimal point; threads of the sink's own have the program's. The options of
 * sink NAME stand in [log.NAME] of the INI file.
 */
#ifndef CORE_PONS_SINK_H
#define CORE_PONS_SINK_H

#include <pons/graph.h>
#include <stdio.h>

PONS_C_BEGIN

typedef struct pons_metric {
    const char *name; /* "loss", "dice.spleen"                                                    */
    double value;     /* NaN: not defined                                                         */
} pons_metric;

typedef struct pons_record {
    const char *kind; /* "step" or "validation"                                                   */
    int64_t step, epoch;
    int count;
    const pons_metric *metric;
} pons_record;

/* The last step whose records stay, and that of validations and their pictures; -1: none.       */
typedef struct pons_sink_kept {
    int64_t step, validation;
} pons_sink_kept;

/* A validation case as a picture: image, label, prediction and error in three planes.           */
typedef struct pons_picture {
    const char *name;     /* of the case                                                          */
    int64_t step;         /* of the validation; records of later steps may have come before       */
    int width, height;    /* pixels                                                               */
    const void *png;      /* a PNG file, of a palette or of red, green and blue                   */
    size_t size;
} pons_picture;

/* A tensor of the network, and the operation that computes it.                                  */
typedef struct pons_network_node {
    /* Unique; letters, digits and "._-" between slashes: "96x96x96/model.0.conv/convolution"     */
    const char *name;
    const char *operation; /* "convolution", "parameter"                                          */
    pons_shape shape;
    int input_count;
    const int *input;     /* [input_count] indices of nodes                                       */
} pons_network_node;

typedef struct pons_network {
    int count;
    const pons_network_node *node;
} pons_network;

typedef struct pons_sink_operations {
    pons_status (*check)(const void *config, pons_error *err); /* may be NULL; see plugin.h       */
    /* 'folder' is the run folder; records after 'keep' are cut.                                  */
    pons_status (*open)(const void *config, const char *folder, pons_sink_kept keep, void **sink,
                        pons_error *err);
    pons_status (*write)(void *sink, const pons_record *record, pons_error *err);
    pons_status (*flush)(void *sink, pons_error *err); /* before a checkpoint gets its name       */
    void (*close)(void *sink);
    /* The rest may be NULL.                                                                      */
    /*
     * For a sink that must not end the run when it fails: it answers PONS_OK everywhere, and true
     * here with one line of text, once per failure. Asked after each record and after 'end'.
     */
    bool (*warning)(void *sink, char *text, size_t size);
    /* The run ends: PONS_OK, PONS_INTERRUPTED (it can go on) or its failure. 'close' comes next. */
    void (*end)(void *sink, pons_status status);
    /*
     * Send what an earlier run has left in its folder, without another operation: 'pons report RUN
     * --send'. A failure leaves the rest for another time.
     */
    pons_status (*send)(const void *config, const char *folder, pons_error *err);
    /*
     * The number of cases whose pictures 'picture' takes: the first ones of validation/cases.csv,
     * the same for each validation.
     */
    int (*picture_count)(const void *config);
    /*
     * Take a picture. Calls come from a thread of their own, also while a record is being written
     * or flushed. A failure is one warning, and the sink gets no more pictures of the run.
     */
    pons_status (*picture)(void *sink, const pons_picture *picture, pons_error *err);
    /* Take the network that predicts, after 'open'. A failure is a warning. */
    pons_status (*network)(void *sink, const pons_network *network, pons_error *err);
} pons_sink_operations;

/*
 * Open a file of the run folder, mode "w", "a" or "a+" as for fopen. A link, a FIFO or a device is
 * refused: nothing is written elsewhere, and no open waits. The caller closes the stream.
 */
pons_status pons_sink_file(const char *path, const char *mode, FILE **file, pons_error *err);

#define PONS_SINK(NAME, VERSION, SUMMARY, OPTIONS, OPERATIONS)                                    \
    PONS_PLUGIN_DEFINE_(PONS_KIND_SINK, pons_sink_operations, NAME, VERSION, SUMMARY,             \
                        OPERATIONS, OPTIONS)

PONS_C_END

#endif
