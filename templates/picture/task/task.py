"""Abstract pictures: a program maps each point of the picture to a brightness and a colour."""

import numpy as np

import evo

SIZE = 32  # pixels along a side while pictures are scored; drawn ones are larger


class Picture(evo.Task):
    # What a program reads at each point, and what it must compute there.
    inputs = {"x": "f32", "y": "f32", "t": "f32"}
    outputs = {"light": "f32", "hue": "f32"}
    # The archive keeps the best picture for each combination of these two.
    measures = {"detail": (0.0, 0.3), "colourfulness": (0.0, 0.5)}

    def points(self):
        """Points at which programs run while they are scored."""
        return self.picture_points(SIZE, 0.0)

    def score(self, outputs, programs):
        """Score pictures by your own idea of a good one: change this."""
        rgb = self.colours(outputs, SIZE)
        light = rgb.mean(axis=3)
        # Large shapes, in light and in colour: how much blocks of 4 x 4 pixels differ in each.
        blocks = rgb.reshape(-1, SIZE // 4, 4, SIZE // 4, 4, 3).mean(axis=(2, 4))
        grey = blocks.mean(axis=3)
        in_light, in_colour = grey.var(axis=(1, 2)), (blocks - grey[..., None]).var(axis=(1, 2)).mean(axis=1)
        shapes = np.sqrt(np.sqrt(in_light * in_colour))
        across, down = np.abs(np.diff(light, axis=1)), np.abs(np.diff(light, axis=2))
        detail = across.mean(axis=(1, 2)) + down.mean(axis=(1, 2))
        colourfulness = (rgb.max(axis=3) - rgb.min(axis=3)).mean(axis=(1, 2))
        finite = np.isfinite(outputs["light"] + outputs["hue"]).all(axis=1)
        return evo.Scores(np.where(finite, shapes, np.nan), np.stack([detail, colourfulness], axis=1))

    def picture_points(self, size, t):
        """The square from -1 to 1, its rows from the top. An animation goes once round a circle as t goes from 0 to 1."""
        axis = np.linspace(-1.0, 1.0, size, dtype=np.float32)
        return {"x": np.tile(axis, size), "y": np.repeat(-axis, size), "t": np.float32(np.sin(2.0 * np.pi * t))}

    def picture(self, outputs, size):
        """Colours that evo draws: red, green and blue of each pixel, from 0 to 255."""
        return (255.0 * self.colours(outputs, size)).astype(np.uint8)

    def colours(self, outputs, size):
        """(batch_size, size, size, 3) from 0 to 1."""
        light, hue = (np.nan_to_num(outputs[name].astype(np.float64)).clip(-1e6, 1e6) for name in ("light", "hue"))
        light = 0.5 + 0.5 * np.sin(light)
        # Three cosines, a third of a turn apart, go through the colours; dark and bright pixels have less of them.
        turns = hue[..., None] + 2.0 * np.pi * np.array([0.0, 1.0, 2.0]) / 3.0
        rgb = light[..., None] + 1.2 * (light * (1.0 - light))[..., None] * np.cos(turns)
        return rgb.clip(0.0, 1.0).reshape(-1, size, size, 3)
