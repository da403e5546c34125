// inject.cpp - PTX Inject from annotated PTX to PTX with a stub: y = x + y, then z = x + y.
//
//     inject OUTPUT.ptx
//
// inject_ptx.h is the PTX of ../cuda/inject.cu as C data, so that the program needs no file at run time:
//
//     nvcc -ptx -I csrc docs/examples/cuda/inject.cu -o inject.ptx
//     python -m evo.ptx_inject embed --input inject.ptx --output inject_ptx.h --name annotated_ptx
//
// Prints ../expected/inject.txt.

#include "inject_file.hpp"
#include "inject_ptx.h"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: " << argv[0] << " OUTPUT.ptx\n";
        return 1;
    }
    const Inject inject = read_ptx(annotated_ptx);

    // What the PTX contains.
    const char* const mut_types[] = {"out", "mod", "in"};
    size_t inject_idx = 0, num_args = 0, num_sites = 0;
    check(ptx_inject_inject_info_by_name(inject.get(), "func", &inject_idx, &num_args, &num_sites));
    std::cout << "func: sites " << num_sites << "\n";
    for (size_t i = 0; i < num_args; ++i) {
        const char *name, *register_name, *data_type;
        PtxInjectMutType mut_type;
        check(
            ptx_inject_variable_info_by_index(inject.get(), inject_idx, i, &name, &register_name, &mut_type, nullptr, &data_type)
        );
        std::cout << mut_types[mut_type] << " " << data_type << " " << name << " in %" << register_name << "\n";
    }

    // A stub over the registers that the variables are in: the same at all sites of a name.
    const std::string x = register_of(inject, "func", "x");
    const std::string y = register_of(inject, "func", "y");
    const std::string z = register_of(inject, "func", "z");
    const std::string stub = "\tadd.ftz.f32 %" + y + ", %" + x + ", %" + y +
        ";\n"
        "\tadd.ftz.f32 %" +
        z + ", %" + x + ", %" + y + ";";
    std::cout << stub << "\n";
    write_text(argv[1], render(inject, {{"func", stub}}));
}
