// comment_form.cpp - turns annotations in comments into inline assembly with markers, like the command `ptxinject`.
//
//     comment_form INPUT.cu
//
// Given ../cuda/comment_form.cu, it prints ../expected/comment_form.txt.

#include "inject_file.hpp"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: " << argv[0] << " INPUT.cu\n";
        return 1;
    }
    const std::string cuda = read_text(argv[1]);
    size_t size = 0;
    if (ptx_inject_process_cuda(cuda.c_str(), nullptr, 0, nullptr, 0, &size) != PTX_INJECT_SUCCESS) {
        PtxInjectPlace place;
        (void)ptx_inject_diagnose_cuda(cuda.c_str(), nullptr, 0, &place);
        std::cerr << argv[1] << ":" << place.line << ":" << place.column << ": " << place.reason << "\n";
        return 1;
    }
    std::string processed(size, ' ');
    check(ptx_inject_process_cuda(cuda.c_str(), nullptr, 0, &processed[0], processed.size(), &size));
    std::cout << processed.c_str();
}
