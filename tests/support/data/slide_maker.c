/*
 * slide_maker.c - the directories of all levels, the shared tile of background, then the tiles with
 * tissue.
 */
#include "support/data/slide_maker.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAGS = 13, DIRECTORY_SIZE = 2 + 12 * TAGS + 4 };
enum { TYPE_SHORT = 3, TYPE_LONG = 4 };

typedef struct level_shape {
    int64_t rows, columns, down, across; /* pixels; tiles along both sides                        */
} level_shape;

typedef struct slide_making {
    const slide_plan *plan;
    FILE *file;
    uint32_t background, next; /* positions of tiles in the file                                  */
} slide_making;

static level_shape shape_of(const slide_plan *p, int level)
{
    level_shape s = { .rows = p->rows >> level, .columns = p->columns >> level };

    s.down = (s.rows + p->tile - 1) / p->tile;
    s.across = (s.columns + p->tile - 1) / p->tile;
    return s;
}

static uint32_t tile_size(const slide_plan *p)
{
    return (uint32_t)p->tile * (uint32_t)p->tile * 3;
}

static uint32_t level_size(const slide_plan *p, int level)
{
    level_shape s = shape_of(p, level);

    return DIRECTORY_SIZE + 8 + (uint32_t)(s.down * s.across) * 8;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static const slide_box *box_at(const slide_plan *p, int64_t row, int64_t column)
{
    for (const slide_box *b = p->box + p->box_count - 1; p->box_count > 0 && b >= p->box; b--)
        if (row >= b->row && row < b->row + b->rows && column >= b->column
            && column < b->column + b->columns)
            return b;
    return NULL;
}

/* A hash of the position, 0 to 31. */
static int noise_at(int64_t row, int64_t column, int c)
{
    uint32_t h = (uint32_t)row * 0x9e3779b1u ^ (uint32_t)column * 0x85ebca77u ^ (uint32_t)c << 28;

    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return (int)(h >> 27);
}

void slide_plan_pixel(const slide_plan *p, int level, int64_t row, int64_t column, uint8_t rgb[3])
{
    const slide_box *box = box_at(p, row << level, column << level);

    for (int c = 0; c < 3; c++) {
        int value = box == NULL ? 255
                                : box->rgb[c] + noise_at(row << level, column << level, c) - 15;
        rgb[c] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

/* Whether a tile of a level meets a box. */
static bool has_tissue(const slide_plan *p, int level, int64_t down, int64_t across)
{
    int64_t side = (int64_t)p->tile << level, row = down * side, column = across * side;

    for (int b = 0; b < p->box_count; b++) {
        const slide_box *box = &p->box[b];
        if (row < box->row + box->rows && row + side > box->row
            && column < box->column + box->columns && column + side > box->column)
            return true;
    }
    return false;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void put_bytes(const slide_making *m, const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, m->file) != size) {
        perror("slide_maker");
        exit(1);
    }
}

static void put_number(const slide_making *m, uint32_t value, int size)
{
    unsigned char bytes[4];

    for (int i = 0; i < size; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    put_bytes(m, bytes, (size_t)size);
}

static void put_tag(const slide_making *m, unsigned tag, int type, uint32_t count, uint32_t value)
{
    put_number(m, tag, 2);
    put_number(m, (uint32_t)type, 2);
    put_number(m, count, 4);
    put_number(m, value, 4);
}

/* The directory of a level at 'at', with its values behind it. */
static void put_directory(slide_making *m, int level, uint32_t at)
{
    const slide_plan *p = m->plan;
    level_shape s = shape_of(p, level);
    uint32_t tiles = (uint32_t)(s.down * s.across), values = at + DIRECTORY_SIZE;
    bool last = level + 1 == p->levels, single = tiles == 1;
    uint32_t first = has_tissue(p, level, 0, 0) ? m->next : m->background;

    put_number(m, TAGS, 2);
    put_tag(m, 254, TYPE_LONG, 1, level > 0);   /* NewSubfileType: a smaller version of another */
    put_tag(m, 256, TYPE_LONG, 1, (uint32_t)s.columns);
    put_tag(m, 257, TYPE_LONG, 1, (uint32_t)s.rows);
    put_tag(m, 258, TYPE_SHORT, 3, values);     /* BitsPerSample                                */
    put_tag(m, 259, TYPE_SHORT, 1, 1);          /* Compression: none                            */
    put_tag(m, 262, TYPE_SHORT, 1, 2);          /* PhotometricInterpretation: RGB               */
    put_tag(m, 277, TYPE_SHORT, 1, 3);          /* SamplesPerPixel                              */
    put_tag(m, 284, TYPE_SHORT, 1, 1);          /* PlanarConfiguration: samples side by side    */
    put_tag(m, 322, TYPE_LONG, 1, (uint32_t)p->tile);
    put_tag(m, 323, TYPE_LONG, 1, (uint32_t)p->tile);
    put_tag(m, 324, TYPE_LONG, tiles, single ? first : values + 8); /* TileOffsets                */
    put_tag(m, 325, TYPE_LONG, tiles, single ? tile_size(p) : values + 8 + 4 * tiles);
    put_tag(m, 339, TYPE_SHORT, 1, 1);          /* SampleFormat: whole numbers without a sign   */
    put_number(m, last ? 0 : at + level_size(p, level), 4);
    for (int c = 0; c < 4; c++)
        put_number(m, 8, 2);
    for (int64_t n = 0; n < s.down * s.across; n++) {
        bool tissue = has_tissue(p, level, n / s.across, n % s.across);
        put_number(m, tissue ? m->next : m->background, 4);
        m->next += tissue ? tile_size(p) : 0;
    }
    for (uint32_t n = 0; n < tiles; n++)
        put_number(m, tile_size(p), 4);
}

static void put_tile(const slide_making *m, int level, int64_t down, int64_t across,
                     unsigned char *bytes)
{
    int tile = m->plan->tile;

    for (int64_t row = 0; row < tile; row++)
        for (int64_t column = 0; column < tile; column++)
            slide_plan_pixel(m->plan, level, down * tile + row, across * tile + column,
                             bytes + (row * tile + column) * 3);
    put_bytes(m, bytes, tile_size(m->plan));
}

static void put_tiles(const slide_making *m, unsigned char *bytes)
{
    memset(bytes, 255, tile_size(m->plan));
    put_bytes(m, bytes, tile_size(m->plan));
    for (int level = 0; level < m->plan->levels; level++) {
        level_shape s = shape_of(m->plan, level);
        for (int64_t n = 0; n < s.down * s.across; n++)
            if (has_tissue(m->plan, level, n / s.across, n % s.across))
                put_tile(m, level, n / s.across, n % s.across, bytes);
    }
}

void slide_make(const char *path, const slide_plan *p)
{
    slide_making m = { .plan = p, .file = fopen(path, "wb"), .background = 8 };
    unsigned char *bytes = malloc(tile_size(p));

    if (m.file == NULL || bytes == NULL) {
        perror(path);
        exit(1);
    }
    for (int level = 0; level < p->levels; level++)
        m.background += level_size(p, level);
    m.next = m.background + tile_size(p);
    put_bytes(&m, "II*\0\10\0\0\0", 8);
    for (int level = 0, at = 8; level < p->levels; at += (int)level_size(p, level++))
        put_directory(&m, level, (uint32_t)at);
    put_tiles(&m, bytes);
    free(bytes);
    if (fclose(m.file) != 0) {
        perror(path);
        exit(1);
    }
}
