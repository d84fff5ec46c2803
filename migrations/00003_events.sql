-- +goose Up

-- Events that Stripe delivered, keyed on the event's id: one payment arrives
-- as several events, so the payment's id would drop legitimate follow-ups.
CREATE TABLE events (
    id          text        PRIMARY KEY,
    type        text        NOT NULL,
    account     text,
    status      text        NOT NULL,
    detail      text,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT events_id     CHECK (octet_length(id) BETWEEN 1 AND 255),
    CONSTRAINT events_status CHECK (status IN ('applied', 'ignored', 'parked'))
);

CREATE INDEX events_received_at ON events (received_at);
-- For people: what waits for one.
CREATE INDEX events_parked ON events (received_at) WHERE status = 'parked';

-- A dispute is money that the bank may take back: a record beside the payment,
-- which stays succeeded.
CREATE TABLE disputes (
    account    text        NOT NULL,
    id         text        NOT NULL,
    payment_id text        NOT NULL,
    charge     text        NOT NULL,
    status     text        NOT NULL,
    reason     text        NOT NULL,
    amount     bigint      NOT NULL,
    currency   text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    PRIMARY KEY (account, id),
    FOREIGN KEY (account, payment_id) REFERENCES payments (account, id),
    CONSTRAINT disputes_amount CHECK (amount BETWEEN 0 AND 99999999)
);

CREATE INDEX disputes_by_payment ON disputes (account, payment_id);

-- +goose Down
DROP TABLE disputes, events;
