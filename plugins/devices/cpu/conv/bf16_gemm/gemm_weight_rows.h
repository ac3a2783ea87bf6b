/*
 * gemm_weight_rows.h - the weight gradient of a convolution, line by line (gemm_weight_rows.c).
 *
 * A form packs the factors: elements of the tensors (gemm_weight_plain.c), or Winograd tiles
 * (winograd_weight_gradient.c).
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_GEMM_WEIGHT_ROWS_H
#define PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_GEMM_WEIGHT_ROWS_H

#include "cpu/conv/bf16_gemm/bf16_gemm.h"

enum {
    WEIGHT_ROW = GEMM_ACROSS * GEMM_TILE,   /* floats of a row of sums */
    WEIGHT_TERMS = 4
};

/* Cases, planes and lines. */
enum { CASES, PLANES, LINES, AXES };

/* Indices 'begin' to 'end' - 1 of one of the tensors. */
typedef struct gemm_weight_span {
    int begin[AXES], end[AXES];
} gemm_weight_span;

/*
 * The place of some sums: a group, a kernel position along D and H, columns first .. end - 1, and
 * tiles of output channels first_out .. end_out - 1.
 */
typedef struct gemm_weight_place {
    int group, d, h, first, end, first_out, end_out;
} gemm_weight_place;

/*
 * A form packs sets of elements: set 'y' of the rows is multiplied by set 'x' of the strips, 'line'
 * lines and 'pair' pairs further on.
 */
typedef struct gemm_weight_term {
    int y, x, line, pair;
} gemm_weight_term;

typedef struct gemm_weight_rows gemm_weight_rows;

/* The mapping from elements of the tensors to factors. */
typedef struct gemm_weight_form {
    /* Pack block 'block', of GEMM_TILE pairs, of a span of y as rows w->pitch apart. */
    void (*pack_y)(const gemm_weight_rows *w, const char *y, const gemm_weight_span *s,
                   int64_t block, char *to);
    /* Pack a line of x: all strips, w->strip apart. */
    void (*pack_x)(const gemm_weight_rows *w, const char *x, const int at[AXES], char *to);
    /* Write the sums of a place: WEIGHT_ROW floats for each output channel, groups 'apart'. */
    void (*write)(const gemm_weight_rows *w, const gemm_weight_place *at, const float *sums,
                  int64_t apart, float *weight);
    /* List the terms of a group and return their count; NULL: its own set of both. */
    int (*terms)(const gemm_weight_rows *w, int group, gemm_weight_term *to);
    bool together;      /* all groups are written at once */
} gemm_weight_form;

struct gemm_weight_rows {
    /* Members that gemm_weight_rows_prepare alone reads. */
    const gemm_weight_form *form;
    const gemm_engine *unit;
    int threads;
    int together;                   /* elements of a pair: 2 of bf16, 1 float */
    int y[AXES], x[AXES], y_width, x_width; /* lines, and elements of a line */
    pons_convolution c;             /* of these lines */
    int kernel[3];
    int groups, ins, outs;          /* channels in a group */
    int y_sets, x_sets;             /* of all groups' terms */
    int ahead;                      /* lines and pairs of x that terms lie further on, at most */
    /* Planned by it. */
    int in_tiles, out_tiles;        /* of a group */
    int pairs, x_pairs;             /* of a line of y; of x, with the reach of the kernel */
    int strips;                     /* of a tile, one for each kernel position along W from 0 on */
    int shift;                      /* pairs from a kernel position to the one 'strips' later */
    int box[AXES], boxes[AXES];     /* lines of y in a box; count of boxes */
    int box_count, planes;          /* planes: the most of x that a box meets */
    int columns, blocks;            /* of a group: tiles by kernel positions along W; products */
    int places;                     /* kernel positions along D and H x blocks */
    int jobs;                       /* groups x places */
    int shares;                     /* parts of the output channels, a task each */
    int tasks;                      /* with sums of their own; 0: threads share boxes */
    int64_t pitch, strip;           /* bytes of a packed row, of a strip */
    int64_t y_size, x_size, runs_size, part_size; /* bytes; part_size: of the sums of a job */
    char *zero;                     /* zeros for all channels of a position */
};

/* The count of lines of a span; case, plane and line of one of them. */
int64_t gemm_weight_line_count(const gemm_weight_span *s);
void gemm_weight_line_of(const gemm_weight_span *s, int64_t number, int at[AXES]);

/* 'w', from malloc, becomes the kernel's state, or is freed where it fails. */
pons_status gemm_weight_rows_prepare(gemm_weight_rows *w, pons_kernel *kernel, pons_error *err);

#endif
