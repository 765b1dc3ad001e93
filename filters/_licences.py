"""One name for a licence from any spelling, and what a policy's pattern takes.

A statement is folded first: percent-encoding and character references decoded, full width and
accents gone, one space for each run of what is no letter or digit (dashes of any kind, slashes,
tabs). Restrictions then count wherever they stand in it, by code or by name in eleven languages:
one that is passed over would make a licence freer than it is. A word that is neither part of a
Creative Commons licence nor known to restrict nothing leaves the statement as it is stated.
"""

# ruff: noqa: RUF001 - look-alike letters are those of the script

from __future__ import annotations

import re
import unicodedata
from fnmatch import fnmatchcase
from functools import lru_cache
from html import unescape
from urllib.parse import unquote

WIDTH = 32  # bytes of a licence's name
_BRIEF = 200  # characters of a statement that is worth remembering


def folded(stated: str) -> str:
    """Lower case without accents and invisible characters; what is encoded is decoded."""
    for _ in range(3):  # encoded twice: %252D
        stated = unquote(unescape(stated))
    letters = unicodedata.normalize("NFKD", stated.casefold())
    kept = "".join(c for c in letters if unicodedata.category(c) not in ("Mn", "Cf"))
    return unicodedata.normalize("NFKC", kept)


def _names(*names: str) -> str:
    """Any of the names, their spaces written or not."""
    return "|".join(folded(name).replace(" ", " ?") for name in names)


# Names as Creative Commons translates them: English, German, French, Spanish, Italian, Portuguese,
# Dutch, Polish, Swedish, Russian, Chinese, Japanese, Korean
_LIMITS = {
    "nc": _names(
        "non com", "non profit", "not for profit", "not commercial", "not for commercial",
        "no commercial", "no comercial", "nicht kommerziell", "keine kommerzielle",
        "pas d utilisation commerciale", "não comercial", "niet commercieel", "niekomercyjn",
        "icke kommersiell", "некоммерч", "非商业", "非商業", "非営利", "비영리",
    ),
    "nd": _names(
        "no deriv", "non deriv", "without deriv", "no modification", "no adaptation",
        "keine bearbeitung", "pas de modification", "sin deriv", "sin obra", "non opere derivate",
        "no opere derivate", "sem deriv", "geen afgeleide", "bez utworow", "bez utworów",
        "inga bearbetningar", "без производн", "禁止演绎", "禁止演繹", "禁止改作", "改変禁止",
        "변경금지",
    ),
    "sa": _names(
        "share alike", "weitergabe unter gleichen", "partage dans les memes",
        "partage a l identique", "compartir igual", "condividi allo stesso", "compartilha igual",
        "partilha igual", "gelijk delen", "na tych samych", "dela lika", "на тех же условиях",
        "с сохранением условий", "相同方式共享", "相同方式分享", "継承", "동일조건변경허락",
    ),
}  # fmt: skip
_LIMIT = {kind: re.compile(names) for kind, names in _LIMITS.items()}
_ANY = re.compile(rf"(?:{'|'.join(_LIMITS.values())})[a-zа-я]*")
_CODES = re.compile(r"(?<![a-z])(?:cc ?)?(?:by)?((?:nc|nd|sa)+)(?![a-z])")
_BY_NAME = _names(
    "attribution", "namensnennung", "atribución", "reconocimiento", "attribuzione", "atribuição",
    "naamsvermelding", "uznanie autorstwa", "erkännande", "атрибуция", "с указанием авторства",
    "署名", "姓名標示", "姓名标示", "表示", "저작자표시",
)  # fmt: skip
_COMMONS = r"(?<![a-z])(?:creative ?commons|cc(?=(?:by|nc|nd|sa|0|zero)*(?![a-z])))"
_BETWEEN = r"(?: ?(?:org|licen[sc]es?|version|v|attribution|nc|nd|sa|[\d.]+))*?"
_BY = re.compile(
    rf"{_COMMONS}{_BETWEEN} ?by(?:nc|nd|sa)*(?![a-z])"
    r"|(?<![a-z])by ?(?:nc|nd|sa)+(?![a-z])"
    r"|attribution (?:v )?\d\.\d (?:international|unported|generic)"
)
_CC = re.compile(_COMMONS)
_TITLED = re.compile(_BY_NAME)
_MARK = re.compile(r"public ?domain mark|(?<![a-z])cc mark")
_ZERO = re.compile(r"public ?domain zero|(?<![a-z])cc ?(?:0|zero)(?![\d.a-z])|commons zero")
_VERSION = re.compile(r"(?<![\d.])(1[. ]0|2[. ][015]|3[. ]0|4[. ]0)(?![\d.])")
# Words that may stand around a licence and restrict nothing, in the languages of the names above
_AROUND = frozenset(folded("""
    creative commons cc by nc nd sa 0 zero mark public domain publicdomain dedication v ver version
    international unported generic universal intl http https www creativecommons org licenses
    licences license licence licensed licenced deed legalcode html spdx identifier under the terms
    of a an this these that is are work works content contents text texts page pages article
    articles site website document documents published released distributed available made
    provided and or with use uses edition all attribution
    lizenz lizenziert unter der die den des einer dieser dieses ist und werk inhalt namens nutzung
    bedingungen licencia licenciado bajo la el los esta obra una y de del internacional derivada
    derivadas licenca licenciado sob uma este e da do internacional derivacoes derivados
    licenza con questa opera sotto una internazionale allo stesso modo e distribuito
    licence sous les selon mise a disposition cette oeuvre est et conditions internationale
    licentie onder een dit werk is gelicenseerd internationaal afgeleide werken en
    licencja na licencji miedzynarodowe zaleznych warunkach utworow i
    licens licensierad under denna verket internationell och
    лицензия лицензии по лицензии под международная произведений условиях условий и
    许可 许可协议 知识共享 采用 国际 國際 国際 授權條款 授权 創用 共享 性 使用 性使用 条款 條款
    クリエイティブ コモンズ クリエイティブコモンズ ライセンス の
    크리에이티브 커먼즈 라이선스 국제 이용허락
""").split())  # fmt: skip
_OTHERS = frozenset({"image", "images", "photo", "photos", "picture", "pictures", "code"})
_TEXT = frozenset({"text", "texts", "content"})  # a licence of others too, but not of others alone
_CODE = re.compile(r"(?:cc)?(?:by)?(?:nc|nd|sa)*|[0-5]")
# What a page's address goes on with: a country, a language
_PORT = re.compile(
    r"(?<=creativecommons\.org/)((?:licenses/[a-z-]+|publicdomain/[a-z]+)/\d\.\d)"
    r"/(?!nc|nd|sa)(?:[a-z]{2}|igo|scotland)(?![\w-])"
)
_DEED = re.compile(r"/deed\.[a-z]+(?:[-_](?:hans|hant|[a-z]{2}))?(?![\w-])")
_STATED = "stated-"  # begins the name of what names Creative Commons and is no licence of theirs
# What a name that we made looks like, and a pattern that names a licence of the BY family
_OURS = re.compile(r"cc-by((?:-(?:nc|nd|sa))*)(?:-\d\.\d)?")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)*")


def licence_name(stated: str) -> str:
    """One name for a licence: `cc-by-sa-4.0`, `cc-0-1.0`, `cc-mark-1.0`, else as stated, dashed.

    Of several that are stated the name has all restrictions. One with a word that is not known to
    restrict nothing stays as stated, behind `stated-` where it names Creative Commons:
    `stated-cc-by-4.0-no-ai-training`.
    """
    return _remembered(stated) if len(stated) <= _BRIEF else _name(stated)


def _name(stated: str) -> str:
    said = folded(stated)
    text = re.sub(r"(?<![\d.])\d*2nd\b", " ", _DEED.sub(" ", _PORT.sub(r"\1", said)))  # editions
    signs = "".join(c for c in text if c > "\x7f")
    text = re.sub(r"_|[^\w.]|(?<!\d)\.|\.(?!\d)", " ", text)
    text = re.sub(r"(?<=[^\W\d])(?=\d)|(?<=\d)(?=[^\W\d])", " ", text)
    text = " ".join(text.split())
    codes = "".join(m[1] for m in _CODES.finditer(text))
    limits = [kind for kind, names in _LIMIT.items() if kind in codes or names.search(text)]
    commons = _CC.search(text)
    by = _BY.search(text) or ((limits or commons) and _TITLED.search(text))
    versions = {v.replace(" ", ".") for v in _VERSION.findall(text)}
    tail = [versions.pop()] if len(versions) == 1 else []
    free = _ZERO.search(text) or _MARK.search(text)
    if _understood(text, signs):
        if by:
            return "-".join(["cc-by", *limits, *tail])
        if limits and commons:
            return "-".join(["cc", *limits, *tail])  # 1.0 had licences without BY
        if free and not limits:
            return "-".join(["cc", "mark" if "mark" in free[0] else "0", *tail])
    name = re.sub(r"[^a-z0-9.+]+", "-", said).strip("-")[:WIDTH].strip("-")
    if by or commons or free or name.startswith("cc"):
        return f"{_STATED}{name}"[:WIDTH].strip("-")
    return name or ("other" if stated.strip() else "")


def _understood(text: str, signs: str) -> bool:
    """Whether no word of the statement is left that might restrict what the licence grants."""
    if any(c != "©" and unicodedata.category(c) == "So" for c in signs):
        return False  # letters in black circles, signs that forbid
    rest = _VERSION.sub(" ", _TITLED.sub(" ", _CC.sub(" ", _ANY.sub(" ", text))))
    words = set(rest.split())
    known = _AROUND | _OTHERS if words & _TEXT else _AROUND
    return all(_CODE.fullmatch(word) for word in words - known)


_remembered = lru_cache(maxsize=4096)(_name)


def granted(name: str, pattern: str) -> bool:
    """Whether a licence's name fits: itself, with any version after it, or what `*` stands for.

    In a pattern that begins as those of the BY family do (`cc-by-*`, `cc-b*`) `*` stands for no
    restriction: what takes `cc-by-*` has not agreed to `cc-by-nc-nd`. Elsewhere it stands for
    anything: `cc-*`, `gpl-*`, `*-4.0`; but what is `stated-`, only `*` and its own name take.
    """
    pattern = re.sub(r"\*+", "*", pattern)
    if name.startswith(_STATED) and pattern != "*" and not pattern.startswith(_STATED):
        return False
    if pattern.startswith("cc-b") and "*" in pattern:
        ours = _OURS.fullmatch(name)
        asked = [code for code in pattern.split("-") if code.strip("*") in _LIMITS]
        if not ours or ours[1].split("-")[1:] != [code.strip("*") for code in asked]:
            return False
    whole = re.compile(r"(cc-(?:by(?:-(?:nc|nd|sa))*|0|mark))-?\*-?")
    pattern = whole.sub(r"\1-", pattern).removesuffix("-")
    version = name.removeprefix(f"{pattern}-")
    return fnmatchcase(name, pattern) or (version != name and bool(_NUMBER.fullmatch(version)))
