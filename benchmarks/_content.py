"""Hosts whose content recurs: ingredients, code, refrains, scales, labels, listings, footers.

What `_negatives.py` has is prose that looks alike; here the lines themselves stand on many pages of
a host and are content all the same. Code, articles and texts in scripts without spaces are real;
recipes, songs, questionnaires and spec sheets are drawn by a seed from lists in this file, because
no real set of them has lines (texts of `c-register-web` are one line each). `_answers.py` has more.
"""

from __future__ import annotations

from dataclasses import replace

import _answers as answers
import _templates as inject
from _texts import DATA, rows_of

HEAD = "Home · Index · Search · About this project"
FOOT = "All rights reserved. Read our privacy policy and terms of use before you copy this page."
INGREDIENTS = (
    "salt|black pepper|olive oil|butter|sugar|plain flour|eggs|milk|garlic|onion|water|lemon juice|"
    "vegetable oil|baking powder|vanilla extract|double cream|brown sugar|parsley|tomatoes|carrots|"
    "potatoes|chicken stock|cinnamon|soy sauce|ginger|celery|honey|white wine|thyme|bay leaves|"
    "parmesan|mozzarella|red wine vinegar|cumin|paprika|chilli flakes|coriander|basil|oregano|rice|"
    "mushrooms|spinach|bacon|beef mince|chicken thighs|salmon fillets|prawns|chickpeas|lentils|"
    "coconut milk|lime juice|yoghurt|mustard|mayonnaise|breadcrumbs|almonds|walnuts|raisins|cocoa|"
    "dark chocolate|oats|apples|bananas|strawberries|nutmeg|cloves|star anise|saffron|leeks|fennel|"
    "aubergine|courgettes|peppers|pumpkin|sesame seeds|fish sauce|tofu|noodles|kale|beetroot"
)
AMOUNTS = "1 tsp|1/2 tsp|2 tbsp|1 tbsp|100 g|200 g|1 cup|2 cups|1|2|3|500 ml|a pinch of"
STEPS = (
    "Preheat the oven to 180C.|Season to taste with salt and pepper.|Serve immediately.|"
    "Set aside to cool.|Mix well.|Bring a large pan of water to the boil.|Drain well and set aside."
    "|Heat the oil in a large frying pan.|Add the garlic and cook for one minute.|Stir well.|"
    "Remove from the heat and leave to cool.|Line a baking tray with baking paper.|"
    "Cover and simmer for 20 minutes.|Sift the flour into a large bowl.|Whisk the eggs and sugar."
    "|Cook for five minutes, until soft.|Leave to rest for ten minutes.|Fold in the flour."
    "|Reduce the heat and simmer.|Garnish with parsley and serve.|Chill for at least an hour."
    "|Grease and line a 20cm cake tin.|Bake for 30 minutes, until golden.|Transfer to a wire rack."
)
REFRAINS = [
    r.split("|")
    for r in (
        "And it's home, boys, home|Home I want to be|Home for a while in my own country",
        "Way, hey, up she rises|Way, hey, up she rises|Early in the morning",
        "Hallelujah, hallelujah|Glory, hallelujah",
        "For his mercy endures for ever",
        "Row the boat ashore, hallelujah",
        "With a hey and a ho and a hey nonny no",
        "Fol de rol de riddle|Fol de rol de ray",
        "Oh, the holly and the ivy|When they are both full grown",
    )
]
SCALES = [
    s.split("|")
    for s in (
        "Strongly disagree|Disagree|Neither agree nor disagree|Agree|Strongly agree",
        "Never|Rarely|Sometimes|Often|Always",
        "Not at all|A little|Somewhat|Very much",
        "Yes|No|Do not know",
    )
]
VALUES = {
    "Weight": "3 kg|2 kg|1.5 kg|12 kg|800 g|450 g",
    "Colour": "black|white|red|silver|blue|grey",
    "Material": "steel|aluminium|plastic|glass|oak|cotton",
    "Voltage": "230 V|110 V|12 V|24 V",
    "Guarantee": "1 year|2 years|3 years|5 years",
    "Made in": "Germany|China|Italy|Poland|Japan|Portugal",
    "Energy class": "A|B|C|D|E",
    "Capacity": "1 l|2 l|5 l|30 l|0.5 l",
    "Noise": "40 dB|45 dB|52 dB|60 dB",
    "Delivery": "one day|two days|a week|two weeks",
}
WITHOUT_SPACES = (
    "bod_Tibt", "khm_Khmr", "lao_Laoo", "mya_Mymr", "shn_Mymr", "tha_Thai", "zho_Hans", "jpn_Jpan"
)  # fmt: skip
UNKNOWN = {  # languages of which the table of common words has none
    "German": "de", "Polish": "pl", "Russian": "ru", "Hindi": "hi", "Finnish": "fi",
    "Turkish": "tr", "Korean": "ko", "Czech": "cs", "Hungarian": "hu", "Greek": "el",
}  # fmt: skip


def _zipf(draw, values, number):
    """Distinct values, early ones oftener, in no order."""
    weights = [1 / (i + 2) for i in range(len(values))]
    found = dict.fromkeys(draw.choices(values, weights, k=3 * number))
    some = list(found)[:number]
    draw.shuffle(some)
    return some


def recipes(material, pages=400):
    """A few words on the dish, ingredients, steps of which about half are the page's own."""
    draw, amounts, names = material.draw, AMOUNTS.split("|"), INGREDIENTS.split("|")
    for _ in range(pages):
        some = _zipf(draw, names, draw.randrange(6, 13))
        if draw.random() < 0.5:  # in the order in which cooks list them
            some.sort(key=names.index)
        usual = {x: amounts[sum(map(ord, x)) % len(amounts)] for x in some}
        lines = [f"{draw.choice(amounts) if draw.random() < 0.4 else usual[x]} {x}" for x in some]
        steps = _zipf(draw, STEPS.split("|"), draw.randrange(3, 7))
        own = [" ".join(material.own_prose(draw.randrange(8, 16))) for _ in steps]
        both = [*steps, *own]
        draw.shuffle(both)
        about = material.own_prose(draw.randrange(20, 70))
        title = f"{draw.choice(some)} and {draw.choice(some)} {draw.choice(material.names)}"
        facts = [f"Serves {draw.randrange(1, 9)}", f"Cooking time: {5 * draw.randrange(2, 20)} min"]
        yield [title.capitalize(), " ".join(about), *facts, "Ingredients", *lines, "Method", *both]


def code(material, pages=400):
    """Real files of repositories as they stand, on one host and without fences."""
    rows = rows_of(DATA / "e-code-repos" / "develop.jsonl.gz")
    known = {"Python", "JavaScript", "Go", "C", "Rust", "Java", "TypeScript", "C++"}
    some = [r for r in rows if r["language"] in known and 300 < len(r["text"]) < 30_000]
    material.draw.shuffle(some)
    for row in some[:pages]:
        yield [row["path"], *row["text"].split("\n")]


def songs(material, pages=300):
    """Stanzas of the page's own; every third song has a refrain that other songs have."""
    draw = material.draw
    for _ in range(pages):
        shared = draw.random() < 0.35
        refrain = draw.choice(REFRAINS) if shared else material.own_prose(draw.randrange(8, 16))
        lines = [draw.choice(material.names)]
        for _ in range(draw.randrange(3, 6)):
            words = " ".join(material.own_prose(28)).split()
            lines += [" ".join(words[i : i + 7]) for i in range(0, len(words), 7)]
            lines += ["Chorus", *refrain]
        yield [*lines, *(["Amen"] if draw.random() < 0.3 else [])]


def questionnaires(material, pages=150):
    """Questions, of which half stand on other forms too, each over the scale of the form."""
    draw = material.draw
    bank = [" ".join(material.own_prose(11)) for _ in range(60)]
    for i in range(pages):
        lines = [f"Form {i}: {draw.choice(material.names)}"]
        scale = draw.choice(SCALES)
        for _ in range(draw.randrange(6, 14)):
            own = " ".join(material.own_prose(11))
            lines += [draw.choice(bank) if draw.random() < 0.5 else own, *scale]
        yield lines


def specs(material, pages=300, *, inline=True):
    """Label and value, in one line or in two, below a description."""
    draw = material.draw
    for i in range(pages):
        lines = [
            f"{draw.choice(material.names)} {i}",
            " ".join(material.own_prose(draw.randrange(15, 70))),
        ]
        for label, values in VALUES.items():
            if draw.random() < 0.8:
                value = draw.choice(values.split("|"))
                lines += [f"{label}: {value}"] if inline else [label, value]
        yield lines


def listings(material, pages=200):
    """Lines of one form around real descriptions of up to 20 words, several on a page."""
    draw = material.draw
    for i in range(pages):
        lines = [f"Sale {i} of the house in {draw.choice(material.names)}"]
        for _ in range(draw.randrange(7, 12)):
            said = " ".join(material.own_prose(draw.randrange(12, 19)))
            lines.append(
                f"Lot number {draw.randrange(9999)} of the sale on view: {said} Ask for it at the "
                f"desk of the house before {draw.randrange(1, 29)} May of the year"
            )
        yield lines


def articles(material, pages=60):
    """Short articles and verse, each on a host of its own, over one footer with slots."""
    draw = material.draw
    for i in range(pages):
        words = " ".join(material.own_prose(draw.randrange(40, 150))).split()
        width = draw.choice((4, 12, 200))
        lines = [" ".join(words[k : k + width]) for k in range(0, len(words), width)]
        lines.append(
            f"This site is run by {draw.choice(material.names)} and was last changed on day "
            f"{draw.randrange(365)} of the year. Write to us at box {draw.randrange(9999)} or call "
            f"{draw.randrange(10**6)} from nine to five. All that you read here may be copied."
        )
        yield [f"Notes {i}", *lines]


def without_spaces(material, language):
    """Real pages in one language, each under a line of set words with a number."""
    name = "f-multilingual-hplt"
    for file in ("develop_unlabelled.jsonl.gz", "human_labelled.jsonl.gz"):
        for row in rows_of(DATA / name / file):
            if row.get("lang_claimed") == language:
                number = material.draw.randrange(10**5)
                head = (
                    f"Page {number} of the pages in this language, read {number % 97} times by "
                    f"{number % 89} people on day {number % 365} of the year"
                )
                yield [head, *row["text"].split("\n")]


def framed(material, language, pages=40):
    """Lines of an English form around 12 to 18 words of running text in another language."""
    draw = material.draw
    rows = rows_of(DATA / "f-multilingual-lingua" / "sentences.jsonl.gz")
    said = [r["text"] for r in rows if r["lang"] == UNKNOWN[language]]
    draw.shuffle(said)
    words = " ".join(said).split()
    for i in range(pages):
        lines = [f"Sale {i} of the house in {draw.choice(material.names)}"]
        for _ in range(7):
            size = draw.randrange(12, 19)
            told, words = " ".join(words[:size]), words[size:]
            lines.append(
                f"Lot number {draw.randrange(9999)} of the sale on view: {told} Ask for it at the "
                f"desk of the house before {draw.randrange(1, 29)} May of the year"
            )
        if words:  # no sentence twice
            yield lines


def kinds(seed):
    """Kind -> pages, each a list of its lines."""
    material = inject.Material(DATA, seed)
    found = {
        "recipes": recipes(material),
        "code without fences": code(material),
        "songs with refrains": songs(material),
        "questionnaires": questionnaires(material),
        "spec sheets, a line": specs(material),
        "spec sheets, two lines": specs(material, inline=False),
        "listings": listings(material),
        "articles over a footer": articles(material),
    }
    for kind, made in answers.KINDS.items():
        found[kind] = made(material)
    for language in WITHOUT_SPACES:
        found[language] = without_spaces(material, language)
    for language in UNKNOWN:
        found[f"{language} in English"] = framed(material, language)
    return {kind: list(pages) for kind, pages in found.items()}


def host_of(kind, i):
    return f"h{i}.example" if kind == "articles over a footer" else "content.example"


def pages_of(kind, found):
    """The pages of one kind, under a header and over a footer; articles have a host each."""
    return [
        inject.Page(
            "\n".join(lines if kind == "articles over a footer" else [HEAD, *lines, FOOT]),
            f"https://{host_of(kind, i)}/{i}",
            host_of(kind, i),
            kind=kind,
        )
        for i, lines in enumerate(found)
    ]


def letters(text):
    """How many characters are no white space."""
    return sum(map(len, text.split()))


def content(seeds=(1, 2, 3), shares=("0.25", "0.05")):
    """Content that recurs: pages dropped and characters of it lost, by kind, seed, `line_share`."""
    print(f"{'kind':24} {'pages':>6}" + "".join(f"   seed {x}: dropped   lost" for x in seeds))
    rows = {}
    for seed in seeds:
        for kind, found in kinds(seed).items():
            pages, gone, all_, left = lost(kind, found)
            rows.setdefault(kind, [pages]).append(f"{gone:18} {1 - left / all_:7.3%}")
    for kind, (pages, *told) in rows.items():
        print(f"{kind:24} {pages:6}{''.join(told)}")
    for share in shares:
        stage = replace(inject.STAGE, line_share=share)
        told = {kind: lost(kind, found, stage) for kind, found in kinds(seeds[0]).items()}
        each = {kind: 1 - left / all_ for kind, (_, _, all_, left) in told.items()}
        print(f"line_share {share}, seed {seeds[0]}: "
              + ", ".join(f"{k} {v:.1%}" for k, v in each.items() if v >= 0.001))  # fmt: skip


def lost(kind, found, stage=inject.STAGE):
    """Pages, pages dropped, characters of content and characters of it that are left."""
    pages = pages_of(kind, found)
    table = inject.run_stage(stage, pages)
    _, gone = inject.marked(table, len(pages))
    texts = inject.cut(stage, pages, table)
    left = [
        0 if g else letters(text.removeprefix(HEAD).removesuffix(FOOT))
        for text, g in zip(texts, gone, strict=True)
    ]
    return len(pages), int(gone.sum()), sum(letters("\n".join(x)) for x in found), sum(left)
