/* Included in the C code of every function: arithmetic on lengths, scalar functions with NumPy's
 * conventions, matrix products of row-major matrices. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Python's C API.  The GIL is released while a function runs, and taken to run signal handlers.  A
 * function counts its work in estimated nanoseconds, and polls for signals every BLOCK of them;
 * `signals` returns nonzero if a handler has raised an exception. */
static void *(*give_lock)(void);
static void (*take_lock)(void *);
static int (*ensure_lock)(void);
static void (*release_lock)(int);
static int (*check_signals)(void);
static void *(*call_function)(void *, const char *, ...);
static void (*release)(void *);
#define BLOCK (INT64_C(1) << 27)
static inline int64_t signals(int64_t *work, int64_t more) {
    *work += more;
    if (*work < BLOCK) return 0;
    *work = 0;
    int state = ensure_lock();
    int raised = check_signals();
    release_lock(state);
    return raised != 0;
}

/* What `run` returns if an exception is set, and if memory cannot be allocated. */
#define RAISED (-1)
#define OUT_OF_MEMORY (-2)

/* Calls a Python function with one integer; all calls of Python use this function.  Returns nonzero
 * if the function has raised an exception; `run` must return then. */
static inline int64_t called(void *function, int64_t number) {
    int state = ensure_lock();
    void *result = call_function(function, "L", (long long)number);
    if (result) release(result);
    release_lock(state);
    return !result;
}

/* Arithmetic on lengths: division rounds down; division by 0 gives 0. */
static inline int64_t dim_floordiv(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return (int64_t)(0 - (uint64_t)a); /* the processor traps on INT64_MIN / -1 */
    int64_t q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
static inline int64_t dim_mod(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;
    int64_t r = a % b;
    return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}
static inline int64_t dim_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t dim_min(int64_t a, int64_t b) { return a < b ? a : b; }

/* Kernels in strips: a time at which all have ended, and the number of the iterations of a kernel,
 * of `count`, that take place before a time. */
#define FOREVER (INT64_C(1) << 62)
static inline int64_t strip(int64_t time, int64_t pace, int64_t count) {
    pace = dim_max(pace, 1);
    return time > 0 ? dim_min((time - 1) / pace + 1, count) : 0;
}

/* Arithmetic on lengths that reports overflow. */
static inline int64_t exact_add(int64_t a, int64_t b, int *overflow) {
    *overflow |= b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b;
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t exact_sub(int64_t a, int64_t b, int *overflow) {
    *overflow |= b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b;
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
static inline int64_t exact_mul(int64_t a, int64_t b, int *overflow) {
    int64_t c = (int64_t)((uint64_t)a * (uint64_t)b);
    *overflow |= (a == -1 && b == INT64_MIN) || (a != 0 && a != -1 && (b != c / a || c % a));
    return c;
}

/* Allocates temporary memory; returns a null pointer for an impossible size. */
static inline void *storage_of(int64_t size, int overflow) {
    return overflow || size < 0 || size > INT64_MAX - 64 ? NULL : malloc((size_t)size + 64);
}

/* Integer division in every dtype, as for lengths; minimum and maximum. */
#define INTEGER_FUNCTIONS(T, name)                                                        \
    static inline T idiv_##name(T a, T b) {                                               \
        if (b == 0) return 0;                                                             \
        if (b == (T)-1 && (T)-1 < 0) return (T)(0 - (uint64_t)a);                         \
        T q = (T)(a / b);                                                                 \
        return (T)(q - ((a % b != 0) && ((a < 0) != (b < 0))));                           \
    }                                                                                     \
    static inline T imod_##name(T a, T b) {                                               \
        if (b == 0 || (b == (T)-1 && (T)-1 < 0)) return 0;                                \
        T r = (T)(a % b);                                                                 \
        return (r != 0 && ((r < 0) != (b < 0))) ? (T)(r + b) : r;                         \
    }                                                                                     \
    static inline T min_##name(T a, T b) { return a < b ? a : b; }                        \
    static inline T max_##name(T a, T b) { return a > b ? a : b; }
INTEGER_FUNCTIONS(uint8_t, bool)
INTEGER_FUNCTIONS(int8_t, int8)
INTEGER_FUNCTIONS(int16_t, int16)
INTEGER_FUNCTIONS(int32_t, int32)
INTEGER_FUNCTIONS(int64_t, int64)
INTEGER_FUNCTIONS(uint8_t, uint8)
INTEGER_FUNCTIONS(uint16_t, uint16)
INTEGER_FUNCTIONS(uint32_t, uint32)
INTEGER_FUNCTIONS(uint64_t, uint64)

/* float16, as its bits.  Conversion to it rounds to the nearest, ties to even. */
static inline float half_to_float(uint16_t h) {
    uint32_t bits = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = bits & 0x0f800000;
    float x;
    bits += UINT32_C(112) << 23;
    if (exponent == 0x0f800000) bits += UINT32_C(112) << 23; /* infinite or NaN */
    if (exponent == 0) bits += UINT32_C(1) << 23;
    memcpy(&x, &bits, 4);
    if (exponent == 0) x -= 0x1p-14f; /* subnormal */
    memcpy(&bits, &x, 4);
    bits |= sign;
    memcpy(&x, &bits, 4);
    return x;
}
static inline uint16_t float_to_half(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint32_t sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (bits >> 13 & 0x3ff)); /* NaN */
    if (bits >= UINT32_C(143) << 23) return (uint16_t)(sign | 0x7c00);
    if (bits < UINT32_C(113) << 23) { /* the result is subnormal: its bits are those of a sum */
        memcpy(&x, &bits, 4);
        x += 0.5f;
        memcpy(&bits, &x, 4);
        return (uint16_t)(sign | (bits - (UINT32_C(126) << 23)));
    }
    bits += 0xfff + (bits >> 13 & 1) - (UINT32_C(112) << 23);
    return (uint16_t)(sign | bits >> 13);
}
/* Rounded to odd first: the last bit of the float is 1 if it is inexact. */
static inline uint16_t double_to_half(double x) {
    float rounded = (float)x;
    uint32_t bits;
    memcpy(&bits, &rounded, 4);
    if (x == x && rounded != x) bits = (bits - (fabs(rounded) > fabs(x))) | 1;
    memcpy(&rounded, &bits, 4);
    return float_to_half(rounded);
}

/* Complex numbers, of which kernels only take parts, and sums in memory. */
#define COMPLEX(T, name)                                             \
    typedef struct { T real, imag; } name;                           \
    static inline name add_##name(name a, name b) {                  \
        return (name){a.real + b.real, a.imag + b.imag};             \
    }
COMPLEX(float, complex64)
COMPLEX(double, complex128)

/* Floats: min and max propagate NaN. */
#define FLOAT_FUNCTIONS(T, name, s)                                                       \
    static inline T min_##name(T a, T b) { return (a < b || a != a) ? a : b; }            \
    static inline T max_##name(T a, T b) { return (a > b || a != a) ? a : b; }            \
    static inline T sigmoid_##name(T a) {                                                 \
        if (a >= 0) return 1 / (1 + exp##s(-a));                                          \
        T e = exp##s(a);                                                                  \
        return e / (1 + e);                                                               \
    }                                                                                     \
    static inline T softplus_##name(T a) {                                                \
        return (a > 0 ? a : 0) + log1p##s(exp##s(-fabs##s(a))); /* NaN through exp */       \
    }                                                                                     \
    static inline T log1mexp_##name(T a) { /* that of two forms which does not cancel */  \
        if (a < (T)-0.6931471805599453) return log1p##s(-exp##s(a));                      \
        return log##s(-expm1##s(a));                                                      \
    }
FLOAT_FUNCTIONS(float, float32, f)
FLOAT_FUNCTIONS(double, float64, )

/* Conversions of floats to integers: NaN and values out of range give the least integer. */
static inline int32_t float_to_int32(double a) {
    return fabs(a) < 2147483648.0 ? (int32_t)a : INT32_MIN;
}
static inline int64_t float_to_int64(double a) {
    return fabs(a) < 9223372036854775808.0 ? (int64_t)a : INT64_MIN;
}
static inline uint64_t float_to_uint64(double a) {
    if (!(a >= 9223372036854775808.0)) return (uint64_t)float_to_int64(a);
    return (uint64_t)float_to_int64(a - 9223372036854775808.0) ^ (UINT64_C(1) << 63);
}

/* The Hurwitz zeta function, the sum over k >= 0 of (q + k)^-x, for x > 1 and q > -64: the first
 * terms, then the Euler-Maclaurin formula (Abramowitz and Stegun 23.1.30). */
static double hurwitz_zeta_added(double x, double q) {
    static const double even[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600,
                                  1.0 / 47900160, -691.0 / 1307674368000.0, 1.0 / 74724249600.0};
    double total = 0, a = q;
    for (int k = 0; k < 12 || a < 9; k++, a += 1) total += pow(a, -x);
    total += pow(a, 1 - x) / (x - 1) + 0.5 * pow(a, -x);
    double term = x * pow(a, -x - 1);
    for (int k = 0; k < 7; k++) {
        total += even[k] * term;
        term *= (x + 2 * k + 1) * (x + 2 * k + 2) / (a * a);
    }
    return total;
}

/* The Hurwitz zeta function for all q; far below 0 by reflection (see llvm/runtime/zeta.ll). */
static double hurwitz_zeta(double x, double q) {
    if (x == 1) return INFINITY;
    if (!(x > 1)) return NAN;
    if (x > 1e15 && q > 0) return pow(q, -x); /* the other terms are negligible */
    if (!(q <= 0)) return hurwitz_zeta_added(x, q);
    if (q == floor(q)) return INFINITY;
    if (x != floor(x)) return NAN;
    if (q >= -64) return hurwitz_zeta_added(x, q);
    double end = hurwitz_zeta_added(x > 200 ? 200 : x, 1 - q);
    double between = hurwitz_zeta_added(x, ceil(q) - q) - end;
    return hurwitz_zeta_added(x, q - floor(q)) + (x / 2 == floor(x / 2) ? between : -between);
}

/* Matrix products.  BLAS is column-major, so a row-major product is computed as the product of the
 * transposes.  Large products are split into blocks of rows, and sums into parts, to poll for
 * signals in between.  The functions return nonzero if a signal handler has raised an exception. */
#define PART (INT64_C(1) << 24)
static inline int64_t rows_of(int64_t m, int64_t work) {
    int64_t rows = (INT64_C(1) << 34) / work / 64 * 64;
    return dim_min(m, dim_max(rows, 128));
}
#define BLAS(T, p)                                                                             \
    typedef void (*p##gemm_fn)(char *, char *, int *, int *, int *, T *, T *, int *, T *,      \
                               int *, T *, T *, int *);                                        \
    typedef void (*p##gemv_fn)(char *, int *, int *, T *, T *, int *, T *, int *, T *, T *,    \
                               int *);                                                         \
    static p##gemm_fn blas_##p##gemm;                                                          \
    static p##gemv_fn blas_##p##gemv;                                                          \
    static int p##fits(int64_t a, int64_t b, int64_t c) {                                      \
        return a <= INT32_MAX && b <= INT32_MAX && c <= INT32_MAX;                             \
    }                                                                                          \
    static int64_t p##sum(int64_t *work, int64_t k, T *x, int64_t x0, T *y, int64_t y0,        \
                          T *result) {                                                         \
        T sum = 0;                                                                             \
        for (int64_t s = 0; s < k; s += PART) {                                                \
            int64_t e = dim_min(k, s + PART);                                                  \
            for (int64_t l = s; l < e; l++) sum += x[l * x0] * y[l * y0];                      \
            if (signals(work, e - s)) return 1;                                                \
        }                                                                                      \
        *result = sum;                                                                         \
        return 0;                                                                              \
    }                                                                                          \
    static int64_t p##gemm(int64_t *work, int64_t m, int64_t n, int64_t k, T alpha, T *C,      \
                           int64_t c0, int64_t c1, T *A, int64_t a0, int64_t a1, T *B,         \
                           int64_t b0, int64_t b1, T beta) {                                   \
        int a_ok = (a1 == 1 && a0 >= k && a0 > 0) || (a0 == 1 && a1 >= m && a1 > 0);           \
        int b_ok = (b1 == 1 && b0 >= n && b0 > 0) || (b0 == 1 && b1 >= k && b1 > 0);           \
        if (a_ok && b_ok && c1 == 1 && c0 >= n && m > 0 && n > 0 && k > 0 && p##fits(m, n, k) &&\
            p##fits(a0 * a1, b0 * b1, c0)) {                                                   \
            int M = (int)n, K = (int)k, ldc = (int)c0;                                         \
            int a_plain = a1 == 1 && a0 >= k, b_plain = b1 == 1 && b0 >= n;                    \
            int lda = (int)(a_plain ? a0 : a1), ldb = (int)(b_plain ? b0 : b1);                \
            char ta = a_plain ? 'N' : 'T', tb = b_plain ? 'N' : 'T';                           \
            int64_t rows = rows_of(m, n * k);                                                  \
            for (int64_t i = 0; i < m; i += rows) {                                            \
                int N = (int)dim_min(rows, m - i);                                             \
                blas_##p##gemm(&tb, &ta, &M, &N, &K, &alpha, B, &ldb, A + i * a0, &lda, &beta, \
                               C + i * c0, &ldc);                                              \
                if (signals(work, N * n * k / 16)) return 1;                                   \
            }                                                                                  \
            return 0;                                                                          \
        }                                                                                      \
        for (int64_t i = 0; i < m; i++)                                                        \
            for (int64_t j = 0; j < n; j++) {                                                  \
                T sum = 0;                                                                     \
                if (p##sum(work, k, A + i * a0, a1, B + j * b1, b0, &sum)) return 1;           \
                T *c = C + i * c0 + j * c1;                                                    \
                *c = alpha * sum + (beta == 0 ? 0 : beta * *c);                                \
            }                                                                                  \
        return 0;                                                                              \
    }                                                                                          \
    static int64_t p##gemv(int64_t *work, int64_t m, int64_t k, T alpha, T *y, int64_t y0, T *A,\
                           int64_t a0, int64_t a1, T *x, int64_t x0, T beta) {                 \
        int plain = a1 == 1 && a0 >= k, turned = a0 == 1 && a1 >= m;                           \
        if (m > 0 && k > 0 && y0 > 0 && x0 > 0 && (plain || turned) && p##fits(m, k, a0 * a1) &&\
            p##fits(y0, x0, 0)) {                                                              \
            int rows = (int)(plain ? k : m), columns = (int)(plain ? m : k);                   \
            int lda = (int)(plain ? a0 : a1), incx = (int)x0, incy = (int)y0;                  \
            char t = plain ? 'T' : 'N';                                                        \
            blas_##p##gemv(&t, &rows, &columns, &alpha, A, &lda, x, &incx, &beta, y, &incy);   \
            return signals(work, m * k);                                                       \
        }                                                                                      \
        for (int64_t i = 0; i < m; i++) {                                                      \
            T sum = 0;                                                                         \
            if (p##sum(work, k, A + i * a0, a1, x, x0, &sum)) return 1;                        \
            y[i * y0] = alpha * sum + (beta == 0 ? 0 : beta * y[i * y0]);                      \
        }                                                                                      \
        return 0;                                                                              \
    }                                                                                          \
    static int64_t p##ger(int64_t *work, int64_t m, int64_t n, T alpha, T *A, int64_t a0,      \
                          int64_t a1, T *x, int64_t x0, T *y, int64_t y0) {                    \
        for (int64_t i = 0; i < m; i++) {                                                      \
            for (int64_t j = 0; j < n; j++) A[i * a0 + j * a1] += alpha * x[i * x0] * y[j * y0];\
            if (signals(work, n)) return 1;                                                    \
        }                                                                                      \
        return 0;                                                                              \
    }                                                                                          \
    static int64_t p##dot(int64_t *work, int64_t k, T alpha, T *r, T *x, int64_t x0, T *y,     \
                          int64_t y0, T beta) {                                                \
        T sum = 0;                                                                             \
        if (p##sum(work, k, x, x0, y, y0, &sum)) return 1;                                     \
        *r = alpha * sum + (beta == 0 ? 0 : beta * *r);                                        \
        return 0;                                                                              \
    }
