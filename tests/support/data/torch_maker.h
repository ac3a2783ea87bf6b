/*
 * torch_maker.h - make files of torch.save: a zip archive of stored entries, and pickles in text.
 */
#ifndef TESTS_TORCH_MAKER_H
#define TESTS_TORCH_MAKER_H

#include <stddef.h>

typedef struct torch_entry {
    const char *name;       /* "a/data.pkl"                                                       */
    const void *bytes;
    size_t size;
} torch_entry;

/* An archive of these entries, malloc'ed. */
unsigned char *torch_maker_archive(int count, const torch_entry entry[], size_t *size);
/* The archive of one pickle and one storage '0' of 'data' bytes that count up, malloc'ed. */
unsigned char *torch_maker_file(const void *pickle, size_t length, size_t data, size_t *size);

/* The id of storage '0' with 'count' elements, below 256, as pickle instructions. */
#define TORCH_STORAGE(TYPE, COUNT) \
    "(X\7\0\0\0storagectorch\n" TYPE "\nX\1\0\0\0" "0X\3\0\0\0cpuK" COUNT "tQ"
/* A tensor over it: OFFSET, EXTENTS and STRIDES are instructions. */
#define TORCH_TENSOR_OVER(STORAGE, OFFSET, EXTENTS, STRIDES) \
    "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE OFFSET EXTENTS STRIDES \
    "\x89" "ccollections\nOrderedDict\n)RtR"

#endif
