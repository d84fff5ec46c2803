-- One row a key: who claimed it, until when, for which request, and what was
-- answered. The primary key is the referee: only an INSERT that adds the row,
-- or the conditional UPDATE of a takeover, ever grants a claim.
CREATE TABLE idempotency_keys (
    scope           text        NOT NULL,
    key             text        NOT NULL,
    operation       text        NOT NULL,
    request_hash    bytea       NOT NULL,
    status          text        NOT NULL,
    recovery_point  text        NOT NULL DEFAULT 'claimed',
    owner           text        NOT NULL,
    attempt         integer     NOT NULL DEFAULT 1,
    takeovers       integer     NOT NULL DEFAULT 0,
    completer_tries integer     NOT NULL DEFAULT 0,
    claimed_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until     timestamptz,
    params          bytea,
    response_status integer,
    response_type   text,
    response_body   bytea,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    completed_at    timestamptz,

    PRIMARY KEY (scope, key),
    CONSTRAINT idempotency_keys_scope_length     CHECK (octet_length(scope) BETWEEN 1 AND 255),
    CONSTRAINT idempotency_keys_key_length       CHECK (octet_length(key) BETWEEN 1 AND 255),
    CONSTRAINT idempotency_keys_operation_length CHECK (octet_length(operation) BETWEEN 1 AND 512),
    CONSTRAINT idempotency_keys_hash_length      CHECK (octet_length(request_hash) = 32),
    CONSTRAINT idempotency_keys_counts           CHECK (attempt >= 1 AND takeovers BETWEEN 0 AND attempt - 1),
    CONSTRAINT idempotency_keys_recovery_point   CHECK (octet_length(recovery_point) BETWEEN 1 AND 64),
    CONSTRAINT idempotency_keys_status           CHECK (status IN ('in_progress', 'completed', 'failed_retryable')),
    -- Only a key in progress has a lease, and always one: a key without a
    -- lease could never be taken over from a dead owner.
    CONSTRAINT idempotency_keys_lease            CHECK ((lease_until IS NOT NULL) = (status = 'in_progress')),
    -- Only a completed key has an answer, and always a whole one.
    CONSTRAINT idempotency_keys_response         CHECK (
        (response_status IS NOT NULL) = (status = 'completed') AND
        (response_type   IS NOT NULL) = (status = 'completed') AND
        (response_body   IS NOT NULL) = (status = 'completed')),
    CONSTRAINT idempotency_keys_response_status  CHECK (response_status BETWEEN 200 AND 599),
    -- Frozen parameters are needed for resending only; a finished key keeps none.
    CONSTRAINT idempotency_keys_params           CHECK (params IS NULL OR status <> 'completed'),
    CONSTRAINT idempotency_keys_completed_at     CHECK ((completed_at IS NULL) = (status = 'in_progress'))
);

-- For the reaper: finished keys, oldest first.
CREATE INDEX idempotency_keys_completed_at ON idempotency_keys (completed_at) WHERE completed_at IS NOT NULL;
-- For the completer: leases that lapsed.
CREATE INDEX idempotency_keys_lease_until ON idempotency_keys (lease_until) WHERE status = 'in_progress';

-- What happened to each key, appended in the transactions that exist anyway,
-- so that the picture survives a kill. Replays are written later, in batches.
CREATE TABLE key_history (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope    text        NOT NULL,
    key      text        NOT NULL,
    attempt  integer     NOT NULL,
    owner    text        NOT NULL,
    instance text        NOT NULL,
    what     text        NOT NULL,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    detail   jsonb       NOT NULL DEFAULT '{}',

    CONSTRAINT key_history_what CHECK (what IN
        ('claimed', 'retaken', 'taken_over', 'checkpoint', 'unknown', 'completed', 'released', 'replayed'))
);

-- No foreign key to idempotency_keys: it would lock the key row from writers
-- that must not wait for it. The reaper removes both.
CREATE INDEX key_history_key ON key_history (scope, key, id);
