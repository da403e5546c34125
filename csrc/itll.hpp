/*
 * itll.hpp - the models of itll.h as C++ objects that own their memory. Header only, C++11 and later.
 *
 *     #include "itll.hpp"                   and, in exactly one file, #define ITLL_IMPLEMENTATION before it
 *
 *     itll::Model model = itll::Model::ridge(32, 1);
 *     model.update(rows, targets);                        std::vector<float>, row by row; as often as there is something to learn
 *     itll::Prediction found = model.predict(queries);    found.means, found.deviations
 *     itll::Model again = itll::Model::from_state(model.save());
 *
 * A model moves and is not copied: copy its state. A model that was moved from may be assigned to or destroyed; all else throws.
 * Errors are exceptions: itll::Error says which result of itll.h it was, std::bad_alloc that there is no memory. A call that throws
 * leaves the model as it was, except load, after which it has forgotten everything. Threads may predict together: each call has
 * a workspace of its own. While one changes a model, no other may use it.
 */

#ifndef ITLL_HPP
#define ITLL_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "itll.h"

namespace itll {

/* A result of itll.h other than success. */
class Error : public std::runtime_error {
public:
    explicit Error(ItllResult result) : std::runtime_error(itll_result_to_string(result)), result_(result) {}
    ItllResult result() const noexcept { return result_; }

private:
    ItllResult result_;
};

inline void check(ItllResult result) {
    if (result != ITLL_SUCCESS) throw Error(result);
}

/* Predictions for rows, (num_rows, num_targets). deviations: empty if the model has none. */
struct Prediction {
    std::vector<float> means, deviations;
};

class Model {
public:
    /* Throws Error: an option is out of range, or there is no such level. */
    explicit Model(const ItllOptions& options, ItllLevel level = itll_best_level()) {
        std::size_t num_bytes = 0;
        check(itll_model_size(&options, &num_bytes));
        memory_.reset(new unsigned char[num_bytes]);
        check(itll_model_init(&options, level, memory_.get(), num_bytes, &model_));
    }

    /* Models with the default options of itll.h. */
    static Model ridge(std::uint32_t num_features, std::uint32_t num_targets) {
        return Model(itll_default_options(ITLL_MODEL_RIDGE, num_features, num_targets));
    }
    static Model pca(std::uint32_t num_features, std::uint32_t num_components) {
        return Model(itll_default_options(ITLL_MODEL_PCA, num_features, num_components));
    }

    /* The model that a state was saved from. Throws Error: the bytes are not a state. */
    static Model from_state(const std::vector<unsigned char>& state, ItllLevel level = itll_best_level()) {
        ItllOptions options;
        check(itll_state_options(state.data(), state.size(), &options));
        Model model(options, level);
        model.load(state);
        return model;
    }

    Model(Model&& other) noexcept : memory_(std::move(other.memory_)), model_(other.model_) { other.model_ = nullptr; }
    Model& operator=(Model&& other) noexcept {
        memory_ = std::move(other.memory_);
        model_ = other.model_;
        if (this != &other) other.model_ = nullptr;
        return *this;
    }
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;
    ~Model() = default;

    const ItllOptions& options() const {
        if (model_ == nullptr) throw Error(ITLL_ERROR_INVALID_VALUE);
        return *itll_model_options(model_);
    }
    std::size_t num_rows() const noexcept { return itll_model_num_rows(model_); }

    /* The model for functions of itll.h; it stays this object's. Null if it was moved from. */
    ItllModel* get() noexcept { return model_; }
    const ItllModel* get() const noexcept { return model_; }

    void reset() { check(itll_reset(model_)); }

    /* Learns from rows, the oldest first. targets: empty for PCA. Throws Error: their numbers of rows are not whole, or differ. */
    void update(const std::vector<float>& rows, const std::vector<float>& targets = std::vector<float>()) {
        const std::size_t count = count_of(rows);
        const bool is_pca = options().kind == ITLL_MODEL_PCA;
        if (targets.size() != (is_pca ? 0 : count * options().num_targets)) throw Error(ITLL_ERROR_INVALID_VALUE);
        check(itll_update(model_, rows.data(), is_pca ? nullptr : targets.data(), count));
    }

    /* Predicts rows; the deviations of a ridge too, if they are wanted. */
    Prediction predict(const std::vector<float>& rows, bool with_deviations = true) const {
        const std::size_t count = count_of(rows), num_values = count * options().num_targets;
        const bool has_deviations = with_deviations && options().kind == ITLL_MODEL_RIDGE;
        Prediction found = {std::vector<float>(num_values), std::vector<float>(has_deviations ? num_values : 0)};
        std::size_t num_bytes = 0;
        check(itll_workspace_size(model_, &num_bytes));
        const std::unique_ptr<unsigned char[]> workspace(new unsigned char[num_bytes]);
        float* deviations = has_deviations ? found.deviations.data() : nullptr;
        check(itll_predict(model_, rows.data(), count, found.means.data(), deviations, workspace.get(), num_bytes));
        return found;
    }

    /* Everything that it has learned. */
    std::vector<unsigned char> save() const {
        std::size_t num_bytes = 0;
        check(itll_state_size(model_, &num_bytes));
        std::vector<unsigned char> state(num_bytes);
        check(itll_save(model_, state.data(), num_bytes));
        return state;
    }

    void load(const std::vector<unsigned char>& state) { check(itll_load(model_, state.data(), state.size())); }

private:
    std::size_t count_of(const std::vector<float>& rows) const {
        if (rows.size() % options().num_features != 0) throw Error(ITLL_ERROR_INVALID_VALUE);
        return rows.size() / options().num_features;
    }

    std::unique_ptr<unsigned char[]> memory_;
    ItllModel* model_ = nullptr;
};

} // namespace itll

#endif /* ITLL_HPP */
