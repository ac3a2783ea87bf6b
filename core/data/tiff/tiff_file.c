/*
 * tiff_file.c - open TIFF files by libtiff, and read their blocks.
 */
#include "data/tiff/tiff_file.h"

#include <stdarg.h>
#include <stdlib.h>

/* ---- the library ----------------------------------------------------------------------------- */

static pons_status open_library(tiff_file *f)
{
    static const char *const names[] = { TIFF_FUNCTIONS(SHARED_LIBRARY_NAME) };

    return shared_library_open(&(shared_library){ "libtiff.so.6", f->use, "libtiff 4.5 or later",
                                                  names, sizeof names / sizeof *names },
                               f->path, &f->lib, f->err);
}

static int take_error(TIFF *tiff, void *context, const char *module, const char *format,
                      va_list arguments)
{
    const tiff_file *f = context;
    char text[512];

    vsnprintf(text, sizeof text, format, arguments);
    pons_fail(f->err, PONS_DATA, "%s '%s': %s (libtiff)", f->action, f->path, text);
    return 1;
}

static int take_warning(TIFF *tiff, void *context, const char *module, const char *format,
                        va_list arguments)
{
    const tiff_file *f = context;

    return f->in_block ? take_error(tiff, context, module, format, arguments) : 1;
}

static tmsize_t read_bytes(thandle_t context, void *out, tmsize_t size)
{
    tiff_file *f = context;
    tmsize_t found = f->stream.read(f->stream.context, out, size);

    f->ended = f->ended || found < size;
    return found;
}

static tmsize_t write_bytes(thandle_t context, void *from, tmsize_t size)
{
    const tiff_stream *s = &((const tiff_file *)context)->stream;

    return s->write(s->context, from, size);
}

static toff_t seek(thandle_t context, toff_t offset, int whence)
{
    const tiff_stream *s = &((const tiff_file *)context)->stream;

    return s->seek(s->context, offset, whence);
}

static toff_t size_of(thandle_t context)
{
    const tiff_stream *s = &((const tiff_file *)context)->stream;

    return s->size(s->context);
}

static int keep_open(thandle_t context)
{
    return 0;
}

pons_status tiff_open(tiff_file *f, const char *mode)
{
    TIFFOpenOptions *options;

    if (open_library(f) != PONS_OK)
        return f->err->status;
    options = f->lib.TIFFOpenOptionsAlloc();
    if (options == NULL)
        return pons_fail(f->err, PONS_DEVICE, "out of memory for '%s'", f->path);
    f->lib.TIFFOpenOptionsSetErrorHandlerExtR(options, take_error, f);
    f->lib.TIFFOpenOptionsSetWarningHandlerExtR(options, take_warning, f);
    f->tiff = f->lib.TIFFClientOpenExt(f->path, mode, f, read_bytes, write_bytes, seek, keep_open,
                                       size_of, NULL, NULL, options);
    f->lib.TIFFOpenOptionsFree(options);
    if (f->tiff == NULL)
        pons_fail(f->err, PONS_DATA, "%s '%s': libtiff refuses it", f->action, f->path);
    return f->err->status;
}

void tiff_close(tiff_file *f)
{
    if (f->tiff != NULL)
        f->lib.TIFFClose(f->tiff);
    free(f->block);
    f->tiff = NULL;
    f->block = NULL;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

void tiff_find_blocks(tiff_file *f, uint32_t columns, uint32_t rows)
{
    uint32_t strip = 0;

    if (f->lib.TIFFIsTiled(f->tiff)) {
        f->lib.TIFFGetField(f->tiff, TIFFTAG_TILEWIDTH, &f->width);
        f->lib.TIFFGetField(f->tiff, TIFFTAG_TILELENGTH, &f->height);
        f->block_size = f->lib.TIFFTileSize(f->tiff);
    } else {
        f->lib.TIFFGetFieldDefaulted(f->tiff, TIFFTAG_ROWSPERSTRIP, &strip);
        f->width = columns;
        f->height = strip < rows ? strip : rows;
        f->block_size = f->lib.TIFFStripSize(f->tiff);
    }
}

tmsize_t tiff_row_size(const tiff_file *f)
{
    return f->lib.TIFFIsTiled(f->tiff) ? f->lib.TIFFTileRowSize(f->tiff)
                                       : f->lib.TIFFScanlineSize(f->tiff);
}

static pons_status allocate_block(tiff_file *f)
{
    if (f->block == NULL)
        f->block = malloc((size_t)f->block_size);
    if (f->block == NULL)
        return pons_fail(f->err, PONS_DEVICE, "out of memory: a strip or tile of '%s' needs %lld "
                         "bytes", f->path, (long long)f->block_size);
    return PONS_OK;
}

static tmsize_t fetch_block(tiff_file *f, bool tiled, uint32_t number)
{
    tmsize_t found;

    f->ended = false;
    f->in_block = true;
    found = tiled ? f->lib.TIFFReadEncodedTile(f->tiff, number, f->block, f->block_size)
                  : f->lib.TIFFReadEncodedStrip(f->tiff, number, f->block, f->block_size);
    f->in_block = false;
    return found;
}

pons_status tiff_read_block(tiff_file *f, uint32_t x, uint32_t y, uint16_t plane, int64_t rows)
{
    bool tiled = f->lib.TIFFIsTiled(f->tiff);
    uint32_t number = tiled ? f->lib.TIFFComputeTile(f->tiff, x, y, 0, plane)
                            : f->lib.TIFFComputeStrip(f->tiff, y, plane);
    tmsize_t found;

    if (allocate_block(f) != PONS_OK)
        return f->err->status;
    found = fetch_block(f, tiled, number);
    if (f->err->status != PONS_OK && !f->ended)
        return f->err->status;
    if (f->err->status == PONS_OK && found >= rows * tiff_row_size(f))
        return PONS_OK;
    /* The message of libtiff about an early end names a row that it has not begun. */
    *f->err = (pons_error)PONS_ERROR_INIT;
    return pons_fail(f->err, PONS_DATA, "%s '%s': it ends too early, in the block at column %u, "
                     "row %u", f->action, f->path, x, y);
}
