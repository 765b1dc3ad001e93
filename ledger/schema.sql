-- The ledger of a run. Counts are whole numbers; NULL means "not known", never nought.
-- Compressed ("stored"), decoded and text bytes are separate accounts and never meet in one column.

CREATE TABLE runs (
    name VARCHAR NOT NULL,              -- of the recipe
    recipe VARCHAR NOT NULL,            -- digest of what the recipe says
    manifest VARCHAR NOT NULL,          -- digest of the manifest
    tokenizer VARCHAR,                  -- digest of the tokenizer's file
    version VARCHAR NOT NULL            -- of gristmill
);

CREATE TABLE sources (
    source VARCHAR NOT NULL,
    dump VARCHAR,
    license VARCHAR,
    priority INTEGER NOT NULL,          -- of duplicates the lowest is kept
    max_loss DOUBLE NOT NULL,           -- share of decoded bytes that may be damaged
    removal_cap DOUBLE NOT NULL         -- share of documents that one duplicate stage may remove
);

CREATE TABLE shards (
    shard VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    state VARCHAR NOT NULL,             -- done | duplicate_input | without
    duplicate_of VARCHAR,               -- shard that holds the same bytes
    stored_bytes BIGINT NOT NULL,       -- of the extents, by the manifest
    decoded_bytes BIGINT,               -- as the reader counted; NULL where nothing was read
    documents BIGINT,
    text_bytes BIGINT
);

CREATE TABLE reads (                    -- the reader's account, decoded bytes
    shard VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    account VARCHAR NOT NULL,           -- in | kept | skipped | lost
    kind VARCHAR NOT NULL,              -- of lost: fault (damage) or dropped (a rule); else ''
    reason VARCHAR NOT NULL,
    records BIGINT,                     -- of in: not known
    bytes BIGINT NOT NULL
);

CREATE TABLE losses (                   -- one row per stretch of input that became no document
    shard VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    file VARCHAR NOT NULL,              -- relative to the recipe's root
    stored_offset BIGINT NOT NULL,      -- stored byte where decoding starts
    inner_offset BIGINT NOT NULL,       -- byte after decoding from there (Parquet: row)
    span BIGINT NOT NULL,               -- decoded bytes
    kind VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    detail VARCHAR NOT NULL,
    url VARCHAR                         -- where the record stated one
);

CREATE TABLE flow (                     -- in + added = kept + stripped + dropped, per stage and source
    pass VARCHAR NOT NULL,              -- read, base, <global stage>, ..., corpus, tokens
    position INTEGER NOT NULL,          -- of the stage in the whole recipe
    stage VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    dump VARCHAR,
    language VARCHAR NOT NULL,          -- '' before it is known
    account VARCHAR NOT NULL,           -- in | added | kept | stripped | dropped
    reason VARCHAR NOT NULL,            -- '' for in and kept
    documents BIGINT NOT NULL,          -- of added and stripped: documents touched
    bytes BIGINT NOT NULL,              -- of text
    tokens BIGINT NOT NULL
);

CREATE TABLE route (                    -- the way of each source's documents, read first
    source VARCHAR NOT NULL,
    pass VARCHAR NOT NULL,
    stage VARCHAR NOT NULL,
    step INTEGER NOT NULL               -- sources may go through the same stages in other orders
);

CREATE TABLE tokens (                   -- token shards
    shard VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    documents BIGINT NOT NULL,
    text_tokens BIGINT NOT NULL,
    special_tokens BIGINT NOT NULL,     -- control tokens: ends of documents, around turns
    unlearnt_tokens BIGINT NOT NULL,    -- no targets: what others than the assistant say
    text_bytes BIGINT NOT NULL          -- that were encoded
);

CREATE TABLE clusters (                 -- how many clusters of each size a duplicate stage found
    stage VARCHAR NOT NULL,
    size BIGINT NOT NULL,               -- documents in the cluster
    clusters BIGINT NOT NULL,
    removed BIGINT NOT NULL             -- documents removed from clusters of this size
);

CREATE TABLE templates (                -- the largest families of template pages
    stage VARCHAR NOT NULL,
    family VARCHAR NOT NULL,            -- id of its first exemplar
    host VARCHAR,                       -- of that page
    url VARCHAR,
    documents BIGINT NOT NULL,          -- pages made from the template, own prose or none
    removed BIGINT NOT NULL,
    exemplars BIGINT NOT NULL,
    own_prose BIGINT NOT NULL,          -- pages kept for prose of their own
    words BIGINT NOT NULL,              -- of all these pages
    template_words BIGINT NOT NULL      -- of them, in the template or its slots
);

CREATE TABLE gone_clusters (            -- clusters whose every kept document a later stage dropped
    stage VARCHAR NOT NULL,             -- that kept them
    cluster VARCHAR NOT NULL,           -- id of its first document
    size BIGINT NOT NULL,               -- documents in the cluster
    kept BIGINT NOT NULL,               -- of them, by the duplicate stage
    lost_to VARCHAR NOT NULL            -- the later stages
);

CREATE TABLE slices (                   -- what a mixture can choose from: final documents, each once
    source VARCHAR NOT NULL,
    dump VARCHAR,
    language VARCHAR,
    license VARCHAR,
    page_format VARCHAR,                -- `quality.format`; NULL: not measured
    quality_bucket INTEGER,             -- `quality.bucket`, 0 to 19; -1: not judged
    length_bucket INTEGER NOT NULL,     -- b: 2^(b-1) < tokens <= 2^b, end of document included
    documents BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    tokens BIGINT NOT NULL              -- end of document included
);

CREATE TABLE cube (                     -- what the training plan reads, by all that tells tokens apart
    plan VARCHAR NOT NULL,
    stage_position INTEGER NOT NULL,
    stage VARCHAR NOT NULL,
    slice VARCHAR NOT NULL,
    source VARCHAR,
    dump VARCHAR,
    language VARCHAR,
    license VARCHAR,
    page_format VARCHAR,
    quality_bucket INTEGER,
    length_bucket INTEGER,
    sequence_length BIGINT NOT NULL,    -- tokens
    windows BIGINT NOT NULL,            -- whose first document is of the cell
    real_tokens BIGINT NOT NULL,
    padding_tokens BIGINT NOT NULL,
    masked_tokens BIGINT NOT NULL,      -- of documents that an amendment leaves out
    special_tokens BIGINT NOT NULL,
    loss_tokens BIGINT,                 -- targets; NULL: not known
    unique_tokens BIGINT NOT NULL,      -- read for the first time in the plan
    repeated_tokens BIGINT NOT NULL,
    held_tokens BIGINT NOT NULL,        -- of the cell in the slice, each once
    documents BIGINT NOT NULL,
    fragments BIGINT NOT NULL,          -- runs of a document's tokens
    epochs_mean DOUBLE NOT NULL,
    epochs_max BIGINT NOT NULL
);

CREATE TABLE plan AS                    -- the same by stage, slice and source
SELECT * EXCLUDE (dump, language, license, page_format, quality_bucket, length_bucket) FROM cube;

CREATE TABLE served AS                  -- the same, of what a trainer has been served
SELECT 0::BIGINT AS position, * FROM plan;

CREATE TABLE plan_stages (              -- what each stage was asked for
    plan VARCHAR NOT NULL,
    stage_position INTEGER NOT NULL,
    stage VARCHAR NOT NULL,
    windows BIGINT NOT NULL,
    sequence_length BIGINT NOT NULL,
    asked_tokens BIGINT NOT NULL
);

CREATE TABLE speed (                    -- from the facts beside each output: differs from run to run
    step VARCHAR NOT NULL,
    stage VARCHAR NOT NULL,             -- '' for the whole step
    tasks BIGINT NOT NULL,
    seconds DOUBLE NOT NULL,            -- sum over tasks
    cpu_seconds DOUBLE,
    bytes BIGINT NOT NULL,              -- worked on: text, or stored bytes for a reader
    text_bytes_read BIGINT,             -- text that was read from documents again
    peak_rss_bytes BIGINT               -- largest worker
);

-- What is left after each stage, over all sources (a source that skips a stage loses nothing in it).
CREATE VIEW funnel AS
WITH change AS (
    SELECT position, pass, stage,
        sum(documents) FILTER (account = 'dropped') AS documents_dropped,
        sum(bytes) FILTER (account = 'dropped') AS bytes_dropped,
        sum(tokens) FILTER (account = 'dropped') AS tokens_dropped,
        sum(bytes) FILTER (account = 'stripped') AS bytes_stripped,
        sum(tokens) FILTER (account = 'stripped') AS tokens_stripped,
        sum(bytes) FILTER (account = 'added') AS bytes_added,
        sum(tokens) FILTER (account = 'added') AS tokens_added
    FROM flow WHERE pass NOT IN ('read', 'corpus') GROUP BY ALL
), start AS (
    SELECT sum(documents) AS documents, sum(bytes) AS bytes, sum(tokens) AS tokens
    FROM flow WHERE pass = 'read'
), filled AS (
    SELECT position, pass, stage, COLUMNS(* EXCLUDE (position, pass, stage))::BIGINT
    FROM (SELECT position, pass, stage,
            coalesce(COLUMNS(* EXCLUDE (position, pass, stage)), 0) FROM change)
)
SELECT 0 AS position, 'read' AS pass, 'read' AS stage,
    documents::BIGINT AS documents, bytes::BIGINT AS bytes, tokens::BIGINT AS tokens,
    0::BIGINT AS documents_dropped, 0::BIGINT AS bytes_dropped, 0::BIGINT AS tokens_dropped,
    0::BIGINT AS bytes_stripped, 0::BIGINT AS tokens_stripped,
    0::BIGINT AS bytes_added, 0::BIGINT AS tokens_added
FROM start
UNION ALL
SELECT position, pass, stage,
    (start.documents - sum(documents_dropped) OVER so_far)::BIGINT,
    (start.bytes + sum(bytes_added - bytes_stripped - bytes_dropped) OVER so_far)::BIGINT,
    (start.tokens + sum(tokens_added - tokens_stripped - tokens_dropped) OVER so_far)::BIGINT,
    documents_dropped, bytes_dropped, tokens_dropped,
    bytes_stripped, tokens_stripped, bytes_added, tokens_added
FROM filled, start
WINDOW so_far AS (ORDER BY position, pass, stage)
ORDER BY position;

-- Both sides of every stage's account, by source and unit: `came` = in + added, `went` = the rest.
CREATE VIEW balances AS
WITH sides AS (
    SELECT pass, position, stage, source, unit,
        sum(amount) FILTER (account IN ('in', 'added')) AS came,
        sum(amount) FILTER (account IN ('kept', 'stripped', 'dropped')) AS went
    FROM (
        SELECT pass, position, stage, source, account, unit, amount
        FROM (SELECT * REPLACE (
                CASE WHEN account IN ('added', 'stripped') THEN 0 ELSE documents END AS documents)
            FROM flow WHERE pass <> 'read')
        UNPIVOT (amount FOR unit IN (documents, bytes, tokens))
    ) GROUP BY ALL
)
SELECT pass, position, stage, source, unit,
    coalesce(came, 0)::BIGINT AS came, coalesce(went, 0)::BIGINT AS went,
    (coalesce(went, 0) - coalesce(came, 0))::BIGINT AS difference
FROM sides ORDER BY position, source, unit;

-- What each stage has been served of what it is planned to read, by slice and source.
CREATE VIEW planned_served AS
SELECT plan, position, stage_position, stage, slice, source, sequence_length,
    p.windows AS planned_windows, s.windows AS served_windows,
    p.real_tokens AS planned_tokens, s.real_tokens AS served_tokens,
    p.loss_tokens AS planned_loss_tokens, s.loss_tokens AS served_loss_tokens,
    p.epochs_mean AS planned_epochs, s.epochs_mean AS served_epochs
FROM plan AS p JOIN served AS s
    USING (plan, stage_position, stage, slice, source, sequence_length)
ORDER BY stage_position, slice, source, sequence_length;
