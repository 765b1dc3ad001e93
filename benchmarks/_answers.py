"""Hosts on which answers, values, clauses and teasers recur: more kinds for `_content.content`.

Prose is real (sentences of encyclopaedia articles); the forms around it are made from lists in this
file, so that they show a kind and not a rate on the web.
"""

from __future__ import annotations

STATUS = {
    "Type": ("Bug",),
    "Status": ("Open", "Fixed"),
    "Priority": ("High", "Low"),
}
FACTS = {
    "Diet": ("Carnivore", "Herbivore"),
    "Activity": ("Diurnal", "Nocturnal"),
    "Status": ("Least concern", "Endangered"),
    "Habitat": ("Forest", "Desert", "Wetland"),
}
ITEMS = [
    "1 teaspoon salt", "1/2 teaspoon pepper", "2 tablespoons olive oil", "3 cloves garlic",
    "2 cups flour", "1 cup sugar", "1 teaspoon vanilla", "2 large eggs", "1 cup milk",
    "1/2 cup butter",
]  # fmt: skip
AGREE = ["Strongly agree", "Agree", "Neither agree nor disagree", "Disagree", "Strongly disagree"]


def _said(material, words):
    return " ".join(material.own_prose(words))


def quizzes(material, pages=60):
    """Questions with choices; the last one, the letter of the answer and a heading recur."""
    draw = material.draw
    for i in range(pages):
        lines = [f"Quiz {i}: {draw.choice(material.names)}"]
        for number in range(1, 6):
            lines += [f"{number}. {_said(material, 10)}", _said(material, 5), _said(material, 5)]
            lines += ["D) All of the above", f"Correct answer: {draw.choice('ABCD')}"]
            lines += ["Explanation", _said(material, 30)]
        yield lines


def scales(material, pages=40):
    """Statements, each over the one scale of the host."""
    for i in range(pages):
        questions = [[_said(material, 9), *AGREE] for _ in range(6)]
        yield [f"Survey {i}", _said(material, 40), *(x for q in questions for x in q)]


def facts(material, pages=100):
    """Labels over values of which there are two or three, in the midst of an article."""
    draw = material.draw
    for i in range(pages):
        values = [x for label, some in FACTS.items() for x in (label, draw.choice(some))]
        yield [f"{draw.choice(material.names)} {i}", _said(material, 70), *values,
               _said(material, 40)]  # fmt: skip


def reports(material, pages=100):
    """Reports of faults: labels with values of which there are one or two."""
    draw = material.draw
    for i in range(pages):
        values = [f"{label}: {draw.choice(some)}" for label, some in STATUS.items()]
        yield [f"Issue {i}: {_said(material, 8)}", *values,
               f"Reporter: {draw.choice(material.names)}", _said(material, 70)]  # fmt: skip


def questions(material, pages=60):
    """Questions that all pages have, under answers that few words say."""
    draw = material.draw
    for i in range(pages):
        yield [
            f"Is {draw.choice(material.names)} {i} safe for pets?", draw.choice(("Yes.", "No.")),
            "Why?", _said(material, 50), "Can children use it?",
            draw.choice(("Yes, with care.", "No, never.")), "How long does it last?",
            draw.choice(("Two hours.", "A full day.")), _said(material, 30),
        ]  # fmt: skip


def steps(material, pages=80):
    """Ingredients and steps in lists with marks."""
    draw = material.draw
    for i in range(pages):
        some = sorted(draw.sample(range(len(ITEMS)), 5))
        yield [
            f"{draw.choice(material.names)} cake {i}", _said(material, 30), "Ingredients",
            *(f"- {ITEMS[k]}" for k in some), "", "Method",
            f"1. Preheat the oven to {draw.choice((350, 375))} degrees.",
            "2. Combine the flour and salt in a large bowl.", f"3. {_said(material, 12)}",
            "4. Let cool completely before serving.", "", _said(material, 30),
        ]  # fmt: skip


def clauses(material, pages=30):
    """Contracts: nine of twelve clauses, between parts of their own."""
    draw = material.draw
    bank = [_said(material, 50) for _ in range(12)]
    for i in range(pages):
        yield [f"Agreement {i}", _said(material, 60), *draw.sample(bank, 9), _said(material, 40)]


def warnings(material, pages=100):
    """Leaflets: a warning on half of them, another on two in three."""
    told = (
        "Do not take this medicine if you are pregnant or breastfeeding.",
        "Avoid driving or operating machinery after taking this tablet.",
    )
    for i in range(pages):
        lines = [told[0]] * (i % 2) + [told[1]] * (i % 3 > 0)
        yield [f"Leaflet {i}", _said(material, 50), *lines, _said(material, 30)]


def teasers(material, pages=55):
    """Articles, and lists that name eight of them by title and lead."""
    draw = material.draw
    articles = [
        [f"{_said(material, 6)} {k}", *(_said(material, 40) for _ in range(5))] for k in range(30)
    ]
    yield from articles
    for i in range(pages - len(articles)):
        some = draw.sample(articles, 8)
        yield [f"Articles on subject {i}", *(x for a in some for x in (*a[:2], "Read more"))]


def verse(material, pages=60):
    """Verse in lines of four words, below three lines of a template."""
    draw = material.draw
    for i in range(pages):
        words = _said(material, 130).split()
        who, where, what = (draw.choice(material.names) for _ in range(3))
        yield [
            f"This is the song {what} of the year {1900 + i % 90} by {who}, sung in {where}.",
            f"It was written in {where} by {who} and it has been heard {i * 131} times since then.",
            f"If you know more of {what} than we do then write to the people at {where}.",
            *(" ".join(words[k : k + 4]) for k in range(0, len(words), 4)),
        ]


def lessons(material, pages=40):
    """Lessons with code that is neither fenced nor indented throughout."""
    draw = material.draw
    for i in range(pages):
        name = draw.choice(material.rare)
        yield [
            f"Lesson {i}", _said(material, 60), "", "#include <iostream>", "#include <vector>",
            "using namespace std;", "", "int main() {", f"    vector<int> {name};",
            f"    cout << {name}.size() + {i} << endl;", "    return 0;", "}", "",
            _said(material, 50), "", "import numpy as np", "import pandas as pd",
            f"frame = pd.read_csv('{name}.csv')", "", _said(material, 40),
        ]  # fmt: skip


def cards(material, pages=60):
    """Cards of a collection, below a template: 18 labels over names, dates and rare words."""
    draw = material.draw
    labels = "Title|Maker|Place|Materials|Technique|Form|Subject|Date|Credit|Owner|Department|"
    labels = (labels + "Description|Provenance|Inscription|Condition|Shown|Set|Rights").split("|")
    for i in range(pages):
        lines = [
            f"This is the record {draw.choice(material.names)} of the year {1900 + i % 90}.",
            f"It is kept in {draw.choice(material.names)} and {i * 131} people have seen it there.",
            f"If you know more of {draw.choice(material.names)} than we do then write to us.",
        ]
        for label in labels:
            value = [material.slot(draw, kind) for kind in draw.choices(("name", "rare"), k=3)]
            date = [material.slot(draw, "date")] if draw.random() < 0.2 else []
            lines += [label, " ".join(value + date)]
        yield lines


KINDS = {
    "quizzes": quizzes, "scales of answers": scales, "labels over values": facts,
    "fault reports": reports, "answers to questions": questions, "lists of steps": steps,
    "clauses of contracts": clauses, "warnings": warnings, "articles and teasers": teasers,
    "verse in short lines": verse, "lessons with code": lessons,
    "cards of a collection": cards,
}  # fmt: skip
