/*
 * nifti_maker.c - see nifti_maker.h.
 */
#include "support/nifti_maker.h"

void maker_put(maker *m, const edit *e)
{
    unsigned char raw[8];
    size_t size = 0;

#define MAKER_CASE(LETTER, TYPE)                                                                  \
    if (e->type == (LETTER)) {                                                                    \
        TYPE x = (TYPE)e->value;                                                                  \
        size = sizeof x;                                                                          \
        memcpy(raw, &x, size);                                                                    \
    }
    MAKER_CASE('b', int8_t)
    MAKER_CASE('h', int16_t)
    MAKER_CASE('i', int32_t)
    MAKER_CASE('q', int64_t)
    MAKER_CASE('f', float)
    MAKER_CASE('d', double)
#undef MAKER_CASE
    if (e->type == 's') {
        memcpy(m->bytes + e->at, e->text, (size_t)e->value);
        return;
    }
    for (size_t b = 0; b < size; b++)
        m->bytes[(size_t)e->at + b] = raw[m->big ? size - 1 - b : b];
}

void maker_put_all(maker *m, const edit *e, int count)
{
    for (int n = 0; n < count && e[n].type; n++)
        maker_put(m, &e[n]);
}

void maker_base(maker *m, int flags)
{
    static const edit one[] = {
        { 0, 'i', 348, 0 }, { 40, 'h', 3, 0 }, { 42, 'h', MAKER_I, 0 }, { 44, 'h', MAKER_J, 0 },
        { 46, 'h', MAKER_K, 0 }, { 48, 'h', 1, 0 }, { 76, 'f', 1, 0 }, { 80, 'f', 1.5, 0 },
        { 84, 'f', 2, 0 }, { 88, 'f', 3, 0 }, { 108, 'f', 352, 0 }, { 123, 'b', 2, 0 },
        { 252, 'h', 1, 0 }, { 254, 'h', 1, 0 }, { 268, 'f', -7, 0 }, { 272, 'f', 8, 0 },
        { 276, 'f', 9, 0 }, { 280, 'f', 1.5, 0 }, { 292, 'f', -7, 0 }, { 300, 'f', 2, 0 },
        { 308, 'f', 8, 0 }, { 320, 'f', 3, 0 }, { 324, 'f', 9, 0 }, { 344, 's', 4, "n+1" },
        { 0, 0, 0, 0 }
    };
    static const edit two[] = {
        { 0, 'i', 540, 0 }, { 4, 's', 8, "n+2\0\r\n\032\n" }, { 16, 'q', 3, 0 },
        { 24, 'q', MAKER_I, 0 }, { 32, 'q', MAKER_J, 0 }, { 40, 'q', MAKER_K, 0 },
        { 48, 'q', 1, 0 }, { 104, 'd', 1, 0 }, { 112, 'd', 1.5, 0 }, { 120, 'd', 2, 0 },
        { 128, 'd', 3, 0 }, { 168, 'q', 544, 0 }, { 344, 'i', 1, 0 }, { 348, 'i', 1, 0 },
        { 376, 'd', -7, 0 }, { 384, 'd', 8, 0 }, { 392, 'd', 9, 0 }, { 400, 'd', 1.5, 0 },
        { 424, 'd', -7, 0 }, { 440, 'd', 2, 0 }, { 456, 'd', 8, 0 }, { 480, 'd', 3, 0 },
        { 488, 'd', 9, 0 }, { 500, 'i', 2, 0 }, { 0, 0, 0, 0 }
    };
    bool second = flags & MAKE_NIFTI_2, real = flags & MAKE_FLOAT;
    int at = second ? 544 : 352, type_at = second ? 12 : 70;
    edit type[] = { { type_at, 'h', real ? 16 : 4, 0 }, { type_at + 2, 'h', real ? 32 : 16, 0 } };

    memset(m, 0, sizeof *m);
    m->big = flags & MAKE_BIG;
    maker_put_all(m, second ? two : one, 100);
    maker_put_all(m, type, 2);
    for (int n = 0; n < MAKER_COUNT; n++) {
        edit voxel = { at + n * (real ? 4 : 2), real ? 'f' : 'h', flags & MAKE_LABEL ? n % 3 : n,
                       0 };
        maker_put(m, &voxel);
    }
    m->size = (size_t)(at + MAKER_COUNT * (real ? 4 : 2));
}

size_t maker_gzip(const unsigned char *in, size_t size, unsigned char *out,
                  size_t room)
{
    z_stream z;

    memset(&z, 0, sizeof z);
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)in;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

void maker_write(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}
