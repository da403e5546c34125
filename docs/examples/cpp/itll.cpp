/*
 * A model that learns from rows as they come, predicts those to come, and goes on from a saved state.
 *
 *     g++ -std=c++11 -I csrc docs/examples/cpp/itll.cpp -o itll && ./itll
 */
#define ITLL_IMPLEMENTATION
#include "itll.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
    ItllOptions options = itll_default_options(ITLL_MODEL_RIDGE, 2, 1);
    options.window = 200;
    options.num_units = 64;
    options.noise = 0.01f;
    itll::Model model(options);

    const std::size_t batch_size = 50;
    std::vector<float> rows(2 * batch_size), targets(batch_size);
    for (std::size_t batch = 0; batch < 8; batch++) {
        for (std::size_t i = 0; i < batch_size; i++) {
            const std::size_t number = batch * batch_size + i;
            rows[2 * i] = static_cast<float>(number * 7919 % 1000) / 500.0f - 1.0f;
            rows[2 * i + 1] = static_cast<float>(number * 104729 % 1000) / 500.0f - 1.0f;
            targets[i] = rows[2 * i] * rows[2 * i + 1];
        }
        /* First predict, then learn: the error is that of rows not yet learned from. */
        const itll::Prediction prediction = model.predict(rows);
        double error = 0.0;
        for (std::size_t i = 0; i < batch_size; i++) error += static_cast<double>(std::fabs(prediction.means[i] - targets[i]));
        std::printf("%3zu rows: mean error %.4f\n", model.num_rows(), error / static_cast<double>(batch_size));
        model.update(rows, targets);
    }

    const std::vector<unsigned char> state = model.save();
    const itll::Model restored = itll::Model::from_state(state, ITLL_LEVEL_BASELINE);
    const itll::Prediction prediction = model.predict(rows);
    const double shown[] = {
        static_cast<double>(targets[0]),
        static_cast<double>(rows[0]),
        static_cast<double>(rows[1]),
        static_cast<double>(prediction.means[0]),
        static_cast<double>(prediction.deviations[0])
    };
    std::printf("%.4f at (%.3f, %.3f): %.4f +- %.4f\n", shown[0], shown[1], shown[2], shown[3], shown[4]);
    const bool is_same = restored.predict(rows).means == prediction.means;
    std::printf("restored from %zu bytes: %s\n", state.size(), is_same ? "the same bits" : "other bits");
    return 0;
}
