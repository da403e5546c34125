/*
 * Fuzz target: any text is processed to one without annotations, or refused with a place in it.
 */

#define PTX_INJECT_IMPLEMENTATION
#include "ptx_inject.h"

#include "fuzz_text.h"

static const char fragments[] =
    "/* PTX_INJECT s\n|/* PTX_INJECT s\n|/* PTX_INJECT s\n|/* PTX_INJECT s\r\n|/* PTX_INJECT |*/|*/|*/|/*|//|\n|\n|\n|\r\n|"
    " |\t|\\\n|\\|\"|'|R\"(|)\"|R\"x(|)x\"|u8R\"|1'000|x'|in f32 x|mod u32 y|in f32 x\n|out u32 z // remark\r\n|"
    "\tmod f16 a[i]\n|in f16X2 p->h\n|in s32 f(a, b)\n|in b32 a['(']\n|in s32 \"%\"[0]\n|// in f32 y\n|in |out |f32 |x|v.w|"
    "%|,|;|(|)|[|]|asm(|#error don't\n|/|*|/* PTX_INJECT t*/|\xc3\xa9|#|#define |y\n";

/* In memory of exactly its size; NULL if it is refused, with a valid place. */
static char* process(const char* cuda, size_t shortage) {
    PtxInjectPlace place = {99, 99, NULL};
    size_t size = 0, written = 0;
    const PtxInjectResult result = ptx_inject_process_cuda(cuda, NULL, 0, NULL, 0, &size);
    char* buffer;

    REQUIRE(ptx_inject_diagnose_cuda(cuda, NULL, 0, &place) == result);
    if (result != PTX_INJECT_SUCCESS) {
        REQUIRE(result == PTX_INJECT_ERROR_FORMATTING);
        REQUIRE(place.line >= 1 && place.column >= 1 && place.line + place.column <= strlen(cuda) + 3);
        REQUIRE(place.reason != NULL && place.reason[0] != '\0');
        return NULL;
    }
    REQUIRE(place.line == 0 && place.reason[0] == '\0');
    buffer = (char*)malloc(size);
    REQUIRE(buffer != NULL);
    if (shortage > 0 && shortage <= size) {
        REQUIRE(
            ptx_inject_process_cuda(cuda, NULL, 0, buffer, size - shortage, &written) == PTX_INJECT_ERROR_INSUFFICIENT_BUFFER
        );
        REQUIRE(written == size);
    }
    REQUIRE(ptx_inject_process_cuda(cuda, NULL, 0, buffer, size, &written) == PTX_INJECT_SUCCESS);
    REQUIRE(written + 1 == size && strlen(buffer) == written);
    return buffer;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    char* cuda = fuzz_text(data, size, fragments);
    char* processed = process(cuda, size > 0 ? data[size - 1] : 0);
    if (processed != NULL) {
        /* The output closes what it opens, so the text after it is read as before. */
        char* again = process(processed, 0);
        REQUIRE(again != NULL && strcmp(again, processed) == 0);
        free(again);
    }
    free(processed);
    free(cuda);
    return 0;
}
