/* One pass over the bytes of a tensor: counts by exponent and leading mantissa bits. */
#include <stdint.h>
#include <string.h>

typedef int32_t v8i __attribute__((vector_size(32)));
typedef float v8f __attribute__((vector_size(32)));

static const v8i MAGNITUDE = {0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff,
                              0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff};
#define INFINITE 0x7f800000
#define BLOCK 4096
#define BINS 524288

/* facts: 0 the largest finite magnitude as bits, 1 all bits that occur, 2 zeros, 3 NaN, 4 infinite */
static void note_one(int32_t value, uint64_t *facts) {
    int32_t size = value & 0x7fffffff;
    if (size < INFINITE && (uint64_t)size > facts[0]) facts[0] = size;
    facts[1] |= (uint32_t)value;
    facts[2] += size == 0;
    facts[3] += size > INFINITE;
    facts[4] += size == INFINITE;
}

static void note_facts(const int32_t *x, int64_t n, uint64_t *facts) {
    v8i top = {0}, bits = {0}, zeros = {0}, odd = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        v8i value;
        memcpy(&value, x + i, 32);
        v8i size = value & MAGNITUDE;
        v8i more = size > top;
        top = (size & more) | (top & ~more);
        bits |= value;
        zeros -= size == 0;
        odd |= size >= INFINITE;
    }
    int64_t any_odd = 0, rest = i;
    for (int k = 0; k < 8; k++) any_odd |= odd[k];
    if (any_odd) rest = 0; /* rare: look at every value */
    else
        for (int k = 0; k < 8; k++) {
            if ((uint64_t)top[k] > facts[0]) facts[0] = top[k];
            facts[1] |= (uint32_t)bits[k];
            facts[2] += zeros[k];
        }
    for (; rest < n; rest++) note_one(x[rest], facts);
}

/* |x| by its upper 19 bits: 8 of the exponent, 11 of the mantissa. `bins` is two tables of 524288
   places, so that neighbours in one bin do not wait for each other. */
void torchstone_count_fp32(const int32_t *x, int64_t n, uint32_t *bins, uint64_t *facts) {
    for (int64_t start = 0; start < n; start += BLOCK) {
        int64_t size = start + BLOCK < n ? BLOCK : n - start, i = 0;
        const int32_t *at = x + start;
        note_facts(at, size, facts);
        for (; i + 4 <= size; i += 4) {
            uint64_t one, two;
            memcpy(&one, at + i, 8);
            memcpy(&two, at + i + 2, 8);
            bins[(uint32_t)(one & 0x7fffffffu) >> 12]++;
            bins[BINS + ((one & 0x7fffffffffffffffu) >> 44)]++;
            bins[(uint32_t)(two & 0x7fffffffu) >> 12]++;
            bins[BINS + ((two & 0x7fffffffffffffffu) >> 44)]++;
        }
        for (; i < size; i++) bins[(uint32_t)(at[i] & 0x7fffffff) >> 12]++;
    }
}

/* Every pattern of a 16-bit type. `bins` has 4 x 65536 places: neighbours that are equal do not
   wait for each other. */
void torchstone_count_16bit(const uint16_t *x, int64_t n, uint32_t *bins) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        bins[x[i]]++;
        bins[65536 + x[i + 1]]++;
        bins[131072 + x[i + 2]]++;
        bins[196608 + x[i + 3]]++;
    }
    for (; i < n; i++) bins[x[i]]++;
}

/* How many values have a magnitude, as bits, up to each limit. NaN is above every limit. */
void torchstone_count_up_to(
    const int32_t *x, int64_t n, int64_t limits, const int32_t *limit, int64_t *counts) {
    const int64_t block = 8 * 4096;
    for (int64_t start = 0; start < n; start += block) {
        int64_t end = start + block < n ? start + block : n;
        for (int64_t first = 0; first < limits; first += 4) {
            int64_t some = limits - first < 4 ? limits - first : 4;
            v8i sums[4] = {{0}}, edges[4];
            for (int k = 0; k < 4; k++) {
                int32_t value = k < some ? limit[first + k] : -1;
                edges[k] = (v8i){value, value, value, value, value, value, value, value};
            }
            int64_t i = start;
            for (; i + 8 <= end; i += 8) {
                v8i v;
                memcpy(&v, x + i, 32);
                v &= MAGNITUDE;
                for (int k = 0; k < 4; k++) sums[k] -= v <= edges[k];
            }
            for (int k = 0; k < some; k++) {
                int64_t sum = 0;
                for (int j = 0; j < 8; j++) sum += sums[k][j];
                for (int64_t rest = i; rest < end; rest++)
                    sum += (x[rest] & 0x7fffffff) <= limit[first + k];
                counts[first + k] += sum;
            }
        }
    }
}

/* Smallest, largest and sum of every index of an axis, for finite values laid out as
   (outer, size, inner). The results are added to what is there. */
static void extremes_of_run(const float *x, int64_t n, float *low, float *high, double *sum) {
    float least = *low, most = *high;
    double total = 0;
    int64_t i = 0;
    while (i + 8 <= n) {
        int64_t end = n - i > 2048 ? i + 2048 : i + (n - i) / 8 * 8; /* short fp32 sums */
        v8f a, b, c = {0};
        memcpy(&a, x + i, 32);
        b = a;
        for (; i < end; i += 8) {
            v8f v;
            memcpy(&v, x + i, 32);
            v8i less = v < a, more = v > b;
            a = (v8f)(((v8i)v & less) | ((v8i)a & ~less));
            b = (v8f)(((v8i)v & more) | ((v8i)b & ~more));
            c += v;
        }
        for (int k = 0; k < 8; k++) {
            least = a[k] < least ? a[k] : least;
            most = b[k] > most ? b[k] : most;
            total += c[k];
        }
    }
    for (; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
        total += x[i];
    }
    *low = least;
    *high = most;
    *sum += total;
}

#define STRIP 512
#define TALL 64
static void extremes_of_columns(
    const float *x, int64_t rows, int64_t columns, float *low, float *high, double *sum) {
    for (int64_t top = 0; top < rows; top += TALL) {
        int64_t bottom = top + TALL < rows ? top + TALL : rows;
        for (int64_t left = 0; left < columns; left += STRIP) {
            int64_t width = left + STRIP < columns ? STRIP : columns - left;
            float part[STRIP] = {0};
            for (int64_t row = top; row < bottom; row++) {
                const float *at = x + row * columns + left;
                float *a = low + left, *b = high + left;
                for (int64_t i = 0; i < width; i++) {
                    float v = at[i];
                    a[i] = v < a[i] ? v : a[i];
                    b[i] = v > b[i] ? v : b[i];
                    part[i] += v;
                }
            }
            for (int64_t i = 0; i < width; i++) sum[left + i] += part[i];
        }
    }
}

void torchstone_axis_extremes(
    const float *x, int64_t outer, int64_t size, int64_t inner, float *low, float *high, double *sum) {
    if (inner == 1) {
        extremes_of_columns(x, outer, size, low, high, sum);
        return;
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < size; k++)
            extremes_of_run(x + (o * size + k) * inner, inner, low + k, high + k, sum + k);
}
