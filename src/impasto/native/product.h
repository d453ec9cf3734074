/* A matrix product whose right side comes in panels: some columns of it, row by row. */
#ifndef IMPASTO_PRODUCT_H
#define IMPASTO_PRODUCT_H

#include "vectors.h"

#define ROWS_AT_ONCE (LANES == 16 ? 14 : LANES == 8 ? 6 : 8) /* of a product, in registers */
#define PANEL (2 * LANES)                                   /* columns of a product at once */
#define DEPTH 256                                           /* terms summed up in registers */
#define LINE 16                                             /* floats of a line of the cache */

/* Some rows of a product a b, added to what is there or not. Meanwhile what is needed next is
 * fetched, a line for every term: of PANEL rows, and after a jump of as many more. */
INLINE void product(const int count, const float *a, long apart, const float *b, long depth,
                    float *c, long width, int add, const float *ahead, long jump) {
    vec sum[ROWS_AT_ONCE][2];
    for (int r = 0; r < count; r++)
        for (int k = 0; k < 2; k++)
            sum[r][k] = add ? load(c + r * width + k * LANES) : (vec){0};
    for (long first = 0; first < depth; first += PANEL, ahead += jump)
        for (long d = first; d < first + PANEL; d++) {
            const vec b0 = load(b + d * PANEL), b1 = load(b + d * PANEL + LANES);
            __builtin_prefetch(ahead + (d - first) * LINE, 0, 2);
#pragma GCC unroll 16
            for (int r = 0; r < count; r++) {
                const vec x = all(a[r * apart + d]);
                sum[r][0] += x * b0;
                sum[r][1] += x * b1;
            }
        }
    for (int r = 0; r < count; r++)
        for (int k = 0; k < 2; k++)
            store(c + r * width + k * LANES, sum[r][k]);
}

#define ROWS(n) \
    case n: \
        product(n, a, apart, b, depth, c, width, add, ahead, jump); \
        break;

/* The same, of a number of rows that the compiler does not know. */
static void rows_of_product(long count, const float *a, long apart, const float *b, long depth,
                            float *c, long width, int add, const float *ahead, long jump) {
    switch (count) {
        ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6)
#if ROWS_AT_ONCE > 6
        ROWS(7) ROWS(8)
#endif
#if ROWS_AT_ONCE > 8
        ROWS(9) ROWS(10) ROWS(11) ROWS(12) ROWS(13) ROWS(14)
#endif
    }
}

/* PANEL columns of (rows, in) times (in, out), of the terms from one of them on: rows in groups of
 * about as many. */
static void multiply_panel(const float *a, long rows, long in, long first, const float *b, float *c,
                           long out, const float *ahead, long jump) {
    const long depth = in - first < DEPTH ? in - first : DEPTH;
    const long groups = (rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    for (long g = 0, t = 0; g < groups; g++) {
        const long count = rows / groups + (g < rows % groups);
        rows_of_product(count, a + t * in + first, in, b, depth, c + t * out, out, first > 0, ahead, jump);
        if (g + 1 < PANEL / LINE) /* lines of a row */
            ahead += PANEL * LINE;
        t += count;
    }
}

#endif
