/*
 * checkpoint.h - folders of safetensors files that are complete and verified, or not there.
 *
 *   checkpoints/step-00001200/{model,optimizer,trainer,ema}.safetensors  manifest.json
 *   checkpoints/{last,best}       one line: a folder's base name
 *
 * A folder is written under a name that ends in '.part', synced, renamed, and the folder above is
 * synced: a process that is killed at any moment leaves the older ones as they were. manifest.json
 * holds facts about the making, the run's identity, the SHA-256 of the run's resolved.ini, what
 * the training's images were like as the network saw them, size and SHA-256 of every file and, as
 * its last member, the SHA-256 of its own text before that member.
 */
#ifndef CORE_CHECKPOINT_CHECKPOINT_H
#define CORE_CHECKPOINT_CHECKPOINT_H

#include "base/file/json.h"
#include "base/log.h"
#include "checkpoint/safetensors.h"

typedef struct checkpoint_file {
    const char *name; /* "model.safetensors" */
    safetensors_content content;
} checkpoint_file;

#define CHECKPOINT_FACTS "made_with" /* the manifest's member: an object of texts                 */
#define CHECKPOINT_RESOLVED "resolved.ini" /* the sha256 of the run's file (resolved.h)           */
#define CHECKPOINT_RUN "run" /* that of run_identity.h; older manifests have none                 */
#define CHECKPOINT_GEOMETRY "geometry" /* that of case_geometry.h; older manifests have none      */

typedef struct checkpoint_fact {
    const char *name, *value;
} checkpoint_fact;

/* Contents of a checkpoint: files of tensors, facts, and further members of the manifest. */
typedef struct checkpoint_list {
    int file_count, fact_count;
    const checkpoint_file *file;
    const checkpoint_fact *fact;
    const char *resolved;     /* the file's sha256; NULL or "": there is none                     */
    const char *run;          /* the run's identity; NULL or "": none                             */
    const char *geometry; /* a JSON object (case_geometry.h); NULL: none                          */
} checkpoint_list;

/*
 * 'folder' is .../checkpoints; made when missing. A valid folder of this step is exchanged for the
 * new one in one act; where the file system cannot do that, it stays as it is.
 */
pons_status checkpoint_write(const char *folder, int64_t step, const checkpoint_list *list,
                             pons_error *err);
/* Let the one-line file 'mark' ("last", "best") name this step's folder, unless it does. */
pons_status checkpoint_mark(const char *folder, const char *mark, int64_t step, pons_error *err);
/* PONS_FAILURE if a folder or special file lies in the place of a mark, which cannot be written. */
pons_status checkpoint_check_marks(const char *folder, pons_error *err);
bool checkpoint_is_marked(const char *folder, const char *mark, int64_t step);
/* Something has this step's name; it is not looked at. */
bool checkpoint_is_there(const char *folder, int64_t step);
/*
 * Remove all but the 'keep' newest and the marked ones, and what killed processes left. A failure
 * is no reason to end a run: it says what is still there. A folder with other files in it stays,
 * and all stay where a mark cannot be read. A folder whose manifest says another step than its name
 * stays and is not counted.
 */
pons_status checkpoint_prune(const char *folder, int keep, pons_error *err);

/* The manifest of a checkpoint, verified by its own hash; its files are not looked at. */
pons_status checkpoint_manifest(const char *path, json_t **out, pons_error *err);
/*
 * Every file there, with the size and the hash that the manifest says, and the manifest's step the
 * one of the folder's name, unless that has another form. PONS_DATA if not.
 */
pons_status checkpoint_verify(const char *path, pons_error *err);
/*
 * The newest valid folder's path (malloc'ed), NULL when there is none at all; damaged ones are
 * passed over with a warning. All damaged: PONS_DATA.
 */
pons_status checkpoint_newest(const char *folder, logger *l, char **path, pons_error *err);
/*
 * The folder that 'mark' names, without such a mark the newest one (malloc'ed), NULL when there is
 * none at all. PONS_DATA where that one is damaged or not there, whatever the others are.
 */
pons_status checkpoint_marked(const char *folder, const char *mark, char **path, pons_error *err);
/* The folder that 'mark' names if it is valid, else as checkpoint_newest, each tried once. */
pons_status checkpoint_any(const char *folder, const char *mark, logger *l, char **path,
                           pons_error *err);

#endif
