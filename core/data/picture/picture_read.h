/*
 * picture_read.h - read 2D pictures (PNG, JPEG, TIFF) as volumes [1, H, W, C].
 *
 * Row y and column x of a picture are voxel (0, y, x): j runs down, k to the right. A grey picture
 * has 1 channel, a coloured one 3: red, green, blue. Alpha is dropped. Values stay as stored, 0 to
 * 255 or with 16 bits 0 to 65535. A picture has no position: voxels are 1 mm wide, the affine is
 * the identity. An orientation tag (EXIF) turns nothing, as in torchvision's ImageFolder.
 *
 * In a label file values are class ids: of a palette the indices count and not the colours, and
 * values of fewer than 8 bits are not stretched.
 */
#ifndef CORE_DATA_PICTURE_PICTURE_READ_H
#define CORE_DATA_PICTURE_PICTURE_READ_H

#include "data/volume/volume.h"

/*
 * The first bytes tell the format, whatever the file's name. Every error of a file is PONS_DATA: it
 * is damaged, ends too early, or has more than PICTURE_PIXELS_MAX pixels, which is checked before
 * memory is taken. PONS_CONFIG: the format's library is not in this build.
 */
enum { PICTURE_PIXELS_MAX = 1 << 28 };

pons_status picture_read_facts(const char *path, volume_facts *facts, pons_error *err);
/* The facts of a label file: a palette has 1 channel, its indices. */
pons_status picture_read_label_facts(const char *path, volume_facts *facts, pons_error *err);
/* The following return F32, I32, and U8 if all ids are at most 255. 'facts' may be NULL. */
pons_status picture_read_image(const char *path, volume *out, volume_facts *facts, pons_error *err);
pons_status picture_read_label(const char *path, volume *out, volume_facts *facts, pons_error *err);
pons_status picture_read_label_compact(const char *path, volume *out, volume_facts *facts,
                                       pons_error *err);
/*
 * Repeat the channel of a grey picture where 3 channels are expected, as ImageFolder does. Other
 * images, and files that are no pictures, stay as they are.
 */
pons_status picture_match_channels(const char *path, int channels, volume *image, pons_error *err);

#endif
