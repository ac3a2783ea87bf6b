/*
 * tiff_file.h - TIFF files by libtiff: the functions that are called, the handlers of its messages,
 * and blocks, which are tiles or strips.
 *
 * Messages of libtiff go to the handlers of the open file, so nothing is printed. Its first error
 * becomes our line. Warnings on tags concern what is not needed; a warning on pixels is damage,
 * such as that of a JPEG strip that ends too early.
 */
#ifndef CORE_DATA_TIFF_TIFF_FILE_H
#define CORE_DATA_TIFF_TIFF_FILE_H

#include <tiffio.h>

#include <pons/plugin.h>

#include "base/system/shared_library.h"

#define TIFF_FUNCTIONS(X) \
    X(TIFFOpenOptionsAlloc) X(TIFFOpenOptionsFree) X(TIFFOpenOptionsSetErrorHandlerExtR) \
    X(TIFFOpenOptionsSetWarningHandlerExtR) X(TIFFClientOpenExt) X(TIFFClose) \
    X(TIFFGetField) X(TIFFGetFieldDefaulted) X(TIFFSetField) X(TIFFIsTiled) X(TIFFTileSize) \
    X(TIFFStripSize) X(TIFFTileRowSize) X(TIFFScanlineSize) X(TIFFComputeTile) \
    X(TIFFComputeStrip) X(TIFFReadEncodedTile) X(TIFFReadEncodedStrip) X(TIFFWriteEncodedTile) \
    X(TIFFWriteDirectory)

typedef struct tiff_library {
    TIFF_FUNCTIONS(SHARED_LIBRARY_POINTER)
} tiff_library;

/* The bytes of a file as libtiff asks for them; all functions are called with 'context'. */
typedef struct tiff_stream {
    tmsize_t (*read)(void *context, void *out, tmsize_t size);
    tmsize_t (*write)(void *context, void *from, tmsize_t size);
    toff_t (*seek)(void *context, toff_t offset, int whence);
    toff_t (*size)(void *context);
    void *context;
} tiff_stream;

typedef struct tiff_file {
    tiff_stream stream;
    const char *action;           /* of messages, before the path: "cannot read"                  */
    const char *path;
    const char *use;              /* the files that need libtiff: "TIFF pictures"                 */
    pons_error *err;              /* of the call in work                                          */
    tiff_library lib;
    TIFF *tiff;
    uint32_t width, height;       /* of the blocks                                                */
    unsigned char *block;
    tmsize_t block_size;
    bool in_block;                /* libtiff decodes pixels                                       */
    bool ended;                   /* libtiff asked for bytes beyond the end of the file           */
} tiff_file;

/*
 * Open f->path; the caller has set the stream, the words and 'err'. libtiff depends on a dozen
 * libraries, so a program that reads no TIFF file does not load it. PONS_CONFIG: it is missing.
 */
pons_status tiff_open(tiff_file *f, const char *mode);
/* Close an open file, and free its block; other files are left as they are. */
void tiff_close(tiff_file *f);

/* Find the width, height and size in bytes of the blocks of an image of columns x rows pixels. */
void tiff_find_blocks(tiff_file *f, uint32_t columns, uint32_t rows);
/*
 * Read the block with pixel (x, y) of a plane into f->block. PONS_DATA: it is damaged, or has fewer
 * bytes than 'rows' of its rows.
 */
pons_status tiff_read_block(tiff_file *f, uint32_t x, uint32_t y, uint16_t plane, int64_t rows);
/* Bytes of a row of the block. */
tmsize_t tiff_row_size(const tiff_file *f);

#endif
