/* The maximum of four numbers, and which of them it is. */
#ifndef IMPASTO_HALVING_H
#define IMPASTO_HALVING_H

#include "vectors.h"

#define NEARLY 1e-4f /* as in networks/pooling.py */

typedef uint8_t bytes __attribute__((vector_size(LANES), aligned(1), may_alias));

/* The first of those that are nearly the largest: rounding shall not choose. */
INLINE vec maximum(vec a, vec b, vec d, vec e, uint8_t *which) {
    const vec most = larger(larger(a, b), larger(d, e));
    const vec nearly = most - all(NEARLY) * larger(all(1.f), larger(most, -most));
    const ivec not_a = a < nearly, not_b = b < nearly, not_d = d < nearly;
    *(bytes *)which = __builtin_convertvector(-(not_a + (not_a & not_b) + (not_a & not_b & not_d)), bytes);
    return most;
}

#endif
