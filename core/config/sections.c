/*
 * sections.c - the option tables of the core's own sections, and the values that this build lacks.
 */
#include "config/sections.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/build_feature.h"
#include "base/text/text.h"
#include "config/augment_profile.h"
#include "config/diffusion_table.h"

/* Bounds of ranges. */
#define ABOVE_0 DBL_MIN
#define ANY_REAL DBL_MAX
#define ANY_INTEGER INT_MAX
#define ANY_SIZE 0x1p50

static const char *const auto_words[] = { "auto", NULL };
const char *const data_layouts[] = { "auto", "globs", "decathlon", "nnunet", "datalist", "brats",
                                     "bids", "csv", "folders", "idx", "slides", NULL };
const char *const task_words[] = { "segmentation", "synthesis", "classification", NULL };
static const char *const betas_words[] = { "linear", "cosine", NULL };
static const char *const diffusion_words[] = { "non_uniform", "uniform_3d", "uniform_2d",
                                               "uniform_head", NULL };
static const char *const fold_words[] = { "first", NULL };
static const char *const cache_words[] = { "none", "memory", "disk", "lmdb", "smart", "device",
                                           NULL };
static const char *const cache_share_words[] = { "node", "rank", NULL };
static const char *const step_case_words[] = { "all", "training", "validation", NULL };
static const char *const slide_position_words[] = { "centre", "corner", NULL };
static const char *const sampling_words[] = { "uniform", "balanced", "classes", "whole", NULL };
static const char *const far_end_words[] = { "inside", "beyond", NULL };
static const char *const pad_words[] = { "zero", "edge", NULL };
static const char *const activation_words[] = { "auto", "softmax", "sigmoid", "none", NULL };
static const char *const unit_words[] = { "step", "epoch", NULL };
static const char *const class_weight_words[] = { "none", "auto", NULL };
static const char *const window_precision_words[] = {
    "training", "fp32", "tf32", "bf16", "fp16", NULL
};
static const char *const precision_words[] = { "auto", "fp32", "tf32", "bf16", "fp16", NULL };
enum loss_scaling { LOSS_SCALING_TORCH = 0, LOSS_SCALING_FAST_DDPM };
static const char *const loss_scaling_words[] = { "torch", "fast_ddpm", NULL };
static const char *const skip_words[] = { "none", "head", NULL };
static const char *const nonfinite_words[] = { "stop", "skip", NULL };
static const char *const mode_words[] = { "auto", "single", "dp", "ddp", NULL };
static const char *const backend_words[] = { "auto", "gloo", "nccl", "mpi", "shm", NULL };
static const char *const scaling_words[] = { "none", "linear", "sqrt", NULL };
static const char *const window_words[] = { "constant", "gaussian", "nnunet", NULL };
static const char *const padding_words[] = { "constant", "reflect", "replicate", "circular", NULL };
static const char *const probability_words[] = { "float32", "uint8", NULL };
static const char *const resample_words[] = { "probabilities", "labels", "logits", NULL };
static const char *const slices_words[] = { "auto", "yes", "no", NULL };
static const char *const winograd_words[] = { "auto", "no", NULL };

static const pons_option experiment_table[] = {
    PONS_TEXT(experiment_options, name, "", "Name of the run and of its folder."),
    PONS_CHOICE(experiment_options, task, "segmentation", task_words,
                "segmentation: classes or regions of each voxel; synthesis: any channel from the "
                "others by diffusion, which reads no labels and has the section [diffusion]; "
                "classification: one class of the whole image."),
    PONS_INTEGER(experiment_options, seed, "0", 0, 9007199254740992.0,
                 "Key of all random numbers."),
    PONS_PATH(experiment_options, output, "runs", "Folder that holds the run folders."),
    PONS_FLAG(experiment_options, deterministic, "no",
              "Give the same bits for every split of the micro-batches over devices; a run goes on "
              "only with the plugin files that it began with."),
    PONS_OPTIONS_END
};

static const pons_option data_table[] = {
    PONS_PATH(data_options, source, "",
              "Root folder of a dataset, its dataset.json, a datalist or a CSV file."),
    PONS_PATHS(data_options, image, "", "File patterns of the images, one per channel."),
    PONS_PATH(data_options, label, "", "File pattern of the labels."),
    PONS_TEXTS(data_options, channels, "",
               "Names of the channels in place of the layout's, as in CT or T1 FLAIR; 'pons init' "
               "plans CT by windows."),
    PONS_TEXTS(data_options, image_suffix, "T1w",
               "Layout bids: endings of the names of images, one per channel, as in T1w FLAIR."),
    PONS_TEXT(data_options, label_suffix, "dseg",
              "Layout bids: ending of the names of labels, as in desc-manual_dseg."),
    PONS_CHOICE(data_options, layout, "auto", data_layouts, "Layout of the files in the source."),
    PONS_TEXT(data_options, validation, "0.2",
              "Cases held out for validation: none, a share, random:0.2, last:N, fold:K/N, "
              "names:a,b, file:F (a name a line, or nnU-Net's splits_final.json), nnunet (the five "
              "folds that nnU-Net draws) or own: the dataset's list or folds, which are also used "
              "if nothing is given."),
    PONS_INTEGER_OR(data_options, fold, "first", 0, ANY_INTEGER, fold_words,
                    "Fold to validate on, where the split is in folds."),
    PONS_TEXTS(data_options, labels, "",
               "Classes and their ids in the label files, as in background:0 kidney:1-3,7; rest: "
               "every other id, *: every other id above 0; table:FILE.csv has the columns "
               "original, new and optionally name."),
    PONS_TEXTS(data_options, regions, "",
               "Overlapping targets and their ids, as in WT:1,2,3 ET:3."),
    PONS_TEXTS(data_options, map, "",
               "Ids that count as other ids, as in 4:3, before labels and regions."),
    PONS_CHOICE(data_options, cache, "memory", cache_words,
                "Storage of preprocessed cases, shared by all ranks of a machine; disk: mapped "
                "files, shared by all runs and processes with the same cases and steps; lmdb: the "
                "same in one file of LMDB; smart: an epoch runs over a part of the training cases, "
                "which is in memory and of which some are replaced each epoch; device: training "
                "cases also in the memory of each device, which then extracts and augments the "
                "patches."),
    PONS_TEXTS(data_options, cache_limit, "",
               "Largest size of a machine's cache, as in 8GiB; cases beyond it are read each time, "
               "and the least recently used cases of a disk or lmdb cache are removed. Kinds with "
               "sizes, as in memory:8GiB disk:100GiB: cases beyond the first size are in the "
               "second kind."),
    PONS_PATH(data_options, cache_dir, "",
              "Folder of a disk or lmdb cache; not given: "
              "'.cache' in the folder of [experiment] output."),
    PONS_CHOICE(data_options, cache_share, "node", cache_share_words,
                "node: a machine has the cases of all ranks; rank: with cache = smart, those that "
                "its own ranks train on, since each micro-batch of a step takes cases of its own "
                "part of the list."),
    PONS_REAL(data_options, smart_share, "0.5", 0, 1,
              "Part of the training cases that an epoch runs over with cache = smart."),
    PONS_REAL(data_options, smart_replace, "0.1", 0, 1,
              "Part of a smart cache that is replaced by other cases each epoch."),
    PONS_INTEGER_OR(data_options, loader_threads, "auto", 0, 1024, auto_words,
                    "Threads that read cases and prepare patches; "
                    "0 prepares them in the training thread."),
    PONS_PATH(data_options, slides, "",
              "Layout slides: files of the slides, with * for the name in the list of patches, as "
              "in training/images/*.tif; not given: the list has paths, relative to its folder."),
    PONS_PATH(data_options, slide_validation, "",
              "Layout slides: the list of patches for validation."),
    PONS_INTEGER(data_options, slide_level, "0", 0, 63,
                 "Layout slides: the level of the pyramid from which patches are read."),
    PONS_INTEGER(data_options, slide_patch, "224", 1, 8192,
                 "Layout slides: pixels of the level along a side of a patch."),
    PONS_INTEGER(data_options, slide_grid, "1", 1, 9,
                 "Layout slides: patches along a side of the grid at each position, with a label "
                 "for each, column by column."),
    PONS_INTEGER(data_options, slide_region, "0", 0, 65536,
                 "Layout slides: pixels of the level along a side of the grid; 0: slide_grid x "
                 "slide_patch."),
    PONS_CHOICE(data_options, slide_position, "centre", slide_position_words,
                "Layout slides: the pixel of the patch or grid that lies at x and y."),
    PONS_OPTIONS_END
};

#define STEPS_OPTION                                                                              \
    PONS_TEXTS(steps_options, steps, "", "Names of the transforms, in order of application.")

static const pons_option steps_table[] = {
    STEPS_OPTION,
    PONS_OPTIONS_END
};

static const pons_option augment_table[] = {
    PONS_CHOICE(steps_options, profile, "none", augment_profile_words,
                "Steps with their options; sections [augment.NAME] change or add some, and steps, "
                "if given, names those that are kept."),
    STEPS_OPTION,
    PONS_OPTIONS_END
};

const pons_option step_option_table[] = {
    PONS_TEXT(step_options, plugin, "",
              "The transform; needed where NAME is not a transform, as for one that occurs twice."),
    PONS_INTEGERS(step_options, channels, "", 0, 1023,
                  "Channels that the transform changes; all if empty."),
    PONS_CHOICE(step_options, cases, "all", step_case_words,
                "Cases that a step of [preprocess] changes: all, those of training, or those of "
                "validation and prediction."),
    PONS_OPTIONS_END
};

static const pons_option patch_table[] = {
    PONS_AXES(patch_options, extent, "", 1, 65536, "Voxels of a patch along i j k."),
    PONS_INTEGER(patch_options, per_case, "1", 1, 65536, "Patches cut from each case of a batch."),
    PONS_CHOICE(patch_options, sampling, "uniform", sampling_words,
                "Distribution of patch centres; whole takes the volume itself, padded or cropped."),
    PONS_REAL(patch_options, positive, "1", 0, 1e9, "Weight of foreground centres when balanced."),
    PONS_REAL(patch_options, negative, "1", 0, 1e9, "Weight of background centres when balanced."),
    PONS_REAL(patch_options, foreground_share, "0", 0, 1,
              "Share of a step's patches centred on a voxel of a random class, as nnU-Net."),
    PONS_CHOICE(patch_options, far_end, "inside", far_end_words,
                "With foreground_share: patches near the last voxel of an axis stay in the volume, "
                "or go on beyond it, as nnU-Net's."),
    PONS_REALS(patch_options, class_weights, "", 0, 1e9, "Weight of each class when by classes."),
    PONS_REALS(patch_options, background_above, "", -ANY_REAL, ANY_REAL,
               "Background centres are drawn where the image is above this value."),
    PONS_CHOICE(patch_options, pad, "zero", pad_words, "Voxels beyond the border of a volume."),
    PONS_FLAG(patch_options, count_padding, "yes",
                "Whether the loss counts voxels beyond the border of a volume, as background."),
    PONS_OPTIONS_END
};

static const pons_option model_table[] = {
    PONS_TEXT(model_options, plugin, "", "The network."),
    PONS_OPTIONS_END
};

static const pons_option loss_table[] = {
    PONS_TEXT(loss_options, plugin, "", "The loss."),
    PONS_CHOICE(loss_options, activation, "auto", activation_words,
                "Function from logits to probabilities; "
                "auto is softmax for several classes, else sigmoid; none for task = synthesis."),
    PONS_REALS(loss_options, heads, "", 0, 1e9,
               "Weight of each output of the network; 1 0.5 0.25 and so on if empty. "
               "An output of weight 0 is not trained."),
    PONS_CHOICE(loss_options, class_weights, "none", class_weight_words,
                "auto gives the loss the option weight: inverse frequencies of the classes."),
    PONS_FLAG(loss_options, sync, "no",
              "Sum over the batches of all replicas, not of one; needs accumulate = 1."),
    PONS_OPTIONS_END
};

static const pons_option optimizer_table[] = {
    PONS_TEXT(optimizer_options, plugin, "", "The optimizer."),
    PONS_REAL(optimizer_options, lr, "1e-3", ABOVE_0, ANY_REAL,
              "Learning rate before the schedule."),
    PONS_OPTIONS_END
};

static const pons_option schedule_table[] = {
    PONS_TEXT(schedule_options, plugin, "constant", "The schedule of the learning rate."),
    PONS_INTEGER(schedule_options, warmup_steps, "0", 0, ANY_INTEGER,
                 "Steps or epochs of the warm-up, in which the learning rate rises."),
    PONS_REAL(schedule_options, warmup_multiplier, "0", 0, 1,
              "Factor of the learning rate at the start of the warm-up."),
    PONS_CHOICE(schedule_options, unit, "step", unit_words, "Unit that the schedule counts."),
    PONS_OPTIONS_END
};

static const pons_option train_table[] = {
    PONS_INTEGER_OR(train_options, epochs, "", 1, ANY_INTEGER, NULL,
                    "Passes over the training cases; this or steps."),
    PONS_INTEGER_OR(train_options, steps, "", 1, ANY_INTEGER, NULL,
                    "Optimizer steps; this or epochs."),
    PONS_INTEGER(train_options, batch, "1", 1, 65536, "Cases in a micro-batch."),
    PONS_INTEGER(train_options, accumulate, "1", 1, 65536, "Micro-batches of a replica in a step."),
    PONS_INTEGER(train_options, micro_batches, "0", 0, 65536,
                 "Micro-batches of a step over all replicas; 0 is replicas times accumulate."),
    PONS_CHOICE(train_options, precision, "auto", precision_words,
                "Type of stored activations and of the factors of products."),
    PONS_CHOICE(train_options, loss_scaling, "torch", loss_scaling_words, "Preset of the loss "
                "scale in fp16: torch's GradScaler, or Fast-DDPM's, which begins with 2048. A "
                "given loss_scale wins over it."),
    PONS_REAL(train_options, loss_scale, "65536", 1, 16777216,
              "Factor of the loss in fp16 that a run begins with."),
    PONS_REAL(train_options, loss_scale_growth, "2", 1, 65536,
              "Factor on it after loss_scale_interval applied steps in a row."),
    PONS_REAL(train_options, loss_scale_backoff, "0.5", ABOVE_0, 1,
              "Factor on it after a step whose gradient was too large."),
    PONS_INTEGER(train_options, loss_scale_interval, "2000", 1, ANY_INTEGER,
                 "Applied steps in a row after which it grows."),
    PONS_REAL(train_options, clip_norm, "0", 0, ANY_REAL,
              "Largest norm of the gradient; 0 is no limit."),
    PONS_FLAG(train_options, recompute, "no",
              "Recompute activations in the backward pass, which needs less memory."),
    PONS_REAL(train_options, ema_decay, "0", 0, 0.999999,
              "Decay of the weights' moving average; 0 keeps none."),
    PONS_REAL(train_options, mixup, "0", 0, 1000,
              "MixUp of pairs of samples of a micro-batch: alpha of Beta(alpha, alpha), from which "
              "the share is drawn; 0: none."),
    PONS_REAL(train_options, cutmix, "0", 0, 1000,
              "CutMix, a box of the partner in each sample: alpha of Beta(alpha, alpha), from "
              "which its size is drawn; 0: none."),
    PONS_CHOICE(train_options, nonfinite, "stop", nonfinite_words,
                "Action after a gradient that is not finite."),
    PONS_INTEGER(train_options, validate_every, "1", 0, ANY_INTEGER,
                 "Epochs between validations; 0 is never."),
    PONS_INTEGER(train_options, validate_steps, "0", 0, ANY_INTEGER,
                 "Steps between validations, instead of epochs; 0 is not used."),
    PONS_FLAG(train_options, validate_loss, "yes",
              "Validations also have the loss of patches of their cases, the same ones each time."),
    PONS_TEXT(train_options, best, "dice.mean",
              "Metric that selects the best checkpoint: one of 'pons evaluate', then .mean or a "
              "class, as in hd95.liver; not given for synthesis: psnr.mean."),
    PONS_INTEGER(train_options, checkpoint_every, "1", 0, ANY_INTEGER,
                 "Epochs between checkpoints; 0 is only at the end."),
    PONS_INTEGER(train_options, keep, "2", 1, ANY_INTEGER,
                 "Checkpoints kept besides the best one."),
    PONS_PATH(train_options, pretrained, "", "Weights to start from: a file of weights, a run, a "
              "checkpoint or a bundle of MONAI."),
    PONS_CHOICE(train_options, pretrained_skip, "none", skip_words,
                "Tensors that start anew in spite of 'pretrained'; head: those whose shape depends "
                "on the number of classes."),
    PONS_REAL(train_options, grace_s, "10", 0, 86400,
              "Seconds a running step may take to end after a signal."),
    PONS_INTEGER(train_options, early_stop, "0", 0, ANY_INTEGER,
                 "Validations without improvement after which training ends; 0 is never."),
    PONS_OPTIONS_END
};

static const pons_option distribute_table[] = {
    PONS_CHOICE(distribute_options, mode, "auto", mode_words,
                "Distribution of replicas over processes and threads."),
    PONS_TEXT(distribute_options, devices, "auto",
              "Devices, as in cpu, cuda, cuda:0,2 or cpu:0,cpu:1; auto is every GPU, or the cpu "
              "where there is none; cuda is every GPU; reference is the plain kernels."),
    PONS_CHOICE(distribute_options, backend, "auto", backend_words, "Library of the collectives."),
    PONS_INTEGER_OR(distribute_options, threads, "auto", 1, 4096, auto_words,
                    "Kernel threads of a replica; auto is its cores within the CPU quota."),
    PONS_SIZE(distribute_options, bucket, "4MiB", 1, ANY_SIZE,
              "Bytes of gradients in one all-reduce."),
    PONS_FLAG(distribute_options, sync_batchnorm, "no",
              "Take batch norm statistics over all replicas; needs accumulate = 1."),
    PONS_CHOICE(distribute_options, lr_scaling, "none", scaling_words,
                "Growth of the learning rate with the micro-batches of a step."),
    PONS_REAL(distribute_options, timeout_s, "600", ABOVE_0, 1e9,
              "Seconds without progress after which a run counts as hanging and ends."),
    PONS_OPTIONS_END
};

static const pons_option window_table[] = {
    PONS_AXES(window_options, extent, "", 1, 65536,
              "Voxels of a window along i j k; the patch's if empty."),
    PONS_REAL(window_options, overlap, "0.25", 0, 0.99,
              "Share by which neighbouring windows overlap."),
    PONS_CHOICE(window_options, mode, "constant", window_words,
                "Weights of overlapping windows in the blend; nnunet: its gaussian, and windows in "
                "equal steps of at most (1 - overlap) extents."),
    PONS_REAL(window_options, sigma_scale, "0.125", ABOVE_0, 100,
              "Standard deviation of the gaussian blend, as a share of the window."),
    PONS_CHOICE(window_options, padding_mode, "constant", padding_words,
                "Padding of an image that is smaller than the window."),
    PONS_INTEGER(window_options, batch, "4", 1, 65536, "Windows computed at a time."),
    PONS_CHOICE(window_options, precision, "training", window_precision_words,
                "Precision of validation and prediction; training is that of [train]."),
    PONS_INTEGERS(window_options, mirror, "", 0, 2,
                  "Axes along which predictions are also mirrored."),
    PONS_OPTIONS_END
};

static const pons_option predict_table[] = {
    PONS_TEXTS(predict_options, keep_largest, "",
               "Classes of which only the largest connected part is kept."),
    PONS_CHOICE(predict_options, resample, "probabilities", resample_words,
                "Data that is resampled to the grid of the file. Logits, as nnU-Net: those of an "
                "ensemble are averaged too."),
    PONS_CHOICE(predict_options, separate_slices, "no", slices_words,
                "With resample = logits: interpolate within slices, and copy the nearest slice; "
                "auto: if a spacing is over 3 times another, as nnU-Net."),
    PONS_REAL_AXES(predict_options, spacing, "", 0, 1000,
                   "Spacing of the network along i j k for separate_slices = auto; 0: the file's; "
                   "empty: that of the preprocessed image."),
    PONS_INTEGERS(predict_options, region_ids, "", 0, 65535,
                  "Write regions as one label: the id of each region, the later over the "
                  "earlier."),
    PONS_TEXTS(predict_options, tables, "", "Tables of names and colours beside predicted labels: "
               "slicer (.ctbl), itksnap (.label), bids (.tsv)."),
    PONS_CHOICE(predict_options, probability_type, "float32", probability_words,
                "Values of the file that --probabilities writes; uint8: in steps of 1/255."),
    PONS_OPTIONS_END
};

static const pons_option noise_table[] = {
    PONS_TEXTS(diffusion_options, modalities, "",
               "Names of the channels, as predict --target takes them; empty: the layout's, or "
               "their numbers from 0."),
    PONS_TEXTS(diffusion_options, targets, "",
               "Modalities that the network learns to make; empty: any of them."),
    PONS_CHOICE(diffusion_options, betas, "linear", betas_words,
                "Growth of the noise's variance over the timesteps; cosine needs no range."),
    PONS_REAL(diffusion_options, beta_start, DIFFUSION_BETA_START, ABOVE_0, 0.999,
              "Variance of the noise of the first timestep where betas are linear."),
    PONS_REAL(diffusion_options, beta_end, DIFFUSION_BETA_END, ABOVE_0, 0.999,
              "Variance of the noise of the last timestep where betas are linear."),
    PONS_INTEGER(diffusion_options, timesteps, "1000", 2, 100000,
                 "Timesteps from an image to pure noise."),
    PONS_CHOICE(diffusion_options, schedule, "non_uniform", diffusion_words,
                "Timesteps that training and sampling visit: most of them late, or evenly from 0 "
                "below the last, through the last, or between both ends."),
    PONS_INTEGER(diffusion_options, steps, "10", 2, 100,
                 "Number of visited timesteps; a schedule that is even from 0 on may visit more. "
                 "Training takes at most 64 of them."),
    PONS_REAL(diffusion_options, eta, "0", 0, 1,
              "Share of fresh noise in a sampling step: 0 is DDIM, 1 is DDPM."),
    PONS_OPTIONS_END
};

static const pons_option device_table[] = {
    PONS_FLAG(device_options, autotune, "no",
              "Choose cuda kernels by timing them once; autotune.json in the run's folder keeps "
              "the choices, also for predictions. deterministic = yes disables timing."),
    PONS_SIZE(device_options, workspace_limit, "", 0, ANY_SIZE,
              "Largest workspace of a convolution or matrix product, if a kernel with a smaller "
              "one exists; empty: unlimited on cpu, 1GiB on cuda."),
    PONS_PATH(device_options, cache_dir, "",
              "Folder of compiled cuda kernels; not given: 'pons/kernels' in "
              "XDG_CACHE_HOME or ~/.cache."),
    PONS_CHOICE(device_options, winograd, "auto", winograd_words,
                "Winograd convolutions on cpu: where they are faster, or never. They round sums of "
                "points and of weights once more."),
    PONS_OPTIONS_END
};

static const pons_option log_table[] = {
    PONS_INTEGER(log_options, every, "10", 1, ANY_INTEGER,
                 "Steps between lines on the terminal; their loss is the mean since the last one."),
    PONS_TEXTS(log_options, sinks, "csv", "Outputs of metrics besides metrics.jsonl; a sink's "
                                          "options are in [log.NAME]."),
    PONS_INTEGER(log_options, device_every, "0", 0, ANY_INTEGER,
                 "Steps between lines of devices.csv, with the devices' sensors; 0 is never."),
    PONS_FLAG(log_options, report, "yes",
              "Write report.html, progress.png and pictures of the validation cases at each "
              "validation and at the end."),
    PONS_OPTIONS_END
};

#define SECTION(NAME, TABLE, KIND, SUMMARY) \
    { #NAME, SUMMARY, TABLE, offsetof(sections, NAME), sizeof(((sections *)NULL)->NAME), KIND, 0 }

const section_table section_tables[] = {
    SECTION(experiment, experiment_table, 0, "name, folder and seed of the run"),
    SECTION(data, data_table, 0, "cases, classes and validation cases"),
    SECTION(preprocess, steps_table, PONS_KIND_TRANSFORM, "transforms of each case, applied once"),
    SECTION(patch, patch_table, 0, "patches of a case for training"),
    SECTION(augment, augment_table, PONS_KIND_TRANSFORM, "random transforms of each patch"),
    SECTION(model, model_table, PONS_KIND_MODEL, "the network"),
    SECTION(loss, loss_table, PONS_KIND_LOSS, "the loss that training minimises"),
    SECTION(optimizer, optimizer_table, PONS_KIND_OPTIMIZER, "the update of the parameters"),
    SECTION(schedule, schedule_table, PONS_KIND_SCHEDULE, "the learning rate over time"),
    SECTION(train, train_table, 0, "length, batches, validation and checkpoints"),
    SECTION(distribute, distribute_table, 0, "devices, replicas and threads"),
    SECTION(window, window_table, 0, "the sliding window of validation and prediction"),
    SECTION(predict, predict_table, 0, "the prediction on the grid of the file"),
    { "diffusion", "noise and timesteps of task = synthesis", noise_table,
      offsetof(sections, diffusion), sizeof(diffusion_options), 0, TASK_SYNTHESIS },
    SECTION(device, device_table, 0, "kernels and their memory"),
    SECTION(log, log_table, 0, "metrics, their outputs and intervals"),
    { NULL, NULL, NULL, 0, 0, 0, 0 }
};

int section_key_kind(const section_table *t, const char *key)
{
    if (strcmp(t->name, "log") == 0 && strcmp(key, "sinks") == 0)
        return PONS_KIND_SINK;
    return strcmp(key, "plugin") == 0 || strcmp(key, "steps") == 0 ? t->plugin_kind : 0;
}

int section_names_kind(const section_table *t)
{
    int kind = 0;

    for (const pons_option *o = t->options; o->name != NULL && kind == 0; o++)
        kind = section_key_kind(t, o->name);
    return kind;
}

/* ---- values that this build lacks -------------------------------------------------------- */

/* A build without 'library' lacks the value of the key; NULL: all values but the default. */
static const struct { const char *section, *key, *value, *library; } not_built[] = {
    { "data", "cache", "lmdb", "lmdb" },
    { "log", "sinks", "mlflow", "curl" },
};

static bool lacks_row(size_t row)
{
    return build_feature_missing("", not_built[row].library) != NULL;
}

/*
 * Whether 'word' is a word of 'list'. Words end at blanks, commas and the colon of a device number.
 */
static bool holds_word(const char *list, const char *word)
{
    static const char dividers[] = " \t,:";
    size_t size = strlen(word);

    for (const char *at = list; (at = strstr(at, word)) != NULL; at += size)
        if ((at == list || strchr(dividers, at[-1]) != NULL) && strchr(dividers, at[size]) != NULL)
            return true;
    return false;
}

/* The core's row of a key; NULL: there is none. */
static const pons_option *find_row(const char *section, const char *key)
{
    for (const section_table *t = section_tables; t->name != NULL; t++)
        if (strcmp(t->name, section) == 0)
            return option_find(t->options, key);
    return NULL;
}

static const char *default_of(const char *section, const char *key)
{
    const pons_option *row = find_row(section, key);

    return row != NULL ? row->fallback : "";
}

static pons_status refuse_not_built(config *c, pons_error *err)
{
    for (size_t i = 0; i < sizeof not_built / sizeof *not_built; i++) {
        const char *section = not_built[i].section, *key = not_built[i].key;
        const config_entry *e = config_find(c, section, key);
        if (e == NULL || !lacks_row(i))
            continue;
        if (not_built[i].value != NULL && holds_word(e->value, not_built[i].value))
            return pons_fail(err, PONS_CONFIG, "%s: [%s] %s = '%s': '%s' is not in this build",
                             config_origin(c, section, key), section, key, e->value,
                             not_built[i].value);
        if (not_built[i].value == NULL && strcmp(e->value, default_of(section, key)) != 0)
            return pons_fail(err, PONS_CONFIG, "%s: [%s] %s = '%s': '%s' is not in this build",
                             config_origin(c, section, key), section, key, e->value, key);
    }
    return PONS_OK;
}

/* ---- sections of a task ---------------------------------------------------------------------- */

/* [experiment], which names the task, is filled first. */
static bool has_section(const sections *s, const section_table *t)
{
    return t->task == 0 || t->task == s->experiment.task;
}

static pons_status refuse_section(config *c, const section_table *t, pons_error *err)
{
    for (const pons_option *o = t->options; o->name != NULL; o++)
        if (config_given(c, t->name, o->name))
            return pons_fail(err, PONS_CONFIG, "%s: section [%s] is for task = %s\n"
                             "hint: --set experiment.task=%s", config_origin(c, t->name, o->name),
                             t->name, task_words[t->task], task_words[t->task]);
    return PONS_OK;
}

/* ---- fill ------------------------------------------------------------------------------------ */

static pons_status check_class_weights(config *c, const patch_options *p, pons_error *err)
{
    const char *where = config_origin(c, "patch", "class_weights");
    double sum = 0;

    if (p->sampling != SAMPLING_CLASSES)
        return pons_fail(err, PONS_CONFIG, "%s: [patch] class_weights are given, but sampling is "
                         "'%s'\nhint: --set patch.sampling=classes", where,
                         sampling_words[p->sampling]);
    for (int i = 0; i < p->class_weights.count; i++)
        sum += p->class_weights.item[i];
    if (sum > 0)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: [patch] class_weights are all 0, expected one above 0",
                     where);
}

static pons_status check_foreground_share(config *c, const patch_options *p, pons_error *err)
{
    if (p->foreground_share == 0 && p->far_end != 0)
        return pons_fail(err, PONS_CONFIG, "%s: [patch] far_end is 'beyond', but foreground_share "
                         "is 0\nhint: --set patch.far_end=inside",
                         config_origin(c, "patch", "far_end"));
    if (p->foreground_share == 0 || p->sampling == SAMPLING_UNIFORM)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: [patch] foreground_share is given, but sampling is "
                     "'%s'\nhint: --set patch.sampling=uniform",
                     config_origin(c, "patch", "foreground_share"), sampling_words[p->sampling]);
}

static pons_status refuse_limit(config *c, const char *word, const char *expected, pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "%s: [data] cache_limit = '%s': expected %s",
                     config_origin(c, "data", "cache_limit"), word, expected);
}

static int word_of(const char *const words[], const char *text, size_t size)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strlen(words[i]) == size && memcmp(words[i], text, size) == 0)
            return i;
    return -1;
}

/* Whether cases that an earlier kind has no room for can be held in this kind, too. */
static bool takes_rest(int mode)
{
    return mode == CACHE_MEMORY || cache_mode_in_folder(mode);
}

/* Read KIND:SIZE, the kind at a place of the list. */
static pons_status fill_tier(config *c, data_options *d, int place, pons_error *err)
{
    const char *word = d->cache_limit.item[place];
    size_t size = strcspn(word, ":");
    cache_tier_option *to = &d->cache_tier[place];

    to->mode = word_of(cache_words, word, size);
    if (to->mode < 0 || word[size] == '\0' || !text_size(word + size + 1, &to->limit)
        || to->limit < 0)
        return refuse_limit(c, word, "a size such as 4MiB, or kinds with sizes, as in memory:8GiB "
                            "disk:100GiB", err);
    if (place == 0 && to->mode != d->cache)
        return pons_fail(err, PONS_CONFIG, "%s: [data] cache_limit begins with '%.*s', expected "
                         "'%s', the kind of cache", config_origin(c, "data", "cache_limit"),
                         (int)size, word, cache_words[d->cache]);
    if (place > 0 && (!takes_rest(to->mode) || to->mode == d->cache
                      || (to->mode == CACHE_MEMORY && d->cache == CACHE_DEVICE)))
        return refuse_limit(c, word, d->cache == CACHE_DEVICE ? "disk or lmdb behind device"
                            : "another kind of memory, disk and lmdb", err);
    if (sections_lack_value("data", "cache", word, size))
        return pons_fail(err, PONS_CONFIG, "%s: [data] cache_limit = '%s': '%.*s' is not in this "
                         "build", config_origin(c, "data", "cache_limit"), word, (int)size, word);
    return PONS_OK;
}

/* Find the kinds that hold cases, and their limits, from 'cache' and 'cache_limit'. */
static pons_status fill_tiers(config *c, data_options *d, pons_error *err)
{
    const pons_texts *given = &d->cache_limit;
    int64_t limit = 0;

    d->cache_tier_count = d->cache != CACHE_NONE;
    d->cache_tier[0] = (cache_tier_option){ .mode = d->cache };
    if (given->count == 0)
        return PONS_OK;
    if (given->count == 1 && text_size(given->item[0], &limit) && limit >= 0) {
        d->cache_tier[0].limit = limit;
        return PONS_OK;
    }
    if (given->count > CACHE_TIERS_MAX || (given->count > 1 && d->cache == CACHE_SMART))
        return pons_fail(err, PONS_CONFIG, "%s: [data] cache_limit: found %d words, expected at "
                         "most %d with cache = %s", config_origin(c, "data", "cache_limit"),
                         given->count, d->cache == CACHE_SMART ? 1 : CACHE_TIERS_MAX,
                         cache_words[d->cache]);
    if (d->cache == CACHE_NONE)
        return refuse_limit(c, given->item[0], "a size with cache = none", err);
    for (int i = 0; i < given->count; i++)
        if (fill_tier(c, d, i, err) != PONS_OK)
            return err->status;
    d->cache_tier_count = given->count;
    return PONS_OK;
}

/* The hint removes the key that a file gives, not the key that --set gives. */
static pons_status check_length(config *c, const train_options *t, pons_error *err)
{
    const config_entry *steps = config_find(c, "train", "steps");
    const config_entry *epochs = config_find(c, "train", "epochs");
    const char *back;

    if (t->epochs == 0 || t->steps == 0)
        return PONS_OK;
    back = steps->line > 0 && epochs->line == 0 ? "steps" : "epochs";
    return pons_fail(err, PONS_CONFIG, "%s: [train] epochs and steps are both given, expected one\n"
                     "hint: --set train.%s= takes the %s of a file back",
                     config_origin(c, "train", "steps"), back, back);
}

/* Powers of two scale a gradient without rounding, and a checkpoint stores their exponent. */
static pons_status check_loss_scale(config *c, const train_options *t, pons_error *err)
{
    const struct { const char *key; double value; } scales[] = {
        { "loss_scale", t->loss_scale }, { "loss_scale_growth", t->loss_scale_growth },
        { "loss_scale_backoff", t->loss_scale_backoff }
    };

    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        int exponent;
        if (frexp(scales[i].value, &exponent) != 0.5)
            return pons_fail(err, PONS_CONFIG, "%s: [train] %s: found %g, expected a power of two",
                             config_origin(c, "train", scales[i].key), scales[i].key,
                             scales[i].value);
    }
    return PONS_OK;
}

/* The presets differ in the initial scale alone, so the other keys have the same defaults. */
static void expand_loss_scaling(config *c, train_options *t)
{
    if (t->loss_scaling != LOSS_SCALING_FAST_DDPM || config_given(c, "train", "loss_scale"))
        return;
    t->loss_scale = 2048;
    config_resolve(c, "train", "loss_scale", "2048", "that of loss_scaling");
}

/* Check rules between the keys of a section that ranges cannot express. */
static pons_status check_sections(config *c, const sections *s, pons_error *err)
{
    const char *name = s->experiment.name;

    if (name != NULL && (strchr(name, '/') != NULL || name[0] == '.'))
        return pons_fail(err, PONS_CONFIG, "%s: [experiment] name = '%s': expected a folder name, "
                         "without '/' and not beginning with '.'",
                         config_origin(c, "experiment", "name"), name);
    if (s->patch.background_above.count > 1)
        return pons_fail(err, PONS_CONFIG,
                         "%s: [patch] background_above: found %d numbers, expected one",
                         config_origin(c, "patch", "background_above"),
                         s->patch.background_above.count);
    if (s->patch.class_weights.count > 0 && check_class_weights(c, &s->patch, err) != PONS_OK)
        return PONS_CONFIG;
    if (check_foreground_share(c, &s->patch, err) != PONS_OK
        || check_loss_scale(c, &s->train, err) != PONS_OK
        || (s->experiment.task == TASK_SYNTHESIS
            && diffusion_betas_check(c, &s->diffusion, err) != PONS_OK))
        return PONS_CONFIG;
    for (int i = 0; i < s->window.mirror.count; i++)
        for (int j = 0; j < i; j++)
            if (s->window.mirror.item[i] == s->window.mirror.item[j])
                return pons_fail(err, PONS_CONFIG, "%s: [window] mirror: found %d twice",
                                 config_origin(c, "window", "mirror"),
                                 (int)s->window.mirror.item[i]);
    return check_length(c, &s->train, err);
}

/* Refuse unknown names before values that may be missing because of a misspelt name. */
static pons_status refuse_unknown_names(config *c, const sections *s, pons_error *err)
{
    if (config_refuse_sections(c, err) != PONS_OK)
        return PONS_CONFIG;
    for (const section_table *t = section_tables; t->name != NULL; t++)
        if (t->plugin_kind == 0 && has_section(s, t)
            && config_refuse_keys(c, t->name, err) != PONS_OK)
            return PONS_CONFIG;
    return PONS_OK;
}

pons_status sections_fill(config *c, sections *s, pons_error *err)
{
    memset(s, 0, sizeof *s);
    if (augment_profile_expand(c, err) != PONS_OK)
        return err->status;
    for (const section_table *t = section_tables; t->name != NULL; t++)
        if ((has_section(s, t) ? config_fill(c, t->name, t->options, (char *)s + t->offset, err)
             : refuse_section(c, t, err)) != PONS_OK)
            return PONS_CONFIG;
    if (refuse_unknown_names(c, s, err) != PONS_OK || refuse_not_built(c, err) != PONS_OK
        || fill_tiers(c, &s->data, err) != PONS_OK)
        return PONS_CONFIG;
    expand_loss_scaling(c, &s->train);
    return check_sections(c, s, err);
}

pons_status sections_fill_step(config *c, const char *name, step_options *s, pons_error *err)
{
    memset(s, 0, sizeof *s);
    return config_fill(c, name, step_option_table, s, err);
}

void sections_leave_out(config *c, logger *l)
{
    for (const section_table *t = section_tables; t->name != NULL; t++)
        for (const pons_option *o = t->options; o->name != NULL; o++) {
            int kind = section_key_kind(t, o->name);
            const char *names = kind == PONS_KIND_TRANSFORM || kind == PONS_KIND_SINK
                              ? config_leave_out_parts(c, t->name, o->name) : NULL;
            if (names != NULL)
                log_warning(l, "[%s] sections of %s: left out, since --set replaces '%s'", t->name,
                            names, o->name);
        }
}

static bool is_kept(const char *name, const char *const kept[])
{
    for (; *kept != NULL; kept++)
        if (strcmp(*kept, name) == 0)
            return true;
    return false;
}

void sections_skip_plugins(config *c, const sections *s, const char *const kept[])
{
    for (const section_table *t = section_tables; t->name != NULL; t++) {
        const steps_options *steps = (const void *)((const char *)s + t->offset);
        if (t->plugin_kind == 0 || is_kept(t->name, kept))
            continue;
        config_skip(c, t->name);
        for (int i = 0; t->plugin_kind == PONS_KIND_TRANSFORM && i < steps->steps.count; i++) {
            char name[256];
            snprintf(name, sizeof name, "%s.%s", t->name, steps->steps.item[i]);
            config_skip(c, name);
        }
    }
    for (int i = 0; i < s->log.sinks.count; i++) {
        char name[256];
        snprintf(name, sizeof name, "log.%s", s->log.sinks.item[i]);
        config_skip(c, name);
    }
}

/* Keys that training needs. Their default is empty, because other commands do not need them. */
static const struct { const char *section, *key, *need; } needed[] = {
    { "experiment", "name", "(must be given)" }, { "patch", "extent", "(must be given)" },
    { "data", "source", "(this or image must be given)" },
    { "data", "image", "(this or source must be given)" },
    { "model", "plugin", "(must be given)" }, { "loss", "plugin", "(must be given)" },
    { "optimizer", "plugin", "(must be given)" },
    { "train", "epochs", "(this or steps must be given)" },
    { "train", "steps", "(this or epochs must be given)" },
};

static const section_table *table_of(const pons_option *row)
{
    for (const section_table *t = section_tables; t->name != NULL; t++)
        for (const pons_option *o = t->options; o->name != NULL; o++)
            if (o == row)
                return t;
    return NULL;
}

const char *sections_need(const pons_option *row)
{
    const section_table *t = table_of(row);

    for (size_t i = 0; t != NULL && i < sizeof needed / sizeof *needed; i++)
        if (strcmp(needed[i].section, t->name) == 0 && strcmp(needed[i].key, row->name) == 0)
            return needed[i].need;
    return NULL;
}

const char *sections_lack(const pons_option *row, char *text, size_t size)
{
    const section_table *t = table_of(row);
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; t != NULL && i < sizeof not_built / sizeof *not_built; i++) {
        const char *value = not_built[i].value != NULL ? not_built[i].value : row->name;
        if (strcmp(not_built[i].section, t->name) == 0 && strcmp(not_built[i].key, row->name) == 0
            && lacks_row(i) && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? " " : "", value);
    }
    return text;
}

bool sections_lack_value(const char *section, const char *key, const char *value, size_t size)
{
    for (size_t i = 0; i < sizeof not_built / sizeof *not_built; i++) {
        const char *lacks = not_built[i].value;
        if (strcmp(not_built[i].section, section) == 0 && strcmp(not_built[i].key, key) == 0
            && lacks_row(i) && lacks != NULL && strlen(lacks) == size
            && memcmp(lacks, value, size) == 0)
            return true;
    }
    return false;
}

pons_status sections_require(const char *section, const char *key, pons_error *err)
{
    const pons_option *row = find_row(section, key);

    if (row != NULL)
        return pons_fail(err, PONS_CONFIG, "[%s] has no '%s', which must be given: %s", section,
                         key, row->help);
    return pons_fail(err, PONS_CONFIG, "[%s] has no '%s', which must be given", section, key);
}
