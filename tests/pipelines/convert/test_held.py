"""Names of repositories, however a row spells them."""

from __future__ import annotations

import pytest

from gristmill.pipelines.convert.held import HeldOut, repository_of


@pytest.mark.parametrize(
    "value",
    [
        "Django/django",
        "django/django/",
        "django/django@main",
        "github.com/django/django",
        "https://www.github.com/django/django.git",
        "https://github.com/django/django.git/",
        "http://github.com:443/django/django/pull/99",
        "https://github.com/django/django#readme",
        "https://github.com/django/django?tab=x",
        "git+https://github.com/django/django.git@v1#egg=django",
        "https://token@github.com/django/django",
        "git@github.com:django/django.git",
        "ssh://git@github.com/django/django",
        "ssh://git@github.com:django/django",
        "github:django/django",
        "https://api.github.com/repos/django/django/issues",
        "https://raw.githubusercontent.com/django/django/main/x.py",
        "django__django",
        "django__django-1234",
        "django__django.abc123.lm_rewrite__x",
        "swesmith/django__django.abc",
        "SWE-Gym/django__django-1",
    ],
)
def test_repository_of_any_spelling_is_owner_and_name(value):
    assert repository_of(value) == "django/django"
    assert HeldOut.of(("swe_bench",), ()).found([None, value]) == "django/django"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("mine/django", "mine/django"),
        ("mrdoob__three.js.abc1234.pr_5", "mrdoob/three.js"),
        ("scikit-learn__scikit-learn-25500", "scikit-learn/scikit-learn"),
        ("vercel/next.js", "vercel/next.js"),
        ("repos/tool/sub", "repos/tool"),
        ("django", "django"),
        ("", ""),
    ],
)
def test_repository_of_others_is_left_as_it_is(value, name):
    assert repository_of(value) == name


def test_held_out_list_may_have_addresses(tmp_path):
    (tmp_path / "held.txt").write_text("https://github.com/Mine/Secret.git\n")
    assert HeldOut.of((), (tmp_path / "held.txt",)).found(["mine/secret"]) == "mine/secret"
