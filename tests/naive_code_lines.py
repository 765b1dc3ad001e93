"""Plain-Python twins of filters/templates/_kernels_marks.py: which lines of a text are code."""

from __future__ import annotations

import re

SPACE = b"\t\v\f\r "


def indented(raw: bytes):
    """Whether a line begins with a tab or four blanks."""
    line = raw.rstrip(b"\n")
    return line[:1] == b"\t" or len(line) - len(line.lstrip(SPACE)) >= 4


STARTS = re.compile(
    rb"(#include|#define|#import|#pragma|const|def|func|struct|>>>|pip|npm|sudo|conda) "
)
OPENERS = re.compile(
    rb"(import|from|using|package|public|private|static|class|function|return|export|git|cd|apt"
    rb"|docker|make|curl|\$) (.+)",
    re.DOTALL,
)
COMMANDS = re.compile(
    rb"(git (add|clone|commit|push|pull|status|init|checkout|branch|log|diff|merge|rebase|fetch"
    rb"|stash|config|remote|revert|reset|reflog|cherry-pick|show|tag|rm|mv)|make install"
    rb"|apt (install|update|upgrade|remove)"
    rb"|docker (run|build|pull|push|ps|exec|compose)|using namespace|package main|export default)"
    rb"(?:[\t\v\f\r ]|\Z)"
)
SIGN_OF_OPENER = re.compile(
    rb"[A-Za-z0-9]_|_[A-Za-z0-9]|[A-Za-z0-9_]=[^=\t\v\f\r ]|\$[A-Za-z({]|\./|[(\\]\Z"
    rb"|(?:(?<=[\t\v\f\r ])|\A)(?:\"(?=.*\"\Z)|'(?=.*'\Z))",
    re.DOTALL,
)
SIGN_OF_ONE = re.compile(rb"[/~]|\.\.\Z|.*(/\Z|//|[A-Za-z0-9_]{2}\.[A-Za-z])", re.DOTALL)


def opened(bare: bytes) -> bool | None:
    """Of a line that begins as code and menus do, whether a further sign says code; else None."""
    found = OPENERS.match(bare)
    if not found:
        return None
    first, rest = found.groups()
    if first == b"$":
        return bare[-1:] in {b"\\", b"("} or re.match(rb"[./~A-Za-z]", rest) is not None
    if COMMANDS.match(bare) or SIGN_OF_OPENER.search(rest):
        return True
    one, *others = re.split(rb"[\t\v\f\r ]+", rest)
    if not others:
        return SIGN_OF_ONE.match(one) is not None
    return (first, others[0]) in {(b"from", b"import"), (b"import", b"as")}


SIGN_OF_CODE = re.compile(
    rb"(?:[A-Za-z0-9_]\((?:[\"&')*\[{]|(?:(?!s\)|es\)|e\)|n\)|en\)|er\)|in\)|innen\)"
    rb"|[cCrR]\)|tm\)|TM\))"
    rb"(?![0-9.,]*(?:[)\t\v\f\r ]|\Z))[^)\t\v\f\r ]*(?:\)|(?<=,)[\t\v\f\r ]))))"  # a call
    rb"|__[A-Za-z0-9]"
    rb"|(?<=[^\t\v\f\r ])->[a-z0-9_]|(?<=.)<-(?: |\Z)|\":"
    rb"|(?: |\A)--[a-z]"
    rb"|[A-Za-z0-9_]::[A-Za-z0-9_]|:=|&&"
    rb"|(?<=.)[!+]=|(?<=. )=(?= .)|(?<=[^=])==(?!=| ?\Z)",
    re.DOTALL,
)


def reads_as_code(bare: bytes) -> bool:
    """Whether a line without white space around it is code by its looks."""
    if not bare:
        return False
    ends = bare.endswith((b";", b"{", b"}")) or (bare[:1] == b"`" and bare[-1:] == b"`")
    opens = re.match(rb"//|/\*|</|<[A-Za-z]", bare) is not None
    clause = rb"(SELECT|FROM|WHERE|INSERT|UPDATE|DELETE|CREATE|JOIN|VALUES) (?!.[A-Z])."
    opens = opens or re.match(clause, bare, re.DOTALL) is not None
    option = re.match(rb"[a-z].* -[A-Za-z0-9]( |\Z)", bare, re.DOTALL) is not None
    starts = STARTS.match(bare) or opened(bare)
    return bool(ends or opens or option or starts or SIGN_OF_CODE.search(bare))


FENCE = re.compile(rb"(?:(`{3,8})[^`]*|(~{3,8})[^~]*)\Z", re.DOTALL)
PRE = re.compile(rb"(?i)<pre(?=[>\t\v\f\r ]|\Z)", re.DOTALL)
PRE_END = re.compile(rb"(?i)</pre(?=[>\t\v\f\r ]|\Z)", re.DOTALL)


def closes(bare: bytes) -> bool:
    """Whether a line closes a <pre>: it begins so, or ends in a tag and does so within."""
    found = PRE_END.match(bare) or (bare.endswith(b">") and PRE_END.search(bare))
    return bool(found) and not PRE.match(bare)


def fenced(raws: list[bytes], bares: list[bytes]) -> set[int]:
    """Places of the lines between fences and between <pre> and </pre>, these included."""
    found, by = set(), b""
    for i, bare in enumerate(bares):
        fence = FENCE.match(bare)
        sign = (fence[1] or fence[2]) if fence else b""
        begins = PRE.match(bare) and not PRE_END.search(bare) and any(map(closes, bares[i + 1 :]))
        under = i > 0 and bool(bares[i - 1]) and bare == sign
        under &= len(sign) >= max(4, len(raws[i - 1]) - 1)
        sign = b"" if under and not by else sign
        if by or sign or begins:
            found.add(i)
        if by:
            ends = closes(bare) if by == b"<pre>" else bare == sign and sign.startswith(by)
            by = b"" if ends else by
        else:
            by = sign or (b"<pre>" if begins else b"")
    return found


def in_list(bare: bytes) -> bool:
    return re.match(rb"([-*+]|\xe2\x80\xa2|[0-9]{1,3}[.)]) ", bare) is not None


def code_lines(raws: list[bytes], may_go: set[int]) -> set[int]:
    """Places of the lines of a text that are code; `may_go`: those of lines that may go."""
    bares = [raw.strip(SPACE + b"\n") for raw in raws]
    full = [raw for n, raw in enumerate(raws) if bares[n] and n not in may_go]
    block = indents = 4 * sum(map(indented, full)) < 3 * len(full)
    found, near = fenced(raws, bares), False
    for n, bare in enumerate(bares):
        deep = block and bare and indented(raws[n]) and bare[:1] not in b"*+-"
        if deep or reads_as_code(bare) or (near and opened(bare) is False):
            found.add(n)
        block = indents and (n in found or not bare)
        near = n in found or (near and not bare)
    near = False
    for n in range(len(bares) - 1, -1, -1):
        if near and opened(bares[n]) is False:
            found.add(n)
        near = n in found or (near and not bares[n])
    return found
