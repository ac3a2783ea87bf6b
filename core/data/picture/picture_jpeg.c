/*
 * picture_jpeg.c - decode JPEG by libjpeg-turbo: baseline and progressive; grey, colours, or CMYK,
 * which becomes red, green, blue as in PIL.
 *
 * libjpeg returns by longjmp on errors. What such a jump must not lose lies in a struct that the
 * function with setjmp does not own.
 */
#include "data/picture/picture_internal.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>
#include <jerror.h>

enum { SCANS_MAX = 500 };      /* limit of a progressive picture; encoders make about ten scans   */

typedef struct jpeg_reading {
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct jpeg;
    jmp_buf leave;
    const picture_bytes *bytes;
    pons_error *err;
    JSAMPLE *row;              /* a row of CMYK                                                   */
} jpeg_reading;

static jpeg_reading *reading_of(j_common_ptr jpeg)
{
    return jpeg->client_data;
}

static void refuse_jpeg(j_common_ptr jpeg)
{
    jpeg_reading *r = reading_of(jpeg);
    char text[JMSG_LENGTH_MAX];

    jpeg->err->format_message(jpeg, text);
    pons_fail(r->err, jpeg->err->msg_code == JERR_OUT_OF_MEMORY ? PONS_DEVICE : PONS_DATA,
              "cannot read '%s': %s (libjpeg)", r->bytes->path, text);
    longjmp(r->leave, 1);
}

/* Whether a warning leaves the pixels as they were stored. */
static bool is_harmless(int code)
{
    return code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM;
}

static void receive_message(j_common_ptr jpeg, int level)
{
    if (level >= 0 || is_harmless(jpeg->err->msg_code))
        return;
    if (jpeg->err->msg_code == JWRN_JPEG_EOF) {
        jpeg_reading *r = reading_of(jpeg);
        pons_fail(r->err, PONS_DATA, "cannot read '%s': it ends too early, after %zu bytes",
                  r->bytes->path, r->bytes->size);
        longjmp(r->leave, 1);
    }
    refuse_jpeg(jpeg);
}

static void count_scans(j_common_ptr jpeg)
{
    jpeg_reading *r = reading_of(jpeg);

    if (r->jpeg.input_scan_number <= SCANS_MAX)
        return;
    pons_fail(r->err, PONS_DATA, "cannot read '%s': it has more than %d scans", r->bytes->path,
              SCANS_MAX);
    longjmp(r->leave, 1);
}

/* Choose the colour space that libjpeg returns. The result is the channel count of the picture. */
static int choose_colours(jpeg_reading *r)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;

    switch (jpeg->jpeg_color_space) {
    case JCS_GRAYSCALE:
        jpeg->out_color_space = JCS_GRAYSCALE;
        return 1;
    case JCS_CMYK:
    case JCS_YCCK:
        jpeg->out_color_space = JCS_CMYK;
        return 3;
    case JCS_UNKNOWN:
        pons_fail(r->err, PONS_DATA, "cannot read '%s': it has %d components of unknown meaning, "
                  "expected grey, colours or CMYK", r->bytes->path, jpeg->num_components);
        longjmp(r->leave, 1);
    default:
        jpeg->out_color_space = JCS_RGB;
        return 3;
    }
}

/*
 * A colour is (255 - ink) (255 - black) / 255, rounded. Files store 255 - ink and 255 - black, as
 * Adobe's do and as PIL takes all files.
 */
static void convert_cmyk(const JSAMPLE *from, int64_t count, unsigned char *to)
{
    for (int64_t n = 0; n < count; n++, from += 4, to += 3)
        for (int c = 0; c < 3; c++) {
            unsigned light = from[3], ink = 255u - from[c];
            unsigned product = ink * light + 128;
            to[c] = (unsigned char)(light - (((product >> 8) + product) >> 8));
        }
}

static void read_rows(jpeg_reading *r, picture *out)
{
    bool cmyk = r->jpeg.out_color_space == JCS_CMYK;

    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        unsigned char *to = picture_row(out, r->jpeg.output_scanline);
        JSAMPROW row = cmyk ? r->row : to;
        jpeg_read_scanlines(&r->jpeg, &row, 1);
        if (cmyk)
            convert_cmyk(r->row, out->width, to);
    }
}

static void read_jpeg(jpeg_reading *r, picture_use use, picture *out)
{
    picture shape;

    if (setjmp(r->leave) != 0)
        return;
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.progress = &r->progress;
    jpeg_mem_src(&r->jpeg, r->bytes->data, r->bytes->size);
    jpeg_read_header(&r->jpeg, TRUE);
    if (picture_check_extent(r->bytes->path, r->jpeg.image_width, r->jpeg.image_height, r->err)
        != PONS_OK)
        return;
    shape = (picture){ .height = r->jpeg.image_height, .width = r->jpeg.image_width,
                       .channels = choose_colours(r), .size = 1 };
    if (picture_begin(r->bytes, use, &shape, out, r->err) != PONS_OK
        || !picture_has_values(use))
        return;
    jpeg_start_decompress(&r->jpeg);
    r->row = r->jpeg.mem->alloc_small((j_common_ptr)&r->jpeg, JPOOL_IMAGE,
                                      (size_t)out->width * 4 * sizeof *r->row);
    read_rows(r, out);
    jpeg_finish_decompress(&r->jpeg);
}

pons_status picture_decode_jpeg(const picture_bytes *bytes, picture_use use, picture *out,
                                pons_error *err)
{
    jpeg_reading *r = calloc(1, sizeof *r);

    if (r == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    r->bytes = bytes;
    r->err = err;
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = refuse_jpeg;
    r->errors.emit_message = receive_message;
    r->progress.progress_monitor = count_scans;
    r->jpeg.client_data = r;
    read_jpeg(r, use, out);
    jpeg_destroy_decompress(&r->jpeg);
    free(r);
    return err->status;
}
