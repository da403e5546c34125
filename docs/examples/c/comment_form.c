/*
 * comment_form.c - turns annotations in comments into inline assembly with markers, like the command `ptxinject`.
 *
 *     comment_form INPUT.cu
 *
 * Given ../cuda/comment_form.cu, it prints ../expected/comment_form.txt.
 */

#define PTX_INJECT_IMPLEMENTATION
#include <ptx_inject.h>
#include <check_result_helper.h>

#include "text_file.h"

int main(int argc, char** argv) {
    char* cuda;
    char* processed;
    size_t size = 0;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s INPUT.cu\n", argv[0]);
        return EXIT_FAILURE;
    }
    cuda = read_text(argv[1]);
    if (ptx_inject_process_cuda(cuda, NULL, 0, NULL, 0, &size) != PTX_INJECT_SUCCESS) {
        PtxInjectPlace place;
        (void)ptx_inject_diagnose_cuda(cuda, NULL, 0, &place);
        (void)fprintf(stderr, "%s:%u:%u: %s\n", argv[1], (unsigned)place.line, (unsigned)place.column, place.reason);
        return EXIT_FAILURE;
    }
    processed = allocate(size);
    ptxInjectCheck(ptx_inject_process_cuda(cuda, NULL, 0, processed, size, &size));
    (void)fputs(processed, stdout);
    free(processed);
    free(cuda);
    return EXIT_SUCCESS;
}
