/*
 * ptx_text.h - the text of stubs: names of registers, literals, lines of instructions.
 *
 * Private to ast_ptx.h and stack_ptx.h. It knows neither words nor programs.
 *
 * Speed. Values and names have padded texts, which are copied at fixed sizes; only lengths differ. That is cheaper than a branch on
 * the length or on the number of operands.
 */

#ifndef PTX_TEXT_H
#define PTX_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Code that runs for every word is fully inlined; rare code is kept out of line. This saves a third of the time. */
#if defined(__GNUC__)
#define PTX_TEXT__HOT static inline __attribute__((always_inline))
#define PTX_TEXT__COLD static __attribute__((noinline, cold))
#else
#define PTX_TEXT__HOT static inline
#define PTX_TEXT__COLD static
#endif

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* True for a prefix, one digit or more, and the end. */
static inline bool ptx_text__is_numbered(const char* name, const char* prefix) {
    const size_t length = strlen(prefix);
    size_t num_digits;
    if (strncmp(name, prefix, length) != 0) return false;
    num_digits = strspn(name + length, "0123456789");
    return num_digits > 0 && name[length + num_digits] == '\0';
}

/* The length of a name of letters, digits, _ and $; 0 for any other. */
static inline size_t ptx_text__identifier_length(const char* name) {
    size_t i;
    for (i = 0; name[i] != '\0'; ++i) {
        const char lower = (char)(name[i] | 0x20);
        const bool is_digit = name[i] >= '0' && name[i] <= '9';
        if (!(lower >= 'a' && lower <= 'z') && !is_digit && name[i] != '_' && name[i] != '$') return 0;
    }
    return i;
}

/* Whether an identifier of this length belongs to CUDA compilers or to PTX. */
static inline bool ptx_text__is_reserved(const char* name, size_t length) {
    /* Names of NVVM's virtual registers, by class, and of its stack pointers; special registers of PTX. */
    static const char* const numbered[] = {"p", "rs", "r", "rd", "rq", "rc", "f", "fd", "h", "hh", "b", "envreg", "pm"};
    static const char* const whole[] = {
        "SP",
        "SPL",
        "tid",
        "ntid",
        "ctaid",
        "nctaid",
        "laneid",
        "warpid",
        "nwarpid",
        "smid",
        "nsmid",
        "gridid",
        "clusterid",
        "nclusterid",
        "cluster_ctaid",
        "cluster_nctaid",
        "cluster_ctarank",
        "cluster_nctarank",
        "is_explicit_cluster",
        "clock",
        "clock_hi",
        "clock64",
        "globaltimer",
        "globaltimer_lo",
        "globaltimer_hi",
        "total_smem_size",
        "aggr_smem_size",
        "dynamic_smem_size",
        "current_graph_exec",
    };
    static const char* const families[] = {"lanemask_", "reserved_smem_", "pm0_", "pm1_", "pm2_",
                                           "pm3_",      "pm4_",           "pm5_", "pm6_", "pm7_"};
    const bool has_number = name[length - 1] >= '0' && name[length - 1] <= '9';
    size_t i;
    for (i = 0; i < sizeof numbered / sizeof numbered[0] && has_number; ++i)
        if (name[0] == numbered[i][0] && ptx_text__is_numbered(name, numbered[i])) return true;
    for (i = 0; i < sizeof whole / sizeof whole[0]; ++i)
        if (name[0] == whole[i][0] && strcmp(name, whole[i]) == 0) return true;
    for (i = 0; i < sizeof families / sizeof families[0]; ++i)
        if (name[0] == families[i][0] && strncmp(name, families[i], strlen(families[i])) == 0) return true;
    return false;
}

/* ---- digits ------------------------------------------------------------------------------------------------------ */

/* Decimal digits of a number, ten at most; returns how many. */
PTX_TEXT__HOT uint32_t ptx_text__format_decimal(uint32_t number, char* digits_out) {
    static const char pairs[] =
        "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
        "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
    uint32_t num_digits = 1, rest = number;
    if (number < 10) {
        digits_out[0] = (char)('0' + number);
        return 1;
    }
    if (number < 100) {
        memcpy(digits_out, pairs + 2 * number, 2);
        return 2;
    }
    if (number < 1000) {
        digits_out[0] = (char)('0' + number / 100);
        memcpy(digits_out + 1, pairs + 2 * (number % 100), 2);
        return 3;
    }
    while (rest >= 10) {
        rest /= 10;
        ++num_digits;
    }
    for (rest = num_digits; rest > 0; --rest) {
        digits_out[rest - 1] = (char)('0' + number % 10);
        number /= 10;
    }
    return num_digits;
}

/* Eight hexadecimal digits. */
PTX_TEXT__HOT void ptx_text__format_hex(uint32_t bits, bool is_lower, char* digits_out) {
    static const char pairs[] = "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"
                                "202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F"
                                "404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F"
                                "606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F"
                                "808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9F"
                                "A0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBF"
                                "C0C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0D1D2D3D4D5D6D7D8D9DADBDCDDDEDF"
                                "E0E1E2E3E4E5E6E7E8E9EAEBECEDEEEFF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF";
    uint64_t digits;
    memcpy(digits_out, pairs + 2 * (bits >> 24), 2);
    memcpy(digits_out + 2, pairs + 2 * (bits >> 16 & 255u), 2);
    memcpy(digits_out + 4, pairs + 2 * (bits >> 8 & 255u), 2);
    memcpy(digits_out + 6, pairs + 2 * (bits & 255u), 2);
    if (is_lower) { /* the bit is set in digits already */
        memcpy(&digits, digits_out, sizeof digits);
        digits |= UINT64_C(0x2020202020202020);
        memcpy(digits_out, &digits, sizeof digits);
    }
}

/* ---- text under construction ------------------------------------------------------------------------------------- */

/* `length` also counts what did not fit or was only measured. */
typedef struct PtxText__Writer {
    char* buffer;
    size_t capacity; /* without the NUL */
    size_t length;
} PtxText__Writer;

/* With buffer NULL or of no size, only measures. */
static inline PtxText__Writer ptx_text__open(char* buffer, size_t buffer_size) {
    PtxText__Writer writer;
    writer.buffer = buffer;
    writer.capacity = buffer == NULL || buffer_size == 0 ? 0 : buffer_size - 1;
    writer.length = 0;
    return writer;
}

/* Ends the text with a NUL. False if it does not fit. */
static inline bool ptx_text__close(const PtxText__Writer* writer, size_t buffer_size, size_t* bytes_written_out) {
    *bytes_written_out = writer->length;
    if (writer->buffer != NULL) {
        if (buffer_size == 0 || writer->length > writer->capacity) return false;
        writer->buffer[writer->length] = '\0';
    }
    return true;
}

static inline void ptx_text__write(PtxText__Writer* writer, const char* text, size_t num_bytes) {
    if (writer->length <= writer->capacity && num_bytes <= writer->capacity - writer->length)
        memcpy(writer->buffer + writer->length, text, num_bytes);
    writer->length += num_bytes;
}

static inline void ptx_text__write_string(PtxText__Writer* writer, const char* text) {
    ptx_text__write(writer, text, strlen(text));
}

static inline void ptx_text__write_decimal(PtxText__Writer* writer, uint32_t number) {
    char digits[10];
    ptx_text__write(writer, digits, ptx_text__format_decimal(number, digits));
}

/* ---- values and lines -------------------------------------------------------------------------------------------- */

/* A value with the comma before it: ", %x", ", %_s0_12", ", 0f3F800000". A length of PTX_TEXT__LONG means that it does not
   fit; the text of a temporary then begins with its number. */
typedef struct PtxText__Value {
    char text[15];
    uint8_t length;
} PtxText__Value;

#define PTX_TEXT__LONG 255u

/* The name of an instruction and a space. */
typedef struct PtxText__Name {
    char text[60];
    uint32_t length;
} PtxText__Name;

/* Bytes that a line may touch: the name, a result, four operands, and an end. */
#define PTX_TEXT__LINE_BYTES (64u + 5u * 16u + 2u)

/* False if the name is too long. */
static inline bool ptx_text__make_name(const char* name, size_t length, PtxText__Name* name_out) {
    if (length >= sizeof name_out->text) return false;
    memcpy(name_out->text, name, length);
    name_out->text[length] = ' ';
    name_out->length = (uint32_t)length + 1;
    return true;
}

static inline void ptx_text__make_register(const char* name, size_t length, PtxText__Value* value_out) {
    value_out->length = PTX_TEXT__LONG;
    if (length + 3 <= sizeof value_out->text) {
        memcpy(value_out->text, ", %", 3);
        memcpy(value_out->text + 3, name, length);
        value_out->length = (uint8_t)(length + 3);
    }
}

/* A temporary: a stem such as ", %_s0_" and a number. The stem is not long. Whether the text is. */
PTX_TEXT__HOT bool ptx_text__make_temporary(const PtxText__Value* stem, uint32_t number, PtxText__Value* value_out) {
    *value_out = *stem;
    if (number < 1000 && stem->length <= sizeof stem->text - 3) {
        value_out->length = (uint8_t)(stem->length + ptx_text__format_decimal(number, value_out->text + stem->length));
        return false;
    } else {
        char digits[10];
        const uint32_t num_digits = ptx_text__format_decimal(number, digits);
        const bool is_long = stem->length + num_digits > sizeof value_out->text;
        memcpy(value_out->text + (is_long ? 0 : stem->length), is_long ? (const char*)&number : digits, is_long ? 4 : num_digits);
        value_out->length = is_long ? PTX_TEXT__LONG : (uint8_t)(stem->length + num_digits);
        return is_long;
    }
}

PTX_TEXT__HOT char* ptx_text__copy_operand(const PtxText__Value* operand, char* cursor) {
    const uint32_t length = operand->length;
    memcpy(cursor, operand, 16);
    return cursor + length;
}

PTX_TEXT__HOT char* ptx_text__copy_line(
    char* cursor, const PtxText__Name* name, const PtxText__Value* result, const PtxText__Value* first,
    const PtxText__Value* second, const PtxText__Value* third, const PtxText__Value* fourth
) {
    const uint32_t name_length = name->length, result_length = result->length - 2u;
    memcpy(cursor, name->text, 32);
    if (name_length > 32) memcpy(cursor + 32, name->text + 32, sizeof name->text - 32);
    cursor += name_length;
    memcpy(cursor, result->text + 2, 14);
    cursor += result_length;
    cursor = ptx_text__copy_operand(first, cursor);
    cursor = ptx_text__copy_operand(second, cursor);
    cursor = ptx_text__copy_operand(third, cursor);
    if (fourth != NULL) cursor = ptx_text__copy_operand(fourth, cursor);
    memcpy(cursor, ";\n", 2);
    return cursor + 2;
}

/* Writes the line of an instruction at `length` and returns the length after it, also if it does not fit. Nothing is long. A
   missing operand has length 0; the fourth is NULL. */
PTX_TEXT__HOT size_t ptx_text__write_line(
    char* buffer, size_t capacity, size_t length, const PtxText__Name* name, const PtxText__Value* result,
    const PtxText__Value* first, const PtxText__Value* second, const PtxText__Value* third, const PtxText__Value* fourth
) {
    char beside[PTX_TEXT__LINE_BYTES];
    size_t num_bytes;
    if (length + PTX_TEXT__LINE_BYTES <= capacity) {
        char* line = buffer + length;
        return length + (size_t)(ptx_text__copy_line(line, name, result, first, second, third, fourth) - line);
    }
    num_bytes = (size_t)name->length + result->length + first->length + second->length + third->length +
        (fourth != NULL ? fourth->length : 0u);
    if (length + num_bytes <= capacity) {
        (void)ptx_text__copy_line(beside, name, result, first, second, third, fourth);
        memcpy(buffer + length, beside, num_bytes);
    }
    return length + num_bytes;
}

#endif /* PTX_TEXT_H */
