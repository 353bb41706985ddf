/* One read of every gradient: norm, largest value, NaN, infinity, zero and exponent counts.
 *
 * Plain C with the vector types that gcc and clang share, so that one file serves every machine.
 * The exponents of a block are kept as bytes: comparing 32 of them costs one instruction, and the
 * block is still in the first-level cache.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define BLOCK 4096 /* 128 byte vectors: a byte counter cannot overflow */
#define LEVELS 8
#define LANES 32

typedef float vf __attribute__((vector_size(LANES)));
typedef int32_t vi __attribute__((vector_size(LANES)));
typedef uint8_t vb __attribute__((vector_size(LANES)));
typedef signed char vc __attribute__((vector_size(LANES)));

enum { FP32 = 0, BF16 = 1, FP16 = 2 };

typedef struct {
    double sum_of_squares;
    double largest; /* of the finite values */
    int64_t nan, infinite, zero, beyond;
    int64_t below[LEVELS];
} Row;

static inline float as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline uint32_t as_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline float half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu;
    if (rest >= 0x7c00u) return as_float(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
    /* the product is exact, for subnormal halves too: 2**112 moves the exponent into place */
    return as_float(sign | as_bits(as_float(rest << 13) * as_float(0x77800000u)));
}

static inline float load(const void *data, int kind, int64_t i) {
    if (kind == FP32) return ((const float *)data)[i];
    if (kind == BF16) return as_float((uint32_t)((const uint16_t *)data)[i] << 16);
    return half_to_float(((const uint16_t *)data)[i]);
}

static const float *widen(const void *data, int kind, int64_t start, int n, float *buffer) {
    if (kind == FP32) return (const float *)data + start;
    const uint16_t *source = (const uint16_t *)data + start;
    if (kind == BF16)
        for (int i = 0; i < n; i++) ((uint32_t *)buffer)[i] = (uint32_t)source[i] << 16;
    else
        for (int i = 0; i < n; i++) buffer[i] = half_to_float(source[i]);
    return buffer;
}

static int64_t sum_bytes(vb counts) {
    int64_t total = 0;
    for (int lane = 0; lane < LANES; lane++) total += counts[lane];
    return total;
}

/* Blocks with a NaN, an infinity, an overflow or a square that leaves fp32 are counted one by one. */
static void careful(const float *x, int n, double limit, Row *row) {
    for (int i = 0; i < n; i++) {
        uint32_t u = as_bits(x[i]) & 0x7fffffffu;
        if (u > 0x7f800000u) { row->nan++; continue; }
        if (u == 0x7f800000u) { row->infinite++; row->beyond++; continue; }
        double value = as_float(u);
        row->zero += u == 0;
        row->beyond += value >= limit;
        row->sum_of_squares += value * value;
        if (value > row->largest) row->largest = value;
    }
}

/* Four lanes of exponents share one 32-bit lane: counting does not care about their order. */
static inline vb exponents_of(const vi u[4]) {
    return (vb)((u[0] >> 23) | ((u[1] >> 15) & 0xff00) | ((u[2] >> 7) & 0xff0000) |
                ((u[3] << 1) & (int32_t)0xff000000));
}

static int64_t zeros(const float *x, int n) {
    vi counts = {0};
    int64_t total = 0;
    int whole = n / 8 * 8;
    for (int i = 0; i < whole; i += 8) {
        vf v;
        memcpy(&v, x + i, sizeof v);
        counts -= v == 0;
    }
    for (int j = 0; j < 8; j++) total += counts[j];
    for (int i = whole; i < n; i++) total += x[i] == 0;
    return total;
}

/* Neighbours often share an exponent: four tables keep the increments from waiting on each other. */
static void count_exponents(const float *x, int n, int64_t *histogram) {
    uint32_t tables[4][256] = {{0}};
    for (int i = 0; i < n; i++) tables[i & 3][(as_bits(x[i]) >> 23) & 0xff]++;
    for (int e = 0; e < 256; e++)
        histogram[e] += tables[0][e] + tables[1][e] + tables[2][e] + tables[3][e];
}

static void block(const float *x, int n, const uint8_t *levels, double limit, int64_t *histogram,
                  Row *row) {
    vf sums[4] = {{0}, {0}, {0}, {0}};
    vi most[4] = {{0}, {0}, {0}, {0}};
    vc counts[LEVELS] = {{0}};
    int whole = n / 32 * 32;
    for (int i = 0; i < whole; i += 32) {
        vi u[4];
        for (int k = 0; k < 4; k++) {
            vf v;
            memcpy(&v, x + i + 8 * k, sizeof v);
            sums[k] += v * v;
            u[k] = (vi)v & 0x7fffffff;
            vi more = u[k] > most[k];
            most[k] = (u[k] & more) | (most[k] & ~more);
        }
        /* signed bytes compare in one instruction: both sides move down by 128 */
        vc e = (vc)(exponents_of(u) ^ 0x80);
        for (int level = 0; level < LEVELS; level++)
            counts[level] += e < (signed char)(levels[level] ^ 0x80);
    }
    int32_t top = 0;
    double total = 0;
    int64_t below[LEVELS];
    for (int k = 0; k < 4; k++)
        for (int j = 0; j < 8; j++) {
            total += sums[k][j];
            if (most[k][j] > top) top = most[k][j];
        }
    for (int level = 0; level < LEVELS; level++) below[level] = sum_bytes(-(vb)counts[level]);
    for (int i = whole; i < n; i++) {
        uint32_t u = as_bits(x[i]) & 0x7fffffffu;
        total += (double)x[i] * x[i];
        if ((int32_t)u > top) top = (int32_t)u;
        for (int level = 0; level < LEVELS; level++) below[level] += (u >> 23) < levels[level];
    }
    /* 2**63 squared still fits into fp32, and 2**-60 squared is still a normal number. */
    int odd = top >= 0x5f000000 || (top != 0 && top < 0x21800000);
    if (odd || as_float((uint32_t)top) >= limit) {
        careful(x, n, limit, row);
    } else {
        /* level 0 is the smallest normal number: below it are zeros and subnormals */
        if (below[0]) row->zero += zeros(x, n);
        row->sum_of_squares += total;
        if (as_float((uint32_t)top) > row->largest) row->largest = as_float((uint32_t)top);
    }
    for (int level = 0; level < LEVELS; level++) row->below[level] += below[level];
    if (histogram) count_exponents(x, n, histogram);
}

/* `width` values of a tensor, evenly spread; a shorter one gives all its values, then zeros.
 * One by one: neighbours are of one unit, and would be dead or alive together. */
static void sample(const void *data, int64_t size, int kind, int64_t width, float *out) {
    int64_t n = size < width ? size : width;
    int64_t stride = n ? size / n : 1;
    if (kind == FP32)
        for (int64_t i = 0; i < n; i++) out[i] = ((const float *)data)[i * stride];
    else
        for (int64_t i = 0; i < n; i++) out[i] = load(data, kind, i * stride);
    for (int64_t i = n; i < width; i++) out[i] = 0;
}

/* Gives the sum of all squares, NaN where a value is not finite. `levels` are biased fp32 exponents: below[k] counts values, zeros too, with exponent < levels[k].
 * `limits` is the value from which a gradient of this tensor overflows its format. */
double torchstone_read(int64_t tensors, void *const *data, const int64_t *sizes, const int32_t *kinds,
                       const uint8_t *levels, const double *limits, Row *rows,
                       int64_t *histograms, int64_t width, float *samples) {
    float buffer[BLOCK];
    double total = 0;
    for (int64_t t = 0; t < tensors; t++) {
        Row *row = rows + t;
        memset(row, 0, sizeof *row);
        int64_t *histogram = histograms ? histograms + 256 * t : 0;
        for (int64_t start = 0; start < sizes[t]; start += BLOCK) {
            int n = (int)(sizes[t] - start < BLOCK ? sizes[t] - start : BLOCK);
            block(widen(data[t], kinds[t], start, n, buffer), n, levels, limits[t], histogram, row);
        }
        total += row->nan + row->infinite ? NAN : row->sum_of_squares;
        if (samples) sample(data[t], sizes[t], kinds[t], width, samples + t * width);
    }
    return total;
}

void torchstone_sample(int64_t tensors, void *const *data, const int64_t *sizes,
                       const int32_t *kinds, int64_t width, float *out) {
    for (int64_t t = 0; t < tensors; t++) sample(data[t], sizes[t], kinds[t], width, out + t * width);
}

/* Whether some of these values are still what they were: every `every`th of a sample, from `first`. */
int64_t torchstone_same(int64_t tensors, void *const *data, const int64_t *sizes,
                        const int32_t *kinds, int64_t width, const float *then, int64_t first,
                        int64_t every) {
    int32_t other = 0;
    for (int64_t t = 0; t < tensors; t++, then += width) {
        int64_t n = sizes[t] < width ? sizes[t] : width;
        int64_t stride = n ? sizes[t] / n : 1;
        for (int64_t i = n < every ? 0 : first; i < n; i += n < every ? 1 : every)
            other |= as_bits(load(data[t], kinds[t], i * stride)) != as_bits(then[i]);
    }
    return !other;
}

/* Of pieces of these values: the sum of their squares, zeros, and values below zero. */
void torchstone_look(const float *data, int64_t pieces, int64_t distance, int64_t width,
                     double *out) {
    double squares = 0;
    int64_t zero = 0, negative = 0;
    for (int64_t p = 0; p < pieces; p++)
        for (int64_t i = 0; i < width; i++) {
            double value = data[p * distance + i];
            squares += value * value;
            zero += value == 0;
            negative += value < 0;
        }
    out[0] = squares;
    out[1] = (double)zero;
    out[2] = (double)negative;
}

typedef struct {
    double update_squares, weight_squares;
    double gradient_squares, along, again, straight; /* products with this and the last gradient, and the last step */
    int64_t changed, moved_by_gradient, absorbed, not_finite;
    uint64_t digest;
} Step;

typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef double v4d __attribute__((vector_size(32)));
#define GOLDEN 0x9E3779B97F4A7C15ull

/* What a step did to the sampled weights: how far they moved and where to, and which gradients were
 * swallowed. Rows are padded with zeros, which move nowhere; `width` is a multiple of four. `last`
 * holds the gradients and then the steps of the time before, and those of this time afterwards.
 * Digests are for ranks that are compared. */
void torchstone_step(int64_t tensors, const int64_t *sizes, int64_t width, const float *before,
                     const float *after, const float *gradients, float *last, int64_t digests,
                     Step *steps) {
    for (int64_t t = 0; t < tensors; t++) {
        Step step = {0};
        v4d moved = {0}, weight = {0}, size = {0}, along = {0}, again = {0}, straight = {0};
        v4i changed = {0}, pushed = {0}, absorbed = {0}, bad = {0};
        int64_t n = sizes[t] < width ? sizes[t] : width;
        const float *old = before + t * width, *new = after + t * width, *push = gradients + t * width;
        float *last_push = last + t * width, *last_step = last + (tensors + t) * width;
        for (int64_t i = 0; i < n; i += 4) {
            v4f a, b, g;
            memcpy(&a, new + i, sizeof a);
            memcpy(&b, old + i, sizeof b);
            memcpy(&g, push + i, sizeof g);
            v4d w = __builtin_convertvector(a, v4d), d = w - __builtin_convertvector(b, v4d);
            v4i other = (v4i)a != (v4i)b, towards = g != 0;
            v4f p, q, s = a - b;
            memcpy(&p, last_push + i, sizeof p);
            memcpy(&q, last_step + i, sizeof q);
            memcpy(last_push + i, &g, sizeof g);
            memcpy(last_step + i, &s, sizeof s);
            v4d wide = __builtin_convertvector(g, v4d);
            size += wide * wide;
            along += wide * d;
            again += wide * __builtin_convertvector(p, v4d);
            straight += d * __builtin_convertvector(q, v4d);
            moved += d * d;
            weight += w * w;
            changed -= other;
            pushed -= towards;
            absorbed -= towards & ~other;
            bad -= ((v4i)a & 0x7f800000) == 0x7f800000;
        }
        for (int64_t i = 0; digests && i < n; i++)
            step.digest += (as_bits(new[i]) + 1ull) * (GOLDEN * (uint64_t)(2 * i + 1));
        for (int k = 0; k < 4; k++) {
            step.update_squares += moved[k];
            step.weight_squares += weight[k];
            step.gradient_squares += size[k];
            step.along += along[k];
            step.again += again[k];
            step.straight += straight[k];
            step.changed += changed[k];
            step.moved_by_gradient += pushed[k];
            step.absorbed += absorbed[k];
            step.not_finite += bad[k];
        }
        steps[t] = step;
    }
}

/* Sums over the parameters of every layer, for several steps; layer k has those from bounds[k] to
 * bounds[k + 1]. Out, for every step one row of `layers` each: squares, zeros, the counts below each
 * level, NaN and infinity. */
void torchstone_sum_rows(int64_t steps, int64_t layers, const int64_t *bounds,
                         const Row *const *rows, double *out) {
    for (int64_t s = 0; s < steps; s++, out += (LEVELS + 3) * layers)
        for (int64_t k = 0; k < layers; k++) {
            double sums[LEVELS + 3] = {0};
            for (const Row *row = rows[s] + bounds[k]; row < rows[s] + bounds[k + 1]; row++) {
                sums[0] += row->sum_of_squares;
                sums[1] += (double)row->zero;
                for (int level = 0; level < LEVELS; level++) sums[2 + level] += (double)row->below[level];
                sums[LEVELS + 2] += (double)(row->nan + row->infinite);
            }
            for (int i = 0; i < LEVELS + 3; i++) out[i * layers + k] = sums[i];
        }
}

/* Out: update squares, weight squares, pushed, absorbed, not finite, parameters that stood still,
 * gradient squares, and the products of `Step`. */
void torchstone_sum_steps(int64_t count, int64_t layers, const int64_t *bounds,
                          const Step *const *steps, double *out) {
    for (int64_t s = 0; s < count; s++, out += 10 * layers)
        for (int64_t k = 0; k < layers; k++) {
            double sums[10] = {0};
            for (const Step *step = steps[s] + bounds[k]; step < steps[s] + bounds[k + 1]; step++) {
                sums[0] += step->update_squares;
                sums[1] += step->weight_squares;
                sums[2] += (double)step->moved_by_gradient;
                sums[3] += (double)step->absorbed;
                sums[4] += (double)step->not_finite;
                sums[5] += !step->changed && step->moved_by_gradient && !step->not_finite;
                sums[6] += step->gradient_squares;
                sums[7] += step->along;
                sums[8] += step->again;
                sums[9] += step->straight;
            }
            for (int i = 0; i < 10; i++) out[i * layers + k] = sums[i];
        }
}

#define WIDE 8
#define MOST_ROWS 128
typedef double v8d __attribute__((vector_size(8 * WIDE)));
typedef int64_t v8l __attribute__((vector_size(8 * WIDE)));

static inline void put_in_order(v8d *small, v8d *large) {
    v8d a = *small, b = *large;
    v8l less = a < b;
    *small = (v8d)(((v8l)a & less) | ((v8l)b & ~less));
    *large = (v8d)(((v8l)b & less) | ((v8l)a & ~less));
}

static inline v8d load_row(const double *from, int64_t n) {
    v8d row = {0};
    if (n >= WIDE)
        memcpy(&row, from, sizeof row);
    else
        for (int j = 0; j < n; j++) row[j] = from[j];
    return row;
}

/* Rows to compare, in turn, so that the middle one of `rows` gets into its place: which they are
 * does not depend on the values, so that eight columns go through them at once. */
typedef struct {
    int64_t rows, comparisons;
    const uint8_t *pairs;
} Network;

/* The upper median of every column from `first` to `end` over the last rows of a ring, of which
 * `newest` was filled last; with `around`, which begins at `first` too, that of the distances from
 * it. */
void torchstone_middle(const double *ring, int64_t rows, int64_t columns, int64_t newest,
                       const Network *network, int64_t first, int64_t end, const double *around,
                       double *out) {
    int64_t count = network->rows;
    const uint8_t *pairs = network->pairs;
    v8d x[MOST_ROWS];
    for (int64_t c = first; c < end; c += WIDE, out += WIDE) {
        int64_t n = end - c;
        v8d centre = {0};
        if (around) centre = load_row(around + c - first, n);
        for (int64_t i = 0; i < count; i++) {
            int64_t row = newest - i < 0 ? newest - i + rows : newest - i;
            v8d away = load_row(ring + row * columns + c, n) - centre;
            x[i] = around ? (v8d)((v8l)away & INT64_MAX) : away;
        }
        for (int64_t i = 0; i < network->comparisons; i++)
            put_in_order(x + pairs[2 * i], x + pairs[2 * i + 1]);
        memcpy(out, x + count / 2, (n < WIDE ? n : WIDE) * sizeof *out);
    }
}

/* What is normal for a number of series; the arrays are Python's. */
typedef struct {
    int64_t columns, rows, blocks;
    const double *input, *floors, *least;
    const double *up, *down, *shift_up, *shift_down, *ramp; /* effects, as logarithms */
    const double *rise, *fall;                              /* of a shift, in spreads */
    const uint8_t *still;                                   /* learning does not move them */
    double *median, *spread;
    double *clipped_ring, *raw_ring, *block_ring;
    double *away, *sigmas;
    uint8_t *missing, *far;
    double *recent, *before; /* for our own use */
    const Network *lately, *earlier;
    double jump, to_one; /* spreads of one value in those of a median of `lately` */
} Bank;

/* One value of every series against what is normal for it: logarithm, distance, and the value that
 * enters the window. Gives the number of series that went far in effect. */
static int64_t place(const Bank *b, int64_t row, double extra, double clip) {
    double *clipped = b->clipped_ring + row * b->columns, *raw = b->raw_ring + row * b->columns;
    int64_t count = 0;
    for (int64_t i = 0; i < b->columns; i++) {
        double value = b->input[i], usual = b->median[i];
        value = value > 0 ? value : value != value ? value : 0;
        double l = log(value + b->floors[i]);
        b->missing[i] = !(l - l == 0);
        if (b->missing[i]) l = usual;
        double a = l - usual, bound = clip * b->spread[i];
        b->away[i] = a;
        b->sigmas[i] = a / b->spread[i];
        b->far[i] = !b->missing[i] && (a > b->up[i] + extra || a < -(b->down[i] + extra));
        count += b->far[i];
        if (b->missing[i]) continue; /* nothing is learned from it */
        raw[i] = l;
        clipped[i] = usual + (a > bound ? bound : a < -bound ? -bound : a);
    }
    return count;
}

static inline int64_t back(int64_t row, int64_t by, int64_t rows) { return (row + rows - by) % rows; }

/* Series whose last values are at another level, reached at a jump: see `Shifts` in Python. */
static int64_t shifted(const Bank *b, int64_t row, double stretch, int settled) {
    int64_t n = b->columns, count = 0;
    torchstone_middle(b->raw_ring, b->rows, n, row, b->lately, 0, n, 0, b->recent);
    row = back(row, b->lately->rows, b->rows);
    torchstone_middle(b->raw_ring, b->rows, n, row, b->earlier, 0, n, 0, b->before);
    for (int64_t i = 0; i < n; i++) {
        double moved = b->recent[i] - b->median[i], jump = b->recent[i] - b->before[i];
        double size = fabs(moved), leap = fabs(jump), more = size > leap ? size : leap;
        double far = more < leap / b->jump ? more : leap / b->jump;
        if (moved * jump <= 0) far = 0;
        if (b->still[i]) far = size;
        int rising = moved > 0;
        double sigmas = far / b->spread[i] * b->to_one;
        double effect = rising ? b->shift_up[i] : b->shift_down[i];
        count += far > effect + stretch &&
                 (rising ? sigmas > b->rise[i] : settled && sigmas > b->fall[i]);
    }
    return count;
}

/* Series that have climbed or fallen over hundreds of steps: see `Ramps` in Python. */
static int64_t ramped(const Bank *b, int64_t newest, const Network *lately, const Network *earlier,
                      double stretch) {
    int64_t n = b->columns, count = 0;
    torchstone_middle(b->block_ring, b->blocks, n, newest, lately, 0, n, 0, b->recent);
    newest = back(newest, lately->rows, b->blocks);
    torchstone_middle(b->block_ring, b->blocks, n, newest, earlier, 0, n, 0, b->before);
    for (int64_t i = 0; i < n; i++)
        count += fabs(b->recent[i] - b->before[i]) > b->ramp[i] + stretch;
    return count;
}

/* Takes one value of every series in, and gives the number of series that deserve a look: the look
 * is Python's, and seldom needed. `shifts` (2: all is settled) and `earlier_blocks` ask for more. */
int64_t torchstone_push(const Bank *b, int64_t row, double extra, double clip, double stretch,
                        int64_t shifts, int64_t newest_block, const Network *late_blocks,
                        const Network *earlier_blocks) {
    int64_t count = place(b, row, extra, clip);
    if (!count && shifts) count = shifted(b, row, stretch, shifts > 1);
    if (!count && earlier_blocks) count = ramped(b, newest_block, late_blocks, earlier_blocks, stretch);
    return count;
}

/* Learns anew what is normal for the series from `first` to `end`: median and spread. */
void torchstone_refresh(const Bank *b, int64_t newest, const Network *network, int64_t first,
                        int64_t end, double to_spread) {
    double *usual = b->median + first;
    torchstone_middle(b->clipped_ring, b->rows, b->columns, newest, network, first, end, 0, usual);
    torchstone_middle(b->clipped_ring, b->rows, b->columns, newest, network, first, end, usual,
                      b->spread + first);
    for (int64_t i = first; i < end; i++) b->spread[i] = to_spread * b->spread[i] + b->least[i];
}
