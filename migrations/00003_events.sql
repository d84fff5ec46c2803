-- +goose Up

-- Events that Stripe delivered, keyed on the event's id: one payment arrives
-- as several events, so the payment's id would drop legitimate follow-ups.
-- received_at is the first delivery. One about something of ours that is not
-- known yet waits for its next delivery; one that cannot work is parked. What
-- an event is about (intent, charge, dispute) is kept to apply it again, by
-- asking the provider; nothing else of it is.
CREATE TABLE events (
    id          text        PRIMARY KEY,
    type        text        NOT NULL,
    account     text,
    status      text        NOT NULL,
    detail      text,
    intent      text,
    charge      text,
    dispute     text,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT events_id     CHECK (octet_length(id) BETWEEN 1 AND 255),
    CONSTRAINT events_status CHECK (status IN ('applied', 'ignored', 'waiting', 'parked'))
);

CREATE INDEX events_received_at ON events (received_at);
-- For people: what waits for one.
CREATE INDEX events_parked ON events (received_at) WHERE status IN ('waiting', 'parked');

-- A dispute is money that the bank may take back: a record beside the payment,
-- which stays succeeded. version rises with every change, so that an answer
-- about an older state can be told.
CREATE TABLE disputes (
    account    text        NOT NULL,
    id         text        NOT NULL,
    payment_id text        NOT NULL,
    charge     text        NOT NULL,
    status     text        NOT NULL,
    version    integer     NOT NULL DEFAULT 1,
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
-- For events, which name no account: of a dispute, and of a charge.
CREATE INDEX disputes_by_id ON disputes (id);
CREATE INDEX payments_by_charge ON payments (charge) WHERE status = 'succeeded';

-- A refund can fail days after the provider took it. If its order is closed by
-- then, the money waits for a person, who may give it back by other means and
-- dismiss the refund.
ALTER TABLE refunds ADD COLUMN dismissed_at timestamptz;
CREATE INDEX refunds_failed ON refunds (account, payment_id) WHERE status = 'failed' AND dismissed_at IS NULL;

-- +goose Down
DROP INDEX payments_by_charge, refunds_failed;
ALTER TABLE refunds DROP COLUMN dismissed_at;
DROP TABLE disputes, events;
