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

-- +goose Down
DROP TABLE events;
