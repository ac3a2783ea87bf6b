/*
 * numpy_shuffle.c - the Mersenne Twister (Matsumoto, Nishimura 1998, doi:10.1145/272991.272995),
 * seeded by a number as in its reference code.
 *
 * numpy's shuffle takes a place from the end at a time, and draws its partner among the places up
 * to it: bits under the mask of the last place, until they are no larger.
 */
#include "base/numpy_shuffle.h"

enum { STATE_SIZE = 624, STATE_MIDDLE = 397 };

typedef struct twister {
    uint32_t state[STATE_SIZE];
    int at;
} twister;

static void twister_seed(twister *t, uint32_t seed)
{
    t->state[0] = seed;
    for (uint32_t i = 1; i < STATE_SIZE; i++) {
        uint32_t last = t->state[i - 1];
        t->state[i] = UINT32_C(1812433253) * (last ^ last >> 30) + i;
    }
    t->at = STATE_SIZE;
}

static void twister_turn(twister *t)
{
    uint32_t *s = t->state;

    for (int i = 0; i < STATE_SIZE; i++) {
        uint32_t next = s[(i + 1) % STATE_SIZE];
        uint32_t joined = (s[i] & UINT32_C(0x80000000)) | (next & UINT32_C(0x7fffffff));
        uint32_t mixed = joined >> 1 ^ (next & 1 ? UINT32_C(0x9908b0df) : 0);
        s[i] = s[(i + STATE_MIDDLE) % STATE_SIZE] ^ mixed;
    }
    t->at = 0;
}

static uint32_t twister_next(twister *t)
{
    if (t->at == STATE_SIZE)
        twister_turn(t);
    uint32_t y = t->state[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & UINT32_C(0x9d2c5680);
    y ^= y << 15 & UINT32_C(0xefc60000);
    return y ^ y >> 18;
}

/* A number from 0 to 'last'. */
static uint32_t draw_up_to(twister *t, uint32_t last)
{
    uint32_t mask = last, drawn;

    for (int shift = 1; shift < 32; shift *= 2)
        mask |= mask >> shift;
    do
        drawn = twister_next(t) & mask;
    while (drawn > last);
    return drawn;
}

void numpy_shuffle(uint32_t seed, int count, int *order)
{
    twister t;

    twister_seed(&t, seed);
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        uint32_t j = draw_up_to(&t, (uint32_t)i);
        int kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}
