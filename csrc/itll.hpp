/*
 * itll.hpp - itll.h for C++11: a model owns its memory, and errors are exceptions.
 *
 *     #define ITLL_IMPLEMENTATION           in exactly one C or C++ file
 *     #include "itll.hpp"
 *
 *     itll::Model model(itll_default_options(ITLL_MODEL_RIDGE, 32, 1));
 *     model.update(rows, targets);                                   std::vector<float>, row by row
 *     const itll::Prediction prediction = model.predict(rows);       prediction.means, prediction.deviations
 *     const std::vector<unsigned char> state = model.save();
 *     itll::Model again = itll::Model::from_state(state);
 *
 * Any number of threads may predict from a model; while one changes it, no other may use it.
 */

#ifndef ITLL_HPP
#define ITLL_HPP

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <vector>

#include "itll.h"

namespace itll {

/* A call that failed; what() is the name of its result. */
class Error : public std::runtime_error {
public:
    explicit Error(ItllResult result) : std::runtime_error(itll_result_to_string(result)), result_(result) {}
    ItllResult result() const { return result_; }

private:
    ItllResult result_;
};

inline void check(ItllResult result) {
    if (result != ITLL_SUCCESS) throw Error(result);
}

/* Both (num_rows, num_targets); deviations are empty where the model has none. */
struct Prediction {
    std::vector<float> means;
    std::vector<float> deviations;
};

/* Both of a PCA: unit vectors (num_targets, num_features) and their variances. */
struct Components {
    std::vector<float> vectors;
    std::vector<float> variances;
};

class Model {
public:
    explicit Model(const ItllOptions& options, ItllLevel level = itll_best_level()) : model_(nullptr) {
        std::size_t num_bytes = 0;
        check(itll_model_size(&options, &num_bytes));
        memory_.reset(new unsigned char[num_bytes]);
        check(itll_model_init(&options, level, memory_.get(), num_bytes, &model_));
    }

    static Model from_state(const std::vector<unsigned char>& state, ItllLevel level = itll_best_level()) {
        ItllOptions options;
        check(itll_state_options(state.data(), state.size(), &options));
        Model model(options, level);
        model.load(state);
        return model;
    }

    const ItllOptions& options() const { return *itll_model_options(model_); }
    std::size_t num_rows() const { return itll_model_num_rows(model_); }
    void reset() { check(itll_reset(model_)); }

    void update(const float* rows, const float* targets, std::size_t num_rows) {
        check(itll_update(model_, rows, targets, num_rows));
    }

    /* `targets` is empty for PCA. Throws std::invalid_argument if the lengths do not match the options. */
    void update(const std::vector<float>& rows, const std::vector<float>& targets) {
        const std::size_t num_rows = count(rows), num_targets = options().kind == ITLL_MODEL_PCA ? 0 : options().num_targets;
        if (targets.size() != num_rows * num_targets) throw std::invalid_argument("targets: not as many as the rows need");
        update(rows.data(), targets.data(), num_rows);
    }

    /* Deviations may be NULL. */
    void predict(const float* rows, std::size_t num_rows, float* means, float* deviations) const {
        std::size_t num_bytes = 0;
        check(itll_workspace_size(model_, &num_bytes));
        std::unique_ptr<unsigned char[]> workspace(new unsigned char[num_bytes]);
        check(itll_predict(model_, rows, num_rows, means, deviations, workspace.get(), num_bytes));
    }

    Prediction predict(const std::vector<float>& rows) const {
        const bool has_deviations = options().kind != ITLL_MODEL_MLP && options().kind != ITLL_MODEL_PCA;
        Prediction prediction;
        prediction.means.resize(count(rows) * options().num_targets);
        if (has_deviations) prediction.deviations.resize(prediction.means.size());
        predict(rows.data(), count(rows), prediction.means.data(), has_deviations ? prediction.deviations.data() : nullptr);
        return prediction;
    }

    Components components() const {
        Components components;
        components.vectors.resize(static_cast<std::size_t>(options().num_targets) * options().num_features);
        components.variances.resize(options().num_targets);
        check(itll_components(model_, components.vectors.data(), components.variances.data()));
        return components;
    }

    std::vector<unsigned char> save() const {
        std::size_t num_bytes = 0;
        check(itll_state_size(model_, &num_bytes));
        std::vector<unsigned char> state(num_bytes);
        check(itll_save(model_, state.data(), num_bytes));
        return state;
    }

    void load(const std::vector<unsigned char>& state) { check(itll_load(model_, state.data(), state.size())); }

private:
    std::size_t count(const std::vector<float>& rows) const {
        if (rows.size() % options().num_features != 0) throw std::invalid_argument("rows: not a multiple of num_features");
        return rows.size() / options().num_features;
    }

    std::unique_ptr<unsigned char[]> memory_;
    ItllModel* model_; /* in that memory, which moves with it */
};

} // namespace itll

#endif /* ITLL_HPP */
