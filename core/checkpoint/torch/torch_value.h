/*
 * torch_value.h - the values of a PyTorch file: a tree of dictionaries, lists, numbers, texts and
 * tensors.
 *
 * Values are plain data. They belong to the file that they were read from, may be shared, and never
 * hold themselves. Their depth is at most TORCH_DEPTH_MAX, and a walk over the whole tree visits at
 * most TORCH_VALUES_MAX values, so recursion is safe.
 */
#ifndef CORE_CHECKPOINT_TORCH_TORCH_VALUE_H
#define CORE_CHECKPOINT_TORCH_TORCH_VALUE_H

#include "checkpoint/safetensors.h"

#define TORCH_DEPTH_MAX 100
#define TORCH_VALUES_MAX (1 << 22)

/* A type of elements under the names that PyTorch gives it. */
typedef struct torch_type {
    const char *storage;    /* "FloatStorage"; NULL: an UntypedStorage holds it                   */
    const char *name;       /* "float32"                                                          */
    safetensors_type type;  /* 0: no conversion exists                                            */
    size_t size;            /* bytes of one element                                               */
} torch_type;

/* The memory of one or several tensors. */
typedef struct torch_storage {
    const char *key;
    const torch_type *type; /* of UntypedStorage: bytes                                           */
    int64_t count;          /* elements of that type                                              */
    size_t size;            /* bytes                                                              */
    const unsigned char *bytes; /* little endian, at any address                                  */
    uint32_t crc;           /* CRC-32 of the bytes; 0: the file has none, or it was compared      */
} torch_storage;

/* Element (i, j, ...) is at offset + i stride[0] + j stride[1] + ... of the storage. */
typedef struct torch_tensor {
    const torch_type *type;
    int rank;
    int64_t extent[SAFETENSORS_RANK_MAX], stride[SAFETENSORS_RANK_MAX];
    int64_t offset, count;  /* elements; every one lies in the storage                            */
    bool overlaps;          /* two elements lie at one place, as after expand()                   */
    torch_storage *storage;
} torch_tensor;

typedef enum torch_kind {
    TORCH_NONE = 1, TORCH_FLAG, TORCH_INTEGER, TORCH_REAL, TORCH_TEXT, TORCH_BYTES, TORCH_LIST,
    TORCH_TUPLE, TORCH_SET, TORCH_DICTIONARY, TORCH_TENSOR,
    TORCH_OTHER             /* a type or a memory without a tensor: a name only                   */
} torch_kind;

typedef struct torch_value torch_value;

struct torch_value {
    torch_kind kind;
    int depth;              /* 1: it holds no others                                              */
    int total;              /* values of its tree                                                 */
    bool held;              /* part of another value, and complete                                */
    union {
        bool flag;
        int64_t integer;
        double real;        /* also an integer of more than 63 bits                               */
        struct {
            const char *bytes; /* a NUL follows; text is UTF-8                                    */
            size_t size;
            bool has_nul;       /* among the 'size' bytes                                         */
        } text;             /* TEXT and BYTES                                                     */
        struct {
            torch_value **item; /* DICTIONARY: key, value, key, value, ...                        */
            int count, room;    /* DICTIONARY: 'count' is twice the number of keys                */
        } list;
        torch_tensor *tensor;
        struct {
            const char *name;   /* "torch.float32"                                                */
            const void *about;  /* for the reader                                                 */
        } other;
    };
};

/* The last value of a text key. NULL: none, no dictionary, or v is NULL. */
const torch_value *torch_value_find(const torch_value *v, const char *key);
/* The text; NULL: v is NULL or no text, or the text holds a NUL. */
const char *torch_value_text(const torch_value *v);
/* A number of any kind, also of a tensor's or array's only element. False: v is NULL or none. */
bool torch_value_integer(const torch_value *v, int64_t *out);
bool torch_value_real(const torch_value *v, double *out);
/* Items of a LIST, TUPLE or SET, pairs of a DICTIONARY; 0 of others and of NULL. */
int torch_value_count(const torch_value *v);
const torch_value *torch_value_item(const torch_value *v, int index); /* of a DICTIONARY: value   */
const torch_value *torch_value_key(const torch_value *v, int index);  /* of a DICTIONARY          */
/* "a dictionary", "a text". */
const char *torch_kind_name(torch_kind kind);

/* The row of a storage's class or of an element type ("FloatStorage", "float32"); NULL: none. */
const torch_type *torch_type_find(const char *name);

/* Whether the elements lie in C order without gaps. */
bool torch_tensor_is_contiguous(const torch_tensor *t);
/*
 * The elements in C order. A contiguous tensor's are those of the storage; others are gathered into
 * 'buffer' of count * type->size bytes. The tensor must not overlap.
 */
const void *torch_tensor_elements(const torch_tensor *t, void *buffer);

#endif
