/*
 * Tests of itll.hpp: who owns a model's memory, which errors are exceptions, and predictions against closed forms of Gaussian
 * processes and principal components. Sanitizers see what is leaked or freed twice.
 */

#define ITLL_IMPLEMENTATION
#include "itll.hpp"
#include "itll.hpp"

#include <cmath>
#include <type_traits>

#include "check.h"

static_assert(!std::is_copy_constructible<itll::Model>::value && !std::is_copy_assignable<itll::Model>::value, "move-only");
static_assert(std::is_nothrow_move_constructible<itll::Model>::value, "moves in containers");
static_assert(std::is_nothrow_move_assignable<itll::Model>::value, "moves in containers");

static const std::vector<float> rows = {-1.0f, 1.0f}, targets = {-1.0f, 1.0f};

static itll::Model small_ridge() {
    ItllOptions options = itll_default_options(ITLL_MODEL_RIDGE, 1, 1);
    options.window = 4;
    return itll::Model(options);
}

template <typename Call> static ItllResult result_of(Call call) {
    try {
        call();
    } catch (const itll::Error& error) {
        CHECK_TEXT(error.what(), itll_result_to_string(error.result()));
        return error.result();
    }
    return ITLL_SUCCESS;
}

/* With k = exp(-2) between the rows and noise n, the odd targets are an eigenvector of the kernel's matrix: 1 - k + n. */
TEST(test_a_ridge_is_the_gaussian_process) {
    const double n = 0.1, k = std::exp(-2.0), odd = 1.0 - k, even = 1.0 + k;
    const double variance = 1.0 - even * even / (2.0 * (even + n)) - odd * odd / (2.0 * (odd + n)) + n;
    itll::Model model = small_ridge();
    model.update(rows, targets);
    const itll::Prediction found = model.predict(rows);
    CHECK(std::fabs(static_cast<double>(found.means[1]) - odd / (odd + n)) < 0.05);
    CHECK(std::fabs(static_cast<double>(found.means[0]) + odd / (odd + n)) < 0.05);
    CHECK(std::fabs(static_cast<double>(found.deviations[1]) - std::sqrt(variance / (odd + n))) < 0.05);
    CHECK(model.predict(rows, false).deviations.empty() && model.predict({}).means.empty());
}

/* Of a cross with arms of 3 and 1 the axes are the components. */
TEST(test_components_are_the_axes_of_a_cross) {
    itll::Model model = itll::Model::pca(2, 2);
    model.update({3.0f, 0.0f, -3.0f, 0.0f, 0.0f, 1.0f, 0.0f, -1.0f});
    const itll::Prediction found = model.predict({3.0f, 0.5f, -1.0f, 1.0f});
    static const double expected[] = {3.0, 0.5, -1.0, 1.0};
    for (std::size_t i = 0; i < 4; i++) CHECK(std::fabs(static_cast<double>(found.means[i]) - expected[i]) < 1e-6);
    CHECK(found.deviations.empty());
    CHECK_UINT(model.num_rows(), 4);
}

TEST(test_a_moved_model_goes_on_where_it_was_and_the_other_throws) {
    itll::Model model = small_ridge(), other = itll::Model::pca(3, 1);
    model.update(rows, targets);
    const std::vector<float> expected = model.predict(rows).means;
    std::vector<itll::Model> models;
    models.push_back(std::move(model));
    models.push_back(std::move(other));
    other = std::move(models[0]);
    CHECK(other.predict(rows).means == expected && other.options().window == 4);
    CHECK(model.get() == nullptr && model.num_rows() == 0);
    CHECK_UINT(result_of([&] { model.update(rows, targets); }), ITLL_ERROR_INVALID_VALUE);
    CHECK_UINT(result_of([&] { (void)model.predict(rows); }), ITLL_ERROR_INVALID_VALUE);
    CHECK_UINT(result_of([&] { (void)model.save(); }), ITLL_ERROR_INVALID_VALUE);
    model = std::move(other);
    CHECK(model.predict(rows).means == expected);
}

TEST(test_a_state_makes_an_equal_model) {
    itll::Model model = small_ridge();
    model.update(rows, targets);
    const itll::Model again = itll::Model::from_state(model.save(), ITLL_LEVEL_BASELINE);
    CHECK(again.predict(rows).deviations == model.predict(rows).deviations && again.save() == model.save());
    model.reset();
    CHECK_UINT(model.num_rows(), 0);
    model.load(again.save());
    CHECK_UINT(model.num_rows(), 2);
}

TEST(test_errors_are_exceptions_and_change_nothing) {
    itll::Model model = small_ridge(), components = itll::Model::pca(1, 1);
    model.update(rows, targets);
    CHECK_UINT(result_of([] { (void)itll::Model::ridge(0, 1); }), ITLL_ERROR_INVALID_VALUE);
    CHECK_UINT(
        result_of([] { (void)itll::Model(itll_default_options(ITLL_MODEL_PCA, 1, 1), ITLL_LEVEL_NUM_ENUMS); }),
        ITLL_ERROR_NO_LEVEL
    );
    CHECK_UINT(result_of([&] { model.update(rows); }), ITLL_ERROR_INVALID_VALUE);
    CHECK_UINT(result_of([&] { components.update(rows, targets); }), ITLL_ERROR_INVALID_VALUE);
    CHECK_UINT(result_of([] { itll::Model::pca(2, 1).update({1.0f}); }), ITLL_ERROR_INVALID_VALUE);
    CHECK_UINT(result_of([] { (void)itll::Model::from_state({1, 2, 3}); }), ITLL_ERROR_INVALID_STATE);
    CHECK_UINT(model.num_rows(), 2);
    CHECK_UINT(result_of([&] { model.load(components.save()); }), ITLL_ERROR_OTHER_OPTIONS);
    CHECK_UINT(model.num_rows(), 0);
}
