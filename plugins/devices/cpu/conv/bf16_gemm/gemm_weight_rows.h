/*
 * gemm_weight_rows.h - gradients of a convolution by its weight, line by line
 * (gemm_weight_rows.c), and what is multiplied there: the tensors as they stand
 * (gemm_weight_plain.c), or tiles of them (winograd_weight_gradient.c).
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_GEMM_WEIGHT_ROWS_H
#define PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_GEMM_WEIGHT_ROWS_H

#include "cpu/conv/bf16_gemm/bf16_gemm.h"

enum {
    WEIGHT_ROW = WIDE_ACROSS * WIDE_TILE,   /* floats of a row of sums */
    WEIGHT_TERMS = 4
};

/* Cases, planes and lines. */
enum { CASES, PLANES, LINES, AXES };

/* From 'begin' to before 'end', of one of the tensors. */
typedef struct weight_span {
    int begin[AXES], end[AXES];
} weight_span;

/*
 * Where some sums stand: a group, a kernel position along D and H, columns first .. end - 1, tiles
 * of output channels first_out .. end_out - 1.
 */
typedef struct weight_place {
    int group, d, h, first, end, first_out, end_out;
} weight_place;

/* Numbers a form packs side by side: set 'y' of the rows is multiplied by set 'x' of the strips. */
typedef struct weight_term {
    int y, x;
} weight_term;

typedef struct weight_lines weight_lines;

/* How numbers become what is multiplied. */
typedef struct weight_form {
    const char *name;   /* of the implementation */
    /* Block 'block', of WIDE_NUMBERS numbers, of the lines of a span of y: rows, w->pitch apart. */
    void (*pack_y)(const weight_lines *w, const char *y, const weight_span *s, int64_t block,
                   char *to);
    /* A line of x: all strips, w->strip apart. */
    void (*pack_x)(const weight_lines *w, const char *x, const int at[AXES], char *to);
    /* The sums of a place, WEIGHT_ROW floats for each output channel, 'apart' those of a group. */
    void (*write)(const weight_lines *w, const weight_place *at, const float *sums, int64_t apart,
                  float *weight);
    /*
     * What a group sums up, at most WEIGHT_TERMS, and returns how many; NULL: its own set by its
     * own.
     */
    int (*terms)(const weight_lines *w, int group, weight_term *to);
    bool together;      /* written are all groups at once */
} weight_form;

struct weight_lines {
    /* For wide_lines_prepare. */
    const weight_form *form;
    const wide_unit *unit;
    int threads;
    int y[AXES], x[AXES], y_width, x_width; /* lines, and the numbers of each */
    pons_convolution c;             /* of these lines */
    int kernel[3];
    int groups, ins, outs;          /* channels in a group */
    int y_sets, x_sets;             /* of all groups' terms */
    /* Planned by it. */
    int in_tiles, out_tiles;        /* of a group */
    int pairs, x_pairs;             /* of a line of y; of x with those beyond it */
    int strips;                     /* of a tile: for kernel positions along W 0, 1, ...; */
    int shift;                      /* those 'strips' further on begin so many pairs later */
    int box[AXES], boxes[AXES];     /* lines of y in each, and how many there are */
    int box_count, planes;          /* planes: of x that a box meets at most */
    int columns, blocks;            /* of a group: tiles by kernel positions along W; products */
    int places;                     /* kernel positions along D and H x blocks */
    int jobs;                       /* groups x places */
    int shares;                     /* of the output channels, a task each */
    int tasks;                      /* with sums of their own; 0: threads share boxes */
    int64_t pitch, strip;           /* bytes of a packed row, of a strip */
    int64_t y_size, x_size, runs_size, part_size; /* bytes; the last one: sums of a job */
    char *zero;                     /* the channels of a number */
};

/* How many lines a span has; and which case, plane and line one of them is. */
int64_t weight_line_count(const weight_span *s);
void weight_line_of(const weight_span *s, int64_t number, int at[AXES]);

/*
 * As pons_device_operations.prepare; 'w', from malloc, becomes the kernel's state,
 * or is freed where it fails.
 */
pons_status wide_lines_prepare(weight_lines *w, pons_kernel *kernel, bool *supported,
                               pons_error *err);

#endif
