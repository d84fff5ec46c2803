-- The courses that are for sale from the start. Amounts are in the currency's minor unit; the yen has none, so 7900 is
-- 7,900 yen. A course that is already there is left as it is: a shop may have changed its price since.

-- +goose Up
INSERT INTO courses (slug, title, summary, amount, currency, position) VALUES
    ('why-select-cannot-answer', 'Why a SELECT cannot answer',
     'Two requests ask whether a key was used, and both are told no. See the race in psql, the repairs that do not help, and the statement that does.',
     0, 'usd', 1),
    ('idempotency-end-to-end', 'Idempotency, end to end',
     'From a card charged eight times to a checkout that charges once: claim, call, record, and what to do when the reply never comes.',
     4900, 'usd', 2),
    ('postgresql-under-concurrency', 'PostgreSQL under concurrency',
     'What isolation levels, row locks and pools really do when eight requests arrive together. Every claim is one you can repeat in psql.',
     7900, 'jpy', 3),
    ('stripe-in-production', 'Stripe in production',
     'What Stripe stores under a key, which answers are final, and what an unknown outcome asks of you.',
     7500, 'usd', 4),
    ('webhooks-are-a-different-ledger', 'Webhooks are a different ledger',
     'Events come twice, late and out of order, and sometimes before your own answer. Receive them without losing one or doing one twice.',
     5900, 'eur', 5),
    ('proof-by-exhaustion', 'Proof by exhaustion',
     'Stop hoping that the tests met the bad interleaving. Enumerate crash points and schedules, state invariants, and break your own code to see whether anyone notices.',
     12900, 'usd', 6),
    ('payments-platform-team', 'The payments platform, for a team',
     'For the people who build and run payments for others: a ledger that several teams share, how to operate it, how to review a checkout, and a reading plan through every course.',
     900000, 'usd', 7)
ON CONFLICT (slug) DO NOTHING;

-- +goose Down
-- Nothing: a course may have been sold, and an order keeps its course.
