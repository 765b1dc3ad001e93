"""Documents of many kinds, said by the grammars: a list of blocks, each a tag and its text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache

from generator.grammar import HERE, Dice, Grammar, plural

LANGUAGES = ("de", "fr", "es", "ru", "zh", "ja", "ar", "hi")
PEOPLE: dict[str, list[str]] = json.loads((HERE / "people.json").read_text(encoding="utf-8"))
Block = tuple[str, str]


@dataclass(frozen=True)
class Document:
    """A title and blocks. `language` is an ISO 639-1 code, `kind` the maker's name for it."""

    title: str
    blocks: tuple[Block, ...]
    language: str
    kind: str

    @property
    def text(self) -> str:
        """Title and blocks, a blank line between any two."""
        return as_text((("h1", self.title), *self.blocks))


def as_text(blocks: tuple[Block, ...]) -> str:
    """Blocks as plain text."""
    return "\n\n".join(text for _, text in blocks)


@cache
def grammar(code: str) -> Grammar:
    """The grammar of a language, read once."""
    return Grammar(code)


class Writer:
    """One English document: its people, town, topic and main noun stay the same throughout."""

    def __init__(self, dice: Dice, topic: str | None = None) -> None:
        self.dice = dice
        self.words = grammar("en")
        self.topic = topic or dice.pick(list(self.words.topics))
        self.noun = self.one("n")
        self.people = [self.person(), self.person()]
        self.town = self.place()

    def one(self, key: str) -> str:
        """A word of the topic as its list has it."""
        return self.dice.pick(self.words.topics[self.topic][key])

    def person(self) -> str:
        """An invented person."""
        lists = self.words.lists
        return f"{self.dice.pick(lists['first'])} {self.dice.pick(lists['last'])}"

    def place(self) -> str:
        """An invented town."""
        lists = self.words.lists
        return self.dice.pick(lists["townstart"]) + self.dice.pick(lists["townend"])

    def say(self, frame: str, focus: str | None = None) -> str:
        """One sentence."""
        first, second = (name if self.dice.below(3) else name.split()[1] for name in self.people)
        return self.words.say(
            frame,
            self.dice,
            self.topic,
            f=focus or self.noun,
            g=self.noun,
            P=first,
            Q=second,
            T=self.town if self.dice.below(2) else self.place(),
        )

    def paragraph(self, kind: str, low: int = 4, high: int = 6, focus: str | None = None) -> str:
        """Different frames of one kind about one noun."""
        focus = focus or (self.noun if self.dice.below(2) else self.one("n"))
        frames = self.dice.some(self.words.lists[kind], self.dice.between(low, high))
        return " ".join(self.say(frame, focus) for frame in frames)

    def title(self) -> str:
        """A heading."""
        frame = self.dice.pick(
            [
                "the {a} {g} of {T}",
                "{g} and {n.s} {p}",
                "how {w.s} {v} {n.s}",
                "{v.ing} {a} {n.s}",
                "notes on {m} and {n.s}",
                "a {w} in {T}",
                "{n.s}, {m} and the {g}",
                "why {n.s} {i}",
                "{P} and the {a} {g}",
                "the {g} {p}",
            ]
        )
        return self.say(frame)


ORDERS = {
    "article": ["define", "history", "method", "compare", "history", "define", "compare"],
    "blog": ["story", "method", "story", "compare", "story", "define"],
    "news": ["report", "report", "history", "report", "compare", "report"],
    "documentation": ["define", "method", "compare", "history", "define", "compare"],
    "recipe": ["story", "define", "compare", "history"],
}


def prose(dice: Dice, kind: str, topic: str | None = None) -> Document:
    """Give an article, blog post or news story of 200 to 700 words."""
    writer = Writer(dice, topic)
    order = ORDERS[kind]
    blocks: list[Block] = []
    for number in range(dice.between(4, 7)):
        paragraph = order[number % len(order)]
        if kind == "article" and number in {2, 5}:
            blocks.append(("h2", writer.say("{g.s} {p}") if number == 2 else writer.title()))
        blocks.append(("p", writer.paragraph(paragraph)))
    blocks.append(("p", writer.paragraph("closing", 2, 3)))
    return Document(writer.title(), tuple(blocks), "en", kind)


def recipe(dice: Dice) -> Document:
    """Give a recipe: a story, a list of ingredients, steps."""
    writer = Writer(dice, "cooking")
    needs = [writer.say("{num} {u} of {m}, {a} or {a}.") for _ in range(dice.between(4, 6))]
    steps = [writer.say(frame) for frame in dice.some(writer.words.lists["method"], 8)]
    blocks = [
        ("p", writer.paragraph("story")),
        ("h2", writer.say("what you need for {g.s}")),
        *(("li", need) for need in needs),
        ("h2", writer.say("how {w.s} {v} it")),
        *(("p", step) for step in steps),
        ("p", writer.paragraph("compare")),
        ("p", writer.paragraph("closing", 2, 3)),
    ]
    return Document(writer.title(), tuple(blocks), "en", "recipe")


def thread(dice: Dice, topic: str = "carpentry") -> Document:
    """Give a forum thread: a question and answers, each by a name with a line about when."""
    writer = Writer(dice, topic)
    blocks: list[Block] = [("p", writer.paragraph("story", 3, 5) + " What would you do?")]
    for _ in range(dice.between(4, 7)):
        blocks.append(
            (
                "h2",
                writer.say("{P} wrote {when}")
                if dice.below(2)
                else writer.say("{Q} answered {when}"),
            )
        )
        kind = dice.pick(["story", "method", "compare"])
        blocks.append(("p", writer.paragraph(kind, 3, 5)))
    return Document(writer.title(), tuple(blocks), "en", "thread")


@cache
def repository() -> tuple[tuple[str, str], ...]:
    """The files of the small code repository: (path, text)."""
    whole = (HERE / "repository.txt").read_text(encoding="utf-8")
    parts = re.split(r"^=== (.+)\n", whole, flags=re.MULTILINE)
    return tuple(zip(parts[1::2], parts[2::2], strict=True))


def manual(dice: Dice) -> Document:
    """Give a page of documentation with code from the repository in it."""
    writer = Writer(dice, "software")
    sources = [text for path, text in repository() if path.startswith("granary/")]
    functions = re.findall(
        r"^def .+?(?=\n\n\n|\Z)", "\n\n\n".join(sources), re.MULTILINE | re.DOTALL
    )
    short = [code for code in functions if "{" not in code and code.count("\n") < 6]
    blocks: list[Block] = []
    for kind in ORDERS["documentation"][: dice.between(5, 6)]:
        blocks.append(("p", writer.paragraph(kind)))
        if kind == "method":
            blocks.append(("pre", dice.pick(short).rstrip("\n")))
    blocks.append(("p", writer.paragraph("closing", 2, 3)))
    return Document(writer.title(), tuple(blocks), "en", "documentation")


def foreign(dice: Dice, code: str, low: int = 4, high: int = 7) -> Document:
    """Give a page in another language: paragraphs of four to six sentences."""
    words = grammar(code)
    gap = "" if code in {"zh", "ja"} else " "
    frames = words.lists["frame"]
    name = dice.pick(PEOPLE[code])
    blocks = []
    for _ in range(dice.between(low, high)):
        chosen = dice.some(frames, dice.between(4, 6))
        blocks.append(("p", gap.join(words.say(frame, dice, P=name) for frame in chosen)))
    title = words.say(dice.pick(["{o} {place}", "{o}"]), dice)
    if code in {"zh", "ja"}:
        title = title.replace(" ", "")
    return Document(title, tuple(blocks), code, "foreign")


def book(dice: Dice, words_wanted: int) -> Document:
    """Give a long document in chapters, on two to seven topics, at least so many words."""
    topics = dice.some(list(grammar("en").topics), 2 + min(words_wanted // 8000, 5))
    title = Writer(dice, topics[0]).title()
    blocks: list[Block] = []
    words, chapter = 0, 0
    while words < words_wanted:
        chapter += 1
        writer = Writer(dice, topics[chapter % len(topics)])
        blocks.append(("h2", f"Chapter {chapter}. {writer.title()}"))
        for _ in range(min(dice.between(12, 24), (words_wanted - words) // 90 + 1)):
            kind = dice.pick(["story", "story", "history", "define", "compare", "method", "report"])
            blocks.append(("p", writer.paragraph(kind, 5, 8)))
            words += blocks[-1][1].count(" ") + 1
    return Document(title, tuple(blocks), "en", "book")


def spam(dice: Dice) -> Document:
    """Give a page of a spam farm: few words, again and again."""
    goods = dice.some(["watches", "loans", "diplomas", "followers", "sunglasses", "vouchers"], 2)
    pitch = dice.pick(["buy cheap", "best price", "order now", "no risk"])
    line = f"{pitch} {goods[0]} online {pitch} {goods[1]} free shipping {pitch} {goods[0]}"
    blocks = tuple(
        ("p", " ".join([line] * dice.between(4, 9)) + "!") for _ in range(dice.between(4, 8))
    )
    return Document(f"{pitch} {goods[0]} {goods[1]}", blocks, "en", "spam")


def thin(dice: Dice, number: int) -> Document:
    """Give a page that ordinary rules drop: a list of links, a stub, filler, a notice."""
    writer = Writer(dice)
    shape = number % 4
    if shape == 0:
        links = [("li", plural(writer.one("n")).capitalize()) for _ in range(dice.between(20, 40))]
        return Document("Links", tuple(links), "en", "links")
    if shape == 1:
        return Document(writer.title(), (("p", writer.say("{nps} {i}.")),), "en", "stub")
    if shape == 2:
        filler = "Lorem ipsum dolor sit amet. " + writer.paragraph("define")
        return Document(
            writer.title(), (("p", filler), ("p", writer.paragraph("compare"))), "en", "filler"
        )
    bullets = [("li", "• " + writer.say("{v} {n.s}")) for _ in range(dice.between(15, 25))]
    return Document(writer.title(), tuple(bullets), "en", "bullets")
