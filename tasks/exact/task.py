"""Programs for an exact function of words: right outputs by issue slots."""

import evo


class Exact(evo.ExactTask):
    pass
