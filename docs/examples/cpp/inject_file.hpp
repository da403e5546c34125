// inject_file.hpp - shared by examples that inject stubs: files, and a handle that C++ owns.

#ifndef INJECT_FILE_HPP
#define INJECT_FILE_HPP

#define PTX_INJECT_IMPLEMENTATION
#include <ptx_inject.h>

#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// Throws if a call of the library failed.
inline void check(PtxInjectResult result) {
    if (result != PTX_INJECT_SUCCESS) throw std::runtime_error(ptx_inject_result_to_string(result));
}

struct Destroy {
    void operator()(PtxInjectHandle handle) const { (void)ptx_inject_destroy(handle); }
};

// Annotated PTX, read once.
using Inject = std::unique_ptr<PtxInjectHandleImpl, Destroy>;

// `types` of sites in comments; nullptr for the default ones.
inline Inject read_ptx(const std::string& ptx, const PtxInjectDataTypeInfo* types = nullptr, size_t num_types = 0) {
    PtxInjectHandle handle = nullptr;
    check(ptx_inject_create_with_types(&handle, ptx.c_str(), types, num_types));
    return Inject(handle);
}

// The PTX with a stub in every site. stubs: by the names of the sites.
inline std::string render(const Inject& inject, const std::map<std::string, std::string>& stubs) {
    std::vector<const char*> texts(stubs.size());
    for (const auto& stub : stubs) {
        size_t inject_idx = 0;
        check(ptx_inject_inject_info_by_name(inject.get(), stub.first.c_str(), &inject_idx, nullptr, nullptr));
        texts.at(inject_idx) = stub.second.c_str();
    }
    size_t size = 0;
    check(ptx_inject_render_ptx(inject.get(), texts.data(), texts.size(), nullptr, 0, &size));
    std::string rendered(size, ' ');
    check(ptx_inject_render_ptx(inject.get(), texts.data(), texts.size(), &rendered[0], rendered.size(), &size));
    rendered.pop_back(); // a string has its own NUL
    return rendered;
}

// The bare name of the register that a variable of a site is in.
inline const char* register_of(const Inject& inject, const char* site, const char* variable) {
    size_t inject_idx = 0;
    const char* name = nullptr;
    check(ptx_inject_inject_info_by_name(inject.get(), site, &inject_idx, nullptr, nullptr));
    check(ptx_inject_variable_info_by_name(inject.get(), inject_idx, variable, nullptr, &name, nullptr, nullptr, nullptr));
    return name;
}

inline std::string read_text(const char* path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw std::runtime_error(std::string(path) + ": cannot be read");
    return text.str();
}

inline void write_text(const char* path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    file.close();
    if (!file) throw std::runtime_error(std::string(path) + ": cannot be written");
}

#endif // INJECT_FILE_HPP
