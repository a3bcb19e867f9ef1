"""The forms that are timed beside one another compute the same."""

import torch

from bench import steadiness
from rope_lib import cos_sin, inverse_frequencies


def test_forms_of_the_steadiness_experiment_are_one_rotation(generator):
    x = torch.randn(1, 3, 5, 8, generator=generator)
    cos, sin = cos_sin(torch.arange(5), inverse_frequencies(8))
    first, *others = (form(x, cos, sin) for form in steadiness.FORMS.values())
    for other in others:
        torch.testing.assert_close(other, first)
