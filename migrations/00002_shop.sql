-- +goose Up

-- What is sold. An amount that Stripe would refuse cannot be stored: zero (a
-- free course), or at least Stripe's minimum for the currency and at most
-- eight digits (https://docs.stripe.com/currencies#minimum-and-maximum-charge-amounts).
CREATE TABLE courses (
    slug       text        PRIMARY KEY,
    title      text        NOT NULL,
    summary    text        NOT NULL,
    amount     bigint      NOT NULL,
    currency   text        NOT NULL,
    position   integer     NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT courses_slug     CHECK (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND octet_length(slug) <= 64),
    CONSTRAINT courses_title    CHECK (octet_length(title) BETWEEN 1 AND 200),
    CONSTRAINT courses_currency CHECK (currency IN ('usd', 'eur', 'gbp', 'jpy')),
    CONSTRAINT courses_amount   CHECK (amount = 0 OR amount BETWEEN
        CASE currency WHEN 'gbp' THEN 30 ELSE 50 END AND 99999999)
);

-- One purchase of one course by one account. payment_key is the key that the
-- page carries; intent is the one PaymentIntent that may be confirmed, of the
-- generation beside it. The create parameters of the intent (amount, currency,
-- description) are frozen here when the order is placed. token opens the short
-- answer that a buyer without a session gets on the way back from the bank.
-- asks counts the completer's tries to close the order, ask_at is the next one.
CREATE TABLE orders (
    account         text        NOT NULL,
    id              text        NOT NULL,
    course          text        NOT NULL REFERENCES courses (slug),
    amount          bigint      NOT NULL,
    currency        text        NOT NULL,
    description     text        NOT NULL,
    status          text        NOT NULL,
    closing_at      timestamptz,
    payment_key     text        NOT NULL,
    generation      integer     NOT NULL DEFAULT 1,
    intent          text,
    intent_canceled boolean     NOT NULL DEFAULT false,
    token           text        NOT NULL,
    asks            integer     NOT NULL DEFAULT 0,
    ask_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at      timestamptz NOT NULL,
    paid_at         timestamptz,

    PRIMARY KEY (account, id),
    CONSTRAINT orders_status      CHECK (status IN ('open', 'paid', 'refunded', 'expired')),
    CONSTRAINT orders_amount      CHECK (amount BETWEEN 0 AND 99999999),
    CONSTRAINT orders_payment_key CHECK (octet_length(payment_key) BETWEEN 1 AND 255),
    CONSTRAINT orders_token       CHECK (octet_length(token) BETWEEN 16 AND 64),
    CONSTRAINT orders_generation  CHECK (generation >= 1),
    CONSTRAINT orders_canceled    CHECK (intent IS NOT NULL OR NOT intent_canceled),
    CONSTRAINT orders_paid_at     CHECK ((paid_at IS NOT NULL) = (status IN ('paid', 'refunded')))
);

-- The rule: one open or paid order per account and course. A closing order is
-- still open, so the index covers everything that can become paid.
CREATE UNIQUE INDEX orders_one_live ON orders (account, course) WHERE status IN ('open', 'paid');
-- For the completer: orders whose time is over.
CREATE INDEX orders_expiring ON orders (expires_at) WHERE status = 'open';
-- For the account's list of orders.
CREATE INDEX orders_by_account ON orders (account, created_at DESC);
-- One PaymentIntent belongs to one order.
CREATE UNIQUE INDEX orders_intent ON orders (account, intent) WHERE intent IS NOT NULL;

-- One attempt to pay an order: one key, one method, one downstream key a
-- generation. The confirm parameters (payment_method or confirmation_token,
-- return_url) are frozen here when the key is claimed. version rises with
-- every change, so that an answer about an older state can be told. asks counts
-- the completer's questions about a payment that waits for the bank or for
-- settlement, ask_at is the next one.
CREATE TABLE payments (
    account            text        NOT NULL,
    id                 text        NOT NULL,
    order_id           text        NOT NULL,
    key                text        NOT NULL,
    status             text        NOT NULL,
    version            integer     NOT NULL DEFAULT 1,
    amount             bigint      NOT NULL,
    currency           text        NOT NULL,
    payment_method     text,
    confirmation_token text,
    return_url         text        NOT NULL,
    intent             text,
    charge             text,
    code               text,
    decline_code       text,
    next_action        text,
    refusals           integer     NOT NULL DEFAULT 0,
    refunded           bigint      NOT NULL DEFAULT 0,
    asks               integer     NOT NULL DEFAULT 0,
    ask_at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at         timestamptz NOT NULL DEFAULT clock_timestamp(),

    PRIMARY KEY (account, id),
    FOREIGN KEY (account, order_id) REFERENCES orders (account, id),
    CONSTRAINT payments_status   CHECK (status IN
        ('pending', 'requires_action', 'processing', 'succeeded', 'failed', 'canceled', 'released')),
    CONSTRAINT payments_amount   CHECK (amount BETWEEN 1 AND 99999999),
    CONSTRAINT payments_method   CHECK (num_nonnulls(payment_method, confirmation_token) = 1),
    CONSTRAINT payments_refunded CHECK (refunded BETWEEN 0 AND amount),
    CONSTRAINT payments_charge   CHECK (status <> 'succeeded' OR (charge IS NOT NULL AND intent IS NOT NULL))
);

-- The slot: one payment per order that is, or could still become, money. It is
-- taken when the key is claimed, so that a second key for the same order is
-- refused before Stripe is called. An index on 'succeeded' alone would protect
-- this table, not the card.
CREATE UNIQUE INDEX payments_slot ON payments (account, order_id)
    WHERE status IN ('pending', 'requires_action', 'processing', 'succeeded');
-- One charge is written once, whatever reports it.
CREATE UNIQUE INDEX payments_charge_once ON payments (account, charge) WHERE charge IS NOT NULL AND status = 'succeeded';
-- One key pays once. An attempt that ended without money may leave its key to
-- a later request, after the reaper has removed the key.
CREATE UNIQUE INDEX payments_key_once ON payments (account, key)
    WHERE status IN ('pending', 'requires_action', 'processing', 'succeeded');
-- For the completer: payments that wait for the bank or for settlement.
CREATE INDEX payments_waiting ON payments (ask_at) WHERE status IN ('requires_action', 'processing');
CREATE INDEX payments_by_order ON payments (account, order_id, created_at);

-- Money given back. A refund is written before Stripe is called, and pending
-- ones count against what is left. One that was made elsewhere (in Stripe's
-- dashboard) has no key; one that answers money which arrived for a closed
-- order has none either, and is sent by the completer.
CREATE TABLE refunds (
    account    text        NOT NULL,
    id         text        NOT NULL,
    payment_id text        NOT NULL,
    order_id   text        NOT NULL,
    key        text,
    origin     text        NOT NULL DEFAULT 'buyer',
    status     text        NOT NULL,
    amount     bigint      NOT NULL,
    currency   text        NOT NULL,
    refund     text,
    sent_at    timestamptz,
    asks       integer     NOT NULL DEFAULT 0,
    ask_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    PRIMARY KEY (account, id),
    FOREIGN KEY (account, payment_id) REFERENCES payments (account, id),
    CONSTRAINT refunds_status CHECK (status IN ('pending', 'succeeded', 'failed')),
    CONSTRAINT refunds_amount CHECK (amount BETWEEN 1 AND 99999999),
    CONSTRAINT refunds_origin CHECK (origin IN ('buyer', 'late', 'elsewhere') AND (key IS NOT NULL) = (origin = 'buyer')),
    CONSTRAINT refunds_refund CHECK (status <> 'succeeded' OR refund IS NOT NULL)
);

-- One refund at Stripe is written once, whoever made it.
CREATE UNIQUE INDEX refunds_refund_once ON refunds (account, refund) WHERE refund IS NOT NULL;
-- Money that arrived for a closed order goes back once.
CREATE UNIQUE INDEX refunds_late_once ON refunds (account, payment_id) WHERE origin = 'late';
-- For the completer: refunds that are not settled.
CREATE INDEX refunds_waiting ON refunds (ask_at) WHERE status = 'pending';
CREATE INDEX refunds_by_payment ON refunds (account, payment_id);

-- Who may read a course. A refund revokes it; buying again makes a new one.
CREATE TABLE enrolments (
    account    text        NOT NULL,
    course     text        NOT NULL REFERENCES courses (slug),
    order_id   text        NOT NULL,
    status     text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    PRIMARY KEY (account, order_id),
    FOREIGN KEY (account, order_id) REFERENCES orders (account, id),
    CONSTRAINT enrolments_status CHECK (status IN ('active', 'revoked'))
);

-- One active enrolment per account and course.
CREATE UNIQUE INDEX enrolments_one_active ON enrolments (account, course) WHERE status = 'active';

-- +goose Down
DROP TABLE enrolments, refunds, payments, orders, courses;
