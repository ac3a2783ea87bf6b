/*
 * elf_dynamic_symbols.c - check the symbols of a shared object, their hash tables and their
 * versions. Hashes are recomputed, because a symbol with a changed name or bucket could not be
 * found.
 */
#include "plugin/elf_dynamic.h"

#include <limits.h>
#include <string.h>

#include "base/integer.h"

enum { VERSION_MASK = 0x7fff, VERSIONS = VERSION_MASK + 1, VERSION_FIRST = 2 };

static uint32_t word_at(const uint8_t *bytes, uint64_t index)
{
    uint32_t word;

    memcpy(&word, bytes + index * sizeof word, sizeof word);
    return word;
}

static elf_symbol symbol_at(const elf_dynamic *d, uint64_t index)
{
    elf_symbol s;

    memcpy(&s, elf_bytes_at(d->file, d->value[ELF_SYMTAB] + index * sizeof s, sizeof s), sizeof s);
    return s;
}

/* A string of the string table that elf_text_ends has checked. */
static const char *text_at(const elf_dynamic *d, uint64_t offset)
{
    return (const char *)elf_bytes_at(d->file, d->value[ELF_STRTAB] + offset, 1);
}

/* ---- symbols --------------------------------------------------------------------------------- */

static bool has_symbols(const elf_dynamic *d, uint64_t count)
{
    return count <= d->file->size / sizeof(elf_symbol)
           && elf_bytes_at(d->file, d->value[ELF_SYMTAB], count * sizeof(elf_symbol)) != NULL;
}

/* Whether a symbol with a section is inside it. */
static bool is_in_section(const elf_dynamic *d, const elf_symbol *s)
{
    elf_section section;

    if (d->file->header.e_shoff == 0 || d->file->header.e_shnum == 0)
        return true;
    if (s->st_shndx >= d->file->header.e_shnum)
        return false;
    section = elf_section_at(d->file, s->st_shndx);
    return s->st_value >= section.sh_addr
           && elf_inside(s->st_value - section.sh_addr, s->st_size, section.sh_size);
}

static bool is_symbol_sound(const elf_dynamic *d, const elf_symbol *s)
{
    const int type = s->st_info & 15; /* ELF64_ST_TYPE and ELF32_ST_TYPE are the same             */

    if (!elf_text_ends(d, s->st_name))
        return false;
    if (s->st_shndx == SHN_UNDEF || s->st_shndx >= SHN_LORESERVE
        || (type != STT_FUNC && type != STT_OBJECT && type != STT_GNU_IFUNC))
        return true;
    return elf_is_loaded(d->file, s->st_value, s->st_size, type == STT_OBJECT ? PF_R : PF_X)
           && is_in_section(d, s);
}

static pons_status check_symbols(const elf_dynamic *d)
{
    for (uint64_t i = 0; i < d->symbol_count; i++) {
        const elf_symbol s = symbol_at(d, i);
        if (!is_symbol_sound(d, &s))
            return elf_table_refuse(d, "symbols", "points outside of what is loaded");
    }
    return PONS_OK;
}

/* The number of symbols in the section headers, which includes those that no hash table finds. */
static uint64_t listed_symbols(const elf_dynamic *d)
{
    for (int i = 0; d->file->header.e_shoff != 0 && i < d->file->header.e_shnum; i++) {
        const elf_section s = elf_section_at(d->file, i);
        if (s.sh_type == SHT_DYNSYM)
            return s.sh_size / sizeof(elf_symbol);
    }
    return 0;
}

/* ---- hash tables ----------------------------------------------------------------------------- */

/* System V hash: the numbers of buckets and symbols, the buckets, and a chain entry per symbol. */
static pons_status check_old_hash(elf_dynamic *d)
{
    const uint64_t at = d->value[ELF_HASH];
    const uint8_t *head = elf_bytes_at(d->file, at, 2 * sizeof(uint32_t)), *words;
    uint64_t buckets, count;

    if (head == NULL)
        return elf_table_refuse(d, "hashes", "lies outside of what is loaded");
    buckets = word_at(head, 0);
    count = word_at(head, 1);
    words = elf_bytes_at(d->file, at, (2 + buckets + count) * sizeof(uint32_t));
    if (words == NULL || buckets == 0 || !has_symbols(d, count))
        return elf_table_refuse(d, "hashes", "lies outside of what is loaded");
    for (uint64_t i = 0; i < buckets + count; i++)
        if (word_at(words, 2 + i) >= count)
            return elf_table_refuse(d, "hashes", "names a symbol that is not there");
    d->symbol_count = count;
    return PONS_OK;
}

typedef struct gnu_hash {
    const uint8_t *filter, *bucket, *chain;
    uint64_t buckets, first, filters, shift, symbols;
} gnu_hash;

static uint32_t hash_of(const char *name)
{
    uint32_t h = 5381;

    for (; *name != '\0'; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

/* Locate the parts of the GNU hash table. The chain ends with the last symbol. */
static bool open_gnu_hash(const elf_dynamic *d, gnu_hash *out)
{
    const uint64_t at = d->value[ELF_GNU_HASH];
    const uint8_t *head = elf_bytes_at(d->file, at, 4 * sizeof(uint32_t));
    gnu_hash h = { .buckets = 0 };
    uint64_t end;

    if (head == NULL)
        return false;
    h.buckets = word_at(head, 0);
    h.first = word_at(head, 1);
    h.filters = word_at(head, 2);
    h.shift = word_at(head, 3);
    if (h.buckets == 0 || h.filters == 0 || (h.filters & (h.filters - 1)) != 0 || h.shift > 31)
        return false;
    end = at + 4 * sizeof(uint32_t);
    h.filter = elf_bytes_at(d->file, end, h.filters * sizeof(ElfW(Addr)));
    end += h.filters * sizeof(ElfW(Addr));
    h.bucket = elf_bytes_at(d->file, end, h.buckets * sizeof(uint32_t));
    h.chain = elf_bytes_at(d->file, end + h.buckets * sizeof(uint32_t), 0);
    if (h.filter == NULL || h.bucket == NULL || h.chain == NULL)
        return false;
    *out = h;
    return true;
}

/* One after the last symbol of a chain; 0: the chain has no end within the file. */
static uint64_t chain_end(const elf_dynamic *d, const gnu_hash *h, uint64_t symbol)
{
    const uint8_t *end = d->file->data + d->file->size;

    for (; symbol >= h->first; symbol++) {
        const uint8_t *word = h->chain + (symbol - h->first) * sizeof(uint32_t);
        if ((uint64_t)(end - h->chain) < (symbol - h->first + 1) * sizeof(uint32_t))
            return 0;
        if ((word_at(word, 0) & 1) != 0)
            return symbol + 1;
    }
    return 0;
}

static bool is_in_filter(const gnu_hash *h, uint32_t hash)
{
    const unsigned bits = 8 * sizeof(ElfW(Addr));
    ElfW(Addr) word;

    memcpy(&word, h->filter + (hash / bits & (h->filters - 1)) * sizeof word, sizeof word);
    return (word >> (hash % bits) & 1) != 0 && (word >> ((hash >> h->shift) % bits) & 1) != 0;
}

/* Check that every symbol of a bucket's chain has a hash of this bucket, in chain and filter. */
static bool is_bucket_sound(const elf_dynamic *d, const gnu_hash *h, uint64_t bucket, uint64_t end)
{
    for (uint64_t i = word_at(h->bucket, bucket); i < end; i++) {
        const elf_symbol s = symbol_at(d, i);
        uint32_t hash;
        if (!elf_text_ends(d, s.st_name))
            return false;
        hash = hash_of(text_at(d, s.st_name));
        if (hash % h->buckets != bucket || !is_in_filter(h, hash)
            || (hash | 1) != (word_at(h->chain, i - h->first) | 1))
            return false;
    }
    return true;
}

static pons_status check_gnu_hash(elf_dynamic *d)
{
    gnu_hash h;
    uint64_t count, hashed = 0;

    if (!open_gnu_hash(d, &h))
        return elf_table_refuse(d, "hashes", "lies outside of what is loaded");
    count = h.first;
    for (uint64_t b = 0; b < h.buckets; b++) {
        const uint64_t first = word_at(h.bucket, b), end = chain_end(d, &h, first);
        if (first == 0)
            continue;
        if (end == 0 || !has_symbols(d, end) || !is_bucket_sound(d, &h, b, end))
            return elf_table_refuse(d, "hashes", "does not fit its symbols");
        hashed += end - first;
        count = max_u64(end, count);
    }
    if (!has_symbols(d, count) || hashed != count - h.first)
        return elf_table_refuse(d, "hashes", "does not fit its symbols");
    d->symbol_count = max_u64(count, d->symbol_count);
    return PONS_OK;
}

/* ---- versions -------------------------------------------------------------------------------- */

typedef struct versions {
    bool known[VERSIONS];
} versions;

/* System V hash, which identifies versions. */
static uint32_t old_hash_of(const char *name)
{
    uint32_t h = 0;

    for (; *name != '\0'; name++) {
        h = (h << 4) + (unsigned char)*name;
        h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
    }
    return h;
}

/* Read the versions that are required of one library. */
static bool read_needed(const elf_dynamic *d, uint64_t at, unsigned count, versions *v)
{
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *bytes = elf_bytes_at(d->file, at, sizeof(ElfW(Vernaux)));
        ElfW(Vernaux) a;
        if (bytes == NULL)
            return false;
        memcpy(&a, bytes, sizeof a);
        if (!elf_text_ends(d, a.vna_name) || old_hash_of(text_at(d, a.vna_name)) != a.vna_hash
            || (a.vna_next == 0) != (i == count - 1))
            return false;
        v->known[a.vna_other & VERSION_MASK] = true;
        at += a.vna_next;
    }
    return count > 0;
}

static bool read_needs(const elf_dynamic *d, versions *v)
{
    const uint64_t count = d->value[ELF_VERNEEDNUM];
    uint64_t at = d->value[ELF_VERNEED];

    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *bytes = elf_bytes_at(d->file, at, sizeof(ElfW(Verneed)));
        ElfW(Verneed) n;
        if (bytes == NULL)
            return false;
        memcpy(&n, bytes, sizeof n);
        if (n.vn_version != VER_NEED_CURRENT || !elf_text_ends(d, n.vn_file)
            || !read_needed(d, at + n.vn_aux, n.vn_cnt, v) || (n.vn_next == 0) != (i == count - 1))
            return false;
        at += n.vn_next;
    }
    return true;
}

static bool read_definitions(const elf_dynamic *d, versions *v)
{
    const uint64_t count = d->value[ELF_VERDEFNUM];
    uint64_t at = d->value[ELF_VERDEF];

    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *bytes = elf_bytes_at(d->file, at, sizeof(ElfW(Verdef)));
        const uint8_t *name;
        ElfW(Verdef) n;
        ElfW(Verdaux) a;
        if (bytes == NULL)
            return false;
        memcpy(&n, bytes, sizeof n);
        name = elf_bytes_at(d->file, at + n.vd_aux, sizeof a);
        if (n.vd_version != VER_DEF_CURRENT || name == NULL || n.vd_cnt == 0
            || (n.vd_next == 0) != (i == count - 1))
            return false;
        memcpy(&a, name, sizeof a);
        if (!elf_text_ends(d, a.vda_name) || old_hash_of(text_at(d, a.vda_name)) != n.vd_hash)
            return false;
        v->known[n.vd_ndx & VERSION_MASK] = true;
        at += n.vd_next;
    }
    return true;
}

static pons_status check_versions(const elf_dynamic *d)
{
    const uint8_t *of = elf_bytes_at(d->file, d->value[ELF_VERSYM],
                                     d->symbol_count * sizeof(uint16_t));
    versions v = { { false } };

    if (d->has[ELF_VERNEED] != d->has[ELF_VERNEEDNUM] || d->has[ELF_VERDEF] != d->has[ELF_VERDEFNUM]
        || ((d->has[ELF_VERNEED] || d->has[ELF_VERDEF]) && !d->has[ELF_VERSYM])
        || (d->has[ELF_VERNEED] && !read_needs(d, &v))
        || (d->has[ELF_VERDEF] && !read_definitions(d, &v)))
        return elf_table_refuse(d, "versions", "is not in order");
    if (!d->has[ELF_VERSYM])
        return PONS_OK;
    if (of == NULL)
        return elf_table_refuse(d, "versions", "lies outside of what is loaded");
    for (uint64_t i = 0; i < d->symbol_count; i++) {
        uint16_t number;
        memcpy(&number, of + i * sizeof number, sizeof number);
        if ((number & VERSION_MASK) >= VERSION_FIRST && !v.known[number & VERSION_MASK])
            return elf_table_refuse(d, "versions", "names one that is not there");
    }
    return PONS_OK;
}

pons_status elf_symbols_check(elf_dynamic *d)
{
    d->symbol_count = listed_symbols(d);
    if (!d->has[ELF_HASH] && !d->has[ELF_GNU_HASH])
        return elf_table_refuse(d, "dynamic entries", "lacks hashes of its symbols");
    if (!has_symbols(d, d->symbol_count))
        return elf_table_refuse(d, "symbols", "lies outside of what is loaded");
    if ((d->has[ELF_HASH] && check_old_hash(d) != PONS_OK)
        || (d->has[ELF_GNU_HASH] && check_gnu_hash(d) != PONS_OK)
        || check_symbols(d) != PONS_OK)
        return PONS_PLUGIN;
    return check_versions(d);
}
