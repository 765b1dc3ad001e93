"""The balances: every account has two sides that were counted in different places.

    read      decoded bytes = kept + skipped + lost                         per shard
    flow      in + added = kept + stripped + dropped                        per stage, source, unit
    chain     kept of a stage = in of the next; kept of the last = corpus   per source, unit
    tokens    corpus tokens, turns laid out = text tokens of token shards   per source
    plan      windows x sequence length = real + padding                    per stage of the plan
    cube      its cells come to the plan's rows             per stage, slice and source of the plan
    served    at most what is planned                       per stage, slice and source of the plan

`imbalances` returns the rows whose sides differ; a ledger that balances returns none.
"""

from __future__ import annotations

from typing import NamedTuple

import duckdb


class Imbalance(NamedTuple):
    """Two sides that should be equal; `difference` = found - expected, in `unit`."""

    check: str
    stage: str  # `pass/stage`, or the stage of the plan
    source: str
    unit: str
    expected: int
    found: int

    @property
    def difference(self) -> int:
        """What is too much (above nought) or missing (below)."""
        return self.found - self.expected

    def __str__(self) -> str:
        return (
            f"{self.check}: stage {self.stage}, source {self.source}: {self.found:,} {self.unit} "
            f"where {self.expected:,} are expected ({self.difference:+,})"
        )


READ = """
SELECT 'read', 'read/' || shard, source, 'decoded bytes',
    sum(bytes) FILTER (account = 'in')::BIGINT AS expected,
    coalesce(sum(bytes) FILTER (account <> 'in'), 0)::BIGINT AS found
FROM reads GROUP BY shard, source HAVING expected IS DISTINCT FROM found ORDER BY shard
"""

LOSSES = """
WITH told AS (
    SELECT shard, source, kind, reason, sum(records)::BIGINT AS records, sum(bytes)::BIGINT AS bytes
    FROM reads WHERE account = 'lost' GROUP BY ALL
), listed AS (
    SELECT shard, source, kind, reason, count(*) AS records, sum(span)::BIGINT AS bytes
    FROM losses GROUP BY ALL
), both_sides AS (
    SELECT shard, source, kind || ' ' || reason AS what,
        coalesce(told.records, 0) AS records, coalesce(listed.records, 0) AS listed_records,
        coalesce(told.bytes, 0) AS bytes, coalesce(listed.bytes, 0) AS listed_bytes
    FROM told FULL JOIN listed USING (shard, source, kind, reason)
)
SELECT 'losses', 'read/' || shard, source, 'records lost as ' || what, records, listed_records
FROM both_sides WHERE records <> listed_records
UNION ALL
SELECT 'losses', 'read/' || shard, source, 'decoded bytes lost as ' || what, bytes, listed_bytes
FROM both_sides WHERE bytes <> listed_bytes
ORDER BY ALL
"""

FLOW = """
SELECT 'flow', pass || '/' || stage, source, unit, came, went
FROM balances WHERE difference <> 0 ORDER BY position, source, unit
"""

# One row per stage that a source goes through, in order: read first, the corpus last.
CHAIN = """
WITH ordered AS (
    SELECT flow.* EXCLUDE (position), coalesce(step, position) AS position
    FROM flow LEFT JOIN route USING (source, pass, stage)
), steps AS (
    SELECT pass, position, stage, source, unit,
        sum(amount) FILTER (account = 'in') AS came,
        sum(amount) FILTER (account = 'kept') AS kept
    FROM (FROM ordered UNPIVOT (amount FOR unit IN (documents, bytes, tokens)))
    GROUP BY ALL
), linked AS (
    SELECT *, lag(kept, 1) OVER line AS before, lag(pass || '/' || stage, 1) OVER line AS earlier,
        row_number() OVER line AS place
    FROM steps WINDOW line AS (PARTITION BY source, unit ORDER BY position)
)
SELECT 'chain', pass || '/' || stage || ' after ' || earlier, source, unit,
    coalesce(before, 0)::BIGINT, coalesce(came, 0)::BIGINT
FROM linked WHERE place > 1 AND coalesce(before, 0) <> coalesce(came, 0)
ORDER BY position, source, unit
"""

READ_TO_FLOW = """
WITH read AS (
    SELECT source, sum(documents)::BIGINT AS documents, sum(text_bytes)::BIGINT AS bytes
    FROM shards WHERE state = 'done' GROUP BY source
), begun AS (
    SELECT source, sum(documents)::BIGINT AS documents, sum(bytes)::BIGINT AS bytes
    FROM flow WHERE pass = 'read' GROUP BY source
), joined AS (
    SELECT source, coalesce(read.documents, 0) AS d1, coalesce(begun.documents, 0) AS d2,
        coalesce(read.bytes, 0) AS b1, coalesce(begun.bytes, 0) AS b2
    FROM read FULL JOIN begun USING (source)
)
SELECT 'read', 'read/read', source, 'documents', d1, d2 FROM joined WHERE d1 <> d2
UNION ALL
SELECT 'read', 'read/read', source, 'bytes', b1, b2 FROM joined WHERE b1 <> b2
ORDER BY ALL
"""

TOKENS = """
WITH kept AS (
    SELECT pass, source, sum(documents)::BIGINT AS documents, sum(bytes)::BIGINT AS bytes,
        sum(tokens)::BIGINT AS tokens
    FROM flow WHERE pass IN ('corpus', 'tokens') AND account = 'kept' GROUP BY pass, source
), final AS (
    SELECT * FROM kept QUALIFY pass = 'tokens' OR count(*) OVER (PARTITION BY source) = 1
), encoded AS (
    SELECT source, sum(documents)::BIGINT AS documents, sum(text_bytes)::BIGINT AS bytes,
        sum(text_tokens)::BIGINT AS tokens
    FROM tokens GROUP BY source
), sliced AS (
    SELECT source, sum(documents)::BIGINT AS documents, sum(bytes)::BIGINT AS bytes,
        sum(tokens)::BIGINT AS tokens
    FROM slices GROUP BY source
), special AS (
    SELECT source, sum(special_tokens)::BIGINT AS special FROM tokens GROUP BY source
), sides AS (
    SELECT 'tokens' AS side, source, final.documents AS d1, encoded.documents AS d2,
        final.bytes AS b1, encoded.bytes AS b2, final.tokens AS t1, encoded.tokens AS t2
    FROM final FULL JOIN encoded USING (source)
    UNION ALL
    SELECT 'slices', source, final.documents, sliced.documents, corpus.bytes, sliced.bytes,
        final.tokens + special.special, sliced.tokens
    FROM final LEFT JOIN sliced USING (source) LEFT JOIN special USING (source)
        LEFT JOIN kept AS corpus ON corpus.source = final.source AND corpus.pass = 'corpus'
)
SELECT side, 'corpus/' || side, source, unit, coalesce(expected, 0), coalesce(found, 0) FROM (
    SELECT side, source, 'documents' AS unit, d1 AS expected, d2 AS found FROM sides
    UNION ALL SELECT side, source, 'bytes', b1, b2 FROM sides
    UNION ALL SELECT side, source, 'tokens', t1, t2 FROM sides
) WHERE coalesce(expected, 0) <> coalesce(found, 0) ORDER BY ALL
"""

PLAN = """
WITH found AS (
    SELECT plan, stage_position, sum(windows * sequence_length)::BIGINT AS tokens_of_windows,
        sum(real_tokens + padding_tokens + masked_tokens)::BIGINT AS tokens
    FROM plan GROUP BY ALL
), sides AS (
    SELECT asked.stage, asked.windows AS w1, -- a window holds several sequences, or one
        coalesce(found.tokens_of_windows, 0) / asked.sequence_length AS w2,
        asked.windows * asked.sequence_length AS t1, coalesce(found.tokens, 0) AS t2
    FROM plan_stages AS asked LEFT JOIN found USING (plan, stage_position)
)
SELECT 'plan', stage, 'all', 'windows', w1, w2 FROM sides WHERE w1 <> w2
UNION ALL
SELECT 'plan', stage, 'all', 'tokens', t1, t2 FROM sides WHERE t1 <> t2
UNION ALL
SELECT 'plan', stage || '/' || slice, coalesce(source, '(none)'), 'tokens read again or first',
    real_tokens, unique_tokens + repeated_tokens
FROM plan WHERE real_tokens <> unique_tokens + repeated_tokens
ORDER BY ALL
"""

CUBE = """
WITH sides AS (
    SELECT * FROM (
        SELECT 'cube' AS side, * FROM cube UNION ALL BY NAME SELECT 'plan' AS side, * FROM plan
    ) UNPIVOT (amount FOR unit IN (windows, real_tokens, padding_tokens, loss_tokens,
        unique_tokens, documents))
)
SELECT 'cube', stage || '/' || slice, coalesce(source, '(none)'), unit,
    coalesce(sum(amount) FILTER (side = 'plan'), 0)::BIGINT AS planned,
    coalesce(sum(amount) FILTER (side = 'cube'), 0)::BIGINT AS found
FROM sides GROUP BY ALL HAVING planned <> found ORDER BY ALL
"""

SERVED = """
SELECT 'served', s.stage || '/' || s.slice, coalesce(s.source, '(none)'), 'tokens at most',
    coalesce(p.real_tokens + p.padding_tokens, 0), s.real_tokens + s.padding_tokens
FROM served AS s LEFT JOIN plan AS p ON p.plan = s.plan AND p.stage = s.stage
    AND p.slice = s.slice AND p.source IS NOT DISTINCT FROM s.source
    AND p.sequence_length = s.sequence_length
WHERE coalesce(p.real_tokens, 0) < s.real_tokens OR coalesce(p.windows, 0) < s.windows
ORDER BY ALL
"""

CHECKS = (READ, LOSSES, READ_TO_FLOW, FLOW, CHAIN, TOKENS, PLAN, CUBE, SERVED)


def imbalances(con: duckdb.DuckDBPyConnection) -> list[Imbalance]:
    """Every account of a ledger whose two sides differ; empty when all is well."""
    return [Imbalance(*row) for check in CHECKS for row in con.execute(check).fetchall()]
