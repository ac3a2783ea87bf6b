/*
 * offline_folder.h - the folder of a run: RUN/wandb/offline-run-YYYYMMDD_HHMMSS-ID/run-ID.wandb.
 */
#ifndef PLUGINS_SINKS_WANDB_OFFLINE_FOLDER_H
#define PLUGINS_SINKS_WANDB_OFFLINE_FOLDER_H

#include <pons/sink.h>
#include <stdbool.h>

enum { RUN_ID_SIZE = 8 };

typedef struct offline_folder {
    char *path;                /* of the folder                                                   */
    char *log;                 /* of the file                                                     */
    char id[RUN_ID_SIZE + 1];
} offline_folder;

/* Find the last folder that this sink has made in 'run', or make a new one. */
pons_status offline_folder_open(offline_folder *f, const char *run, pons_error *err);
/* Forget that the file was delivered, so that 'wandb sync' takes it again. */
void offline_folder_forget_delivery(const offline_folder *f);
/* Remove the file and the folder unless it has other files, and RUN/wandb if it is empty then. */
void offline_folder_remove(const offline_folder *f);
void offline_folder_close(offline_folder *f);

#endif
