"""Word tasks and prompts: nothing is chosen on what is tested, and what an experiment changes is exactly what it
says.
"""

import collections

import numpy as np
import pytest

import tiny

pytest.importorskip("torch", reason="the extra `llm` is not installed")

from iclab.errors import InputError
from iclab.language import words
from iclab.language.loading import load
from iclab.language.prompts import deranged, draw
from iclab.language.study.asking import Bench, tasks, with_demonstrations
from iclab.language.study.geometry import axes_of, cosine
from iclab.language.study.labels import TRIGGER, Outliers, label_tasks, labelled
from iclab.language.study.settings import STEP_TESTS, WORD_TESTS, Settings
from iclab.language.study.steps import erroneous

NAMES = (*words.WORD_TASKS, *words.LABEL_TASKS, *words.TWO_STEP_TASKS)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return Bench(load(str(tiny.write(tmp_path_factory.mktemp("model")))), Settings(), ":")


def text(one, prompt):
    names = {number: piece for piece, number in tiny.vocabulary().items()}
    return "".join(names[token] for token in prompt.tokens)


@pytest.mark.parametrize("name", NAMES)
def test_every_task_has_enough_examples_each_query_once(name):
    found = words.examples(name)
    assert len(found) >= 40 and len({example[0] for example in found}) == len(found)
    length = 3 if name in words.TWO_STEP_TASKS else 2
    assert all(len(example) == length and all(word == word.strip() != "" for word in example) for example in found)
    assert all(example[0] != example[-1] for example in found)


def test_labels_are_balanced_and_there_are_two():
    for name in words.LABEL_TASKS:
        counts = collections.Counter(example[-1] for example in words.examples(name))
        assert len(counts) == 2 and len(set(counts.values())) == 1


def test_held_out_and_test_examples_are_apart_and_the_split_stays():
    task = words.split("antonym", lambda word: True, 28)
    assert not set(task.held_out) & set(task.test) and len(task.test) == 28
    assert set(task.held_out) | set(task.test) == set(words.examples("antonym"))
    assert words.split("antonym", lambda word: True, 20).test == task.test[:20]
    with pytest.raises(InputError, match="antonym has 0 examples whose answers are single tokens of this model"):
        words.split("antonym", lambda word: False, 20)
    with pytest.raises(InputError, match="Did you mean 'antonym'"):
        words.examples("antonyms")


def test_demonstrations_are_held_out_examples_other_than_the_query(one):
    for task in tasks(one, words.WORD_TASKS, WORD_TESTS):
        lines = [text(one, p).split("\n")[1:] for p in with_demonstrations(one, task, task.test[:4], "test")]
        allowed = {f" {query}: {answer}" for query, answer in task.held_out}
        for shown, query in zip(lines, task.test, strict=False):
            assert len(shown) == 9 and set(shown[:-1]) <= allowed and shown[-1] == f" {query[0]}:"


def test_shuffled_answers_are_the_same_demonstrations_with_nobodys_own_answer(one):
    task = tasks(one, ("antonym",), WORD_TESTS)[0]
    plain, mixed = (
        [text(one, p).split("\n")[1:-1] for p in with_demonstrations(one, task, task.test[:6], "test", change)]
        for change in (None, deranged)
    )
    for a, b in zip(plain, mixed, strict=True):
        assert [line.split(":")[0] for line in a] == [line.split(":")[0] for line in b]
        assert sorted(line.split(":")[1] for line in a) == sorted(line.split(":")[1] for line in b) and a != b
    random = np.random.default_rng(0)
    pool = [(str(number), str(-number)) for number in range(9)]
    assert all(a != b for _ in range(20) for a, b in zip(pool, deranged(random, pool), strict=True))


@pytest.mark.parametrize("name", words.LABEL_TASKS)
@pytest.mark.parametrize("rule", ["flip", "target", "random"])
@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.75])
def test_outliers_are_so_many_marked_with_the_label_their_rule_says(one, name, rule, fraction):
    task = next(task for task in label_tasks() if task.name == name)
    clean = labelled(one, task, task.test[:4], "outliers")
    changed = labelled(one, task, task.test[:4], "outliers", Outliers(fraction, rule))
    for before, after in zip(clean, changed, strict=True):
        a, b = text(one, before.prompt).split("\n")[1:], text(one, after.prompt).split("\n")[1:]
        marked = np.array([TRIGGER in line for line in b])
        assert marked.sum() == 12 * fraction and a[-1] == b[-1] and before.choices == after.choices
        assert [line.replace(f" {TRIGGER}", "").split(":")[0] for line in b] == [line.split(":")[0] for line in a]
        labels = [[line.split(":")[1] for line in lines[:-1]] for lines in (a, b)]
        assert collections.Counter(labels[0]).most_common(1)[0][1] == 6
        moved = np.array([x != y for x, y in zip(*labels, strict=True)])
        assert not (moved & ~marked[:-1]).any()
        if rule == "flip":
            assert (moved == marked[:-1]).all()
        if rule == "target":
            assert len({label for label, out in zip(labels[1], marked, strict=False) if out}) <= 1
        right = next(piece for piece, number in tiny.vocabulary().items() if number == after.choices[0])
        assert after.same == tuple(label == right for label in labels[1])
    if fraction == 0:
        assert changed == clean


def test_outliers_sit_where_they_are_put_and_may_be_unmarked(one):
    task = label_tasks()[0]

    def places(**more):
        (item,) = labelled(one, task, task.test[:1], "outliers", Outliers(0.5, "flip", **more))
        return [TRIGGER in line for line in text(one, item.prompt).split("\n")[1:-1]]

    assert places(placement="farthest") == [True] * 6 + [False] * 6
    assert places(placement="closest") == [False] * 6 + [True] * 6
    assert not any(places(marked=False))


def test_labels_without_a_meaning_change_sides(one):
    task = label_tasks()[1]
    sides = {
        (query[-1], item.choices[0])
        for query, item in zip(task.test, labelled(one, task, task.test[:20], "x"), strict=False)
    }
    assert len(sides) == 4


def test_shuffled_labels_keep_the_demonstrations_and_the_balance(one):
    task = label_tasks()[0]
    plain = labelled(one, task, task.test[:8], "attention")
    mixed = labelled(one, task, task.test[:8], "attention", shuffled=True)
    for a, b in zip(plain, mixed, strict=True):
        assert sum(a.same) == sum(b.same) == 6
    assert sum(a.same != b.same for a, b in zip(plain, mixed, strict=True)) >= 7


def test_erroneous_steps_are_so_many_and_no_demonstration_has_the_querys_own_step(one):
    for task in tasks(one, words.TWO_STEP_TASKS, STEP_TESTS):
        truth = {example[0]: example for example in words.examples(task.name)}
        follows = {(example[1], example[2]) for example in words.examples(task.name)}
        for number, query in enumerate(task.test[:5]):
            shown = {f: erroneous(words.generator("s", number), task.held_out, query, 8, f) for f in (0.0, 0.25, 0.5)}
            assert [line[0] for line in shown[0.0]] == [line[0] for line in shown[0.5]]
            for fraction, lines in shown.items():
                wrong = [line != truth[line[0]] for line in lines]
                assert sum(wrong) == 8 * fraction and all(line[1] != query[1] and line[1:] in follows for line in lines)
                assert all(line[2] != truth[line[0]][2] for line, out in zip(lines, wrong, strict=True) if out)


def test_draws_do_not_repeat_and_leave_out_what_shares_the_querys_word():
    pool = words.examples("city-country-language")
    for number in range(10):
        shown = draw(np.random.default_rng(number), pool, 12, pool[number], distinct=1)
        assert len(set(shown)) == 12 and all(example[1] != pool[number][1] for example in shown)


def test_the_axes_of_the_figure_are_along_the_vector_and_across_it():
    random = np.random.default_rng(0)
    o, x = random.normal(size=12), random.normal(size=(9, 12))
    frame = axes_of(o, x)
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(frame @ o, [np.linalg.norm(o), 0, 0], atol=1e-12)
    y = x + o  # planted: then the answers lie straight behind the queries
    np.testing.assert_allclose((y - x) @ frame.T, np.tile([np.linalg.norm(o), 0, 0], (9, 1)), atol=1e-12)
    np.testing.assert_allclose(cosine(y - x, o), 1)
