/* Sums of powers of every coordinate of a sample, and their gradient, in one pass each.
 *
 * Points lie one after the other, in rows. Some of them at a time are in the fastest cache, where
 * they are worked through some coordinates side by side. What a worker finds in a stretch of rows
 * goes to a place of its own: the sum of all does not depend on who made which.
 */
#include "vectors.h"

#if defined(__SSE__)
#define QUICK_NEAR_ZERO _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON), _mm_setcsr(_mm_getcsr() | 0x40)
#define STATE _mm_getcsr()
#define RESTORE(state) _mm_setcsr(state)
#else
#define QUICK_NEAR_ZERO ((void)0)
#define STATE 0
#define RESTORE(state) ((void)(state))
#endif

#define AT_ONCE 4 /* points side by side in registers */
#define NUMBERS 8192 /* that stay in the cache */

struct moments {
    const float *points; /* (rows, columns, dimension) */
    const float *pivot;  /* (dimension) */
    const float *scale;  /* (dimension): what the powers are in units of, inverted; or none */
    const float *terms;  /* (order, dimension): of a polynomial */
    double *sums;        /* (stretches, order, dimension) */
    float *onto;         /* (rows, columns, dimension) */
    long rows, columns, dimension, order;
    long apart, apart_onto; /* floats from one row to the next */
    long stretch;           /* rows at a time */
    long sigmoid;           /* whether the points go through it first */
    long add;               /* to what is there, or write over it */
};

/* 1 / (1 + exp(-x)): a power of 2 whose fraction is a polynomial. Added to a large number the whole
 * part stands in the lowest bits of the sum, where shifting finds the exponent. */
INLINE vec sigmoid(vec x) {
    const vec t = smaller(larger(x * all(-1.44269504f), all(-125.f)), all(125.f));
    const vec large = all(12582912.f + 127.f), whole = t + large, f = t - (whole - large);
    vec p = all(1.5353355e-4f);
    p = p * f + all(1.3398875e-3f);
    p = p * f + all(9.6184374e-3f);
    p = p * f + all(5.5503325e-2f);
    p = p * f + all(2.4022648e-1f);
    p = p * f + all(6.9314720e-1f);
    p = p * f + all(1.f);
    return all(1.f) / (all(1.f) + p * (vec)((ivec)whole << 23));
}

INLINE vec centered(const struct moments *job, const float *from, long c, vec pivot, const int activate) {
    const vec x = load(from + c);
    vec u = activate ? sigmoid(x) - pivot : x - pivot;
    if (job->scale)
        u *= load(job->scale + c);
    return u;
}

/* The sums of some points of a row, added to what a stretch has. */
INLINE void add_powers(const struct moments *job, const float *from, long count, double *sums,
                       vec *found, const int activate) {
    const long d = job->dimension;
    for (long c = 0; c < d; c += LANES) {
        const vec pivot = load(job->pivot + c);
        for (long k = 0; k < job->order; k++)
            found[k] = (vec){0};
        long n = 0;
        for (; n + AT_ONCE <= count; n += AT_ONCE) {
            vec u[AT_ONCE], power[AT_ONCE];
            for (int i = 0; i < AT_ONCE; i++)
                power[i] = u[i] = centered(job, from + (n + i) * d, c, pivot, activate);
            for (int i = 0; i < AT_ONCE; i++)
                __builtin_prefetch(from + (n + i + count) * d + c, 0, 2); /* what comes next */
            for (long k = 0;; k++) {
                found[k] += (power[0] + power[1]) + (power[2] + power[3]);
                if (k + 1 == job->order)
                    break;
                for (int i = 0; i < AT_ONCE; i++)
                    power[i] *= u[i];
            }
        }
        for (; n < count; n++) {
            const vec u = centered(job, from + n * d, c, pivot, activate);
            vec power = u;
            for (long k = 0; k < job->order; k++, power *= u)
                found[k] += power;
        }
        for (long k = 0; k < job->order; k++)
            for (int i = 0; i < LANES; i++)
                sums[k * d + c + i] += found[k][i];
    }
}

/* The polynomial of some points of a row. */
INLINE void add_slopes(const struct moments *job, const float *from, long count, float *to,
                       const int activate) {
    const long d = job->dimension;
    for (long c = 0; c < d; c += LANES) {
        const vec pivot = load(job->pivot + c);
        for (long n = 0; n < count; n += AT_ONCE) {
            const int some = count - n < AT_ONCE ? count - n : AT_ONCE;
            vec u[AT_ONCE], value[AT_ONCE];
            for (int i = 0; i < AT_ONCE; i++)
                u[i] = centered(job, from + (n + (i < some ? i : 0)) * d, c, pivot, activate);
            for (int i = 0; i < AT_ONCE; i++) {
                __builtin_prefetch(from + (n + i + count) * d + c, 0, 2); /* what comes next */
                __builtin_prefetch(to + (n + i + count) * d + c, 1, 2);
            }
            for (int i = 0; i < AT_ONCE; i++)
                value[i] = load(job->terms + (job->order - 1) * d + c);
            for (long k = job->order - 2; k >= 0; k--) {
                const vec term = load(job->terms + k * d + c);
                for (int i = 0; i < AT_ONCE; i++)
                    value[i] = value[i] * u[i] + term;
            }
            for (int i = 0; i < some; i++) {
                float *place = to + (n + i) * d + c;
                if (job->add)
                    value[i] += load(place);
                store(place, value[i]);
            }
        }
    }
}

INLINE void work(const struct moments *job, long *counter, vec *found, const int slopes, const int activate) {
    const long step = (NUMBERS / job->dimension + AT_ONCE) / AT_ONCE * AT_ONCE;
    for (long part = next(counter); part * job->stretch < job->rows; part = next(counter)) {
        const long first = part * job->stretch;
        const long last = first + job->stretch < job->rows ? first + job->stretch : job->rows;
        double *sums = slopes ? NULL : job->sums + part * job->order * job->dimension;
        for (long row = first; row < last; row++)
            for (long n = 0; n < job->columns; n += step) {
                const long count = job->columns - n < step ? job->columns - n : step;
                const float *from = job->points + row * job->apart + n * job->dimension;
                float *to = job->onto + row * job->apart_onto + n * job->dimension;
                if (slopes)
                    add_slopes(job, from, count, to, activate);
                else
                    add_powers(job, from, count, sums, found, activate);
            }
    }
}

/* What one worker does. Powers that are too small for single precision are 0, and cost no time. */
EXPORT int power_sums(const struct moments *job, long *counter) {
    vec *found = NULL;
    if (posix_memalign((void **)&found, 64, job->order * sizeof(vec)))
        return 1;
    const unsigned state = STATE;
    QUICK_NEAR_ZERO;
    if (job->sigmoid)
        work(job, counter, found, 0, 1);
    else
        work(job, counter, found, 0, 0);
    RESTORE(state);
    free(found);
    return 0;
}

EXPORT int power_slopes(const struct moments *job, long *counter) {
    const unsigned state = STATE;
    QUICK_NEAR_ZERO;
    if (job->sigmoid)
        work(job, counter, NULL, 1, 1);
    else
        work(job, counter, NULL, 1, 0);
    RESTORE(state);
    return 0;
}
