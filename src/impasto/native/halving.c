/* Maps halved by the maximum of 2 x 2 positions, and the way back. */
#include "halving.h"

struct halving {
    float *whole;   /* (rows, width, channels) */
    float *halved;  /* (rows / 2, width / 2, channels) */
    uint8_t *which; /* of four, the same shape */
    long rows, width, channels;
};

/* What one worker does: pairs of rows. */
EXPORT int halve(const struct halving *job, long *counter) {
    const long c = job->channels, row = job->width * c, half = job->width / 2 * c;
    for (long y = next(counter); y < job->rows / 2; y = next(counter))
        for (long x = 0; x < job->width / 2; x++) {
            const float *top = job->whole + 2 * y * row + 2 * x * c, *bottom = top + row;
            const long at = y * half + x * c;
            for (long k = 0; k < c; k += LANES)
                store(job->halved + at + k, maximum(load(top + k), load(top + c + k), load(bottom + k),
                                                    load(bottom + c + k), job->which + at + k));
        }
    return 0;
}

/* The gradient in pairs of rows from the one in the maxima. */
EXPORT int halve_back(const struct halving *job, long *counter) {
    const long c = job->channels, row = job->width * c, half = job->width / 2 * c;
    for (long y = next(counter); y < job->rows / 2; y = next(counter))
        for (long x = 0; x < job->width / 2; x++) {
            float *top = job->whole + 2 * y * row + 2 * x * c;
            const long at = y * half + x * c;
            for (long k = 0; k < c; k += LANES) {
                const vec g = load(job->halved + at + k);
                const ivec which = widened(job->which + at + k);
                store(top + k, chosen(which == 0, g, (vec){0}));
                store(top + c + k, chosen(which == 1, g, (vec){0}));
                store(top + row + k, chosen(which == 2, g, (vec){0}));
                store(top + row + c + k, chosen(which == 3, g, (vec){0}));
            }
        }
    return 0;
}
