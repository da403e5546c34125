"""evo.errors: one exception for a user's mistake, that is nothing else by accident."""

import evo
from evo.errors import UserError


def test_a_user_error_is_public_and_is_caught_by_no_narrower_name():
    assert evo.UserError is UserError
    assert UserError.__bases__ == (Exception,)
    assert str(UserError("config.yaml: key 'seed' is missing")) == "config.yaml: key 'seed' is missing"
