package racelab

import (
	"context"

	"payonce/idempotency"
)

const (
	webhookTables = `
	CREATE TABLE handled (
		id         text PRIMARY KEY,
		last_event text);
	CREATE TABLE fulfilments (
		payment text NOT NULL,
		what    text NOT NULL);`
	// The same, with nothing behind the question whether the event was handled.
	webhookNoKey = `
	CREATE TABLE handled (id text NOT NULL);
	CREATE TABLE fulfilments (
		payment text NOT NULL,
		what    text NOT NULL);`
	oneFulfilment = `CREATE UNIQUE INDEX fulfilments_payment ON fulfilments (payment, what);`
	claimHandled  = `INSERT INTO handled (id) VALUES ($1) ON CONFLICT (id) DO NOTHING RETURNING id`
	claimLast     = `INSERT INTO handled (id, last_event) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET last_event = EXCLUDED.last_event WHERE handled.last_event <> EXCLUDED.last_event RETURNING id`
	selectHandled = `SELECT id FROM handled WHERE id = $1`
	insertHandled = `INSERT INTO handled (id) VALUES ($1)`
	fulfil        = `INSERT INTO fulfilments (payment, what) VALUES ($1, $2)`
	fulfilOnce    = fulfil + ` ON CONFLICT DO NOTHING`
	thePayment    = "pi_1"
)

// delivery is one delivery of an event of a payment.
type delivery struct{ event, what string }

// The events of one payment: it is paid, and later its invoice is.
var (
	paidEvent    = delivery{"evt_1", "open the course"}
	invoiceEvent = delivery{"evt_2", "send the invoice"}
)

// webhooks is the other ledger: whose key the provider makes.
func webhooks() *Experiment {
	byHand := func(claim string, key func(d delivery) []any, deliveries ...delivery) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (answer Answer, err error) {
			if err := w.inTurn(ctx); err != nil {
				return Answer{}, err
			}
			d := deliveries[w.n-1]
			err = w.transaction(ctx, begin, func() error {
				var id string
				won, err := w.read(ctx, claim, key(d), &id)
				if err != nil {
					return err
				}
				if answer = (Answer{Kind: Ignored, Status: 200}); won {
					answer = Answer{Kind: Done, Status: 200}
					_, err = w.statement(ctx, fulfil, thePayment, d.what)
				}
				return err
			})
			return answer, err
		}
	}
	// bySelect asks whether the event was handled, which is all that its ledger
	// can do. The first to fulfil holds its transaction open until the other is
	// seen to wait, where an index makes it wait.
	bySelect := func(sql string, hold bool) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (answer Answer, err error) {
			err = w.transaction(ctx, begin, func() error {
				var id string
				found, err := w.read(ctx, selectHandled, []any{paidEvent.event}, &id)
				if err != nil {
					return err
				}
				if err := w.checked(ctx); err != nil {
					return err
				}
				answer = Answer{Kind: Ignored, Status: 200}
				if found {
					return nil
				}
				rows, err := w.statement(ctx, sql, thePayment, paidEvent.what)
				if err != nil || rows == 0 { // the other one was first
					return err
				}
				if hold {
					if err := w.hold(ctx); err != nil {
						return err
					}
				}
				answer.Kind = Done
				_, err = w.statement(ctx, insertHandled, paidEvent.event)
				return err
			})
			return answer, err
		}
	}
	event := func(d delivery) (idempotency.Request, error) {
		return request("stripe", d.event, "POST /webhooks/stripe", map[string]string{"event": d.event})
	}
	handled := idempotency.Response{Status: 200, Type: "application/json", Body: []byte(`{"received":true}`)}
	done := func(r idempotency.Response, err error) (Answer, error) {
		if err != nil {
			return Answer{}, err
		}
		if r.Replayed {
			return Answer{Kind: Replayed, Status: 200}, nil
		}
		return Answer{Kind: Done, Status: 200}, nil
	}
	inOne := func(sql string, deliveries ...delivery) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (Answer, error) {
			if err := w.inTurn(ctx); err != nil {
				return Answer{}, err
			}
			d := deliveries[w.n-1]
			req, err := event(d)
			if err != nil {
				return Answer{}, err
			}
			return done(w.ledger.Do(ctx, req, func(ctx context.Context, tx *idempotency.Tx) (idempotency.Response, error) {
				_, err := tx.Exec(ctx, sql, thePayment, d.what)
				return handled, err
			}))
		}
	}
	fulfilments := func(ctx context.Context, r *round) error {
		what, err := ask[string](ctx, r.lab, `
			SELECT coalesce(string_agg(n || ' × ' || what, ', ' ORDER BY what DESC), 'nothing')
			  FROM (SELECT what, count(*) AS n FROM fulfilments GROUP BY what) AS counted`)
		r.figure(fulfilled, "%s", what)
		return err
	}
	twice := []string{"a delivery", "the same, at once"}
	again := []string{"evt_1", "evt_2", "evt_1 again"}
	const right = "1 × send the invoice, 1 × open the course"
	return &Experiment{
		Name: "webhooks", Title: "Webhooks are a different ledger", Chapter: TheBookkeeping,
		About: "A payment arrives as several events, and each event arrives more than once. Keyed on the payment, the follow-up is dropped, or a redelivery is handled twice. The key is the event's id, and the work is done in the transaction of the claim. " +
			"Who finds the claim taken by a delivery in flight must not say 200: if that one dies, nobody will ever come again.",
		Barriers:   "One delivery follows the other; the lab moves the lease into the past. Where one event is delivered twice at once, a second barrier stands after the SELECT, and with the index the first to fulfil commits when PostgreSQL is seen to make the other wait.",
		HoldsWhen:  "The event's id is claimed, the effect commits with it, and a unique index stands behind the effect.",
		BreaksWhen: "The key is the payment, or a delivery is acknowledged that nobody has finished.",
		Workers:    parties(3), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "keyed-on-payment", Title: "Keyed on the payment", Sort: Broken, Lanes: []string{"evt_1", "evt_2"}, AlwaysHolds: true, Headline: fulfilled,
				About: "The second event of the payment is taken for a duplicate of the first: the follow-up is lost.",
				SQL:   []Line{plain(begin), fault(claimHandled), note("$1 is the payment"), plain(fulfil), plain("COMMIT")}, tables: webhookTables,
				work:   byHand(claimHandled, func(delivery) []any { return []any{thePayment} }, paidEvent, invoiceEvent),
				after:  fulfilments,
				expect: []expectation{outcomes("1 done, 1 ignored"), figure(fulfilled, "1 × open the course")},
			},
			{
				Name: "last-event", Title: "Keyed on the payment, with its last event", Sort: Broken, Lanes: again, AlwaysHolds: true, Headline: fulfilled,
				About: "The row remembers only the last event, so a redelivery of the one before is new again: fulfilled twice.",
				SQL:   []Line{plain(begin), fault(claimLast), note("$1 is the payment"), plain(fulfil), plain("COMMIT")}, tables: webhookTables,
				work:   byHand(claimLast, func(d delivery) []any { return []any{thePayment, d.event} }, paidEvent, invoiceEvent, paidEvent),
				after:  fulfilments,
				expect: []expectation{outcomes("3 done"), figure(fulfilled, "1 × send the invoice, 2 × open the course")},
			},
			{
				Name: "keyed-on-event", Title: "Keyed on the event", Sort: Right, Lanes: again, AlwaysHolds: true, Headline: fulfilled,
				About: "Each event once, however often it is delivered.",
				SQL:   []Line{cure(ledgerClaim), note("$2 is the event's id"), plain(fulfil), plain(ledgerDone), plain("COMMIT")}, Uses: usesDo, Shop: shopEvents,
				tables: webhookTables, ledger: true, work: inOne(fulfil, paidEvent, invoiceEvent, paidEvent), after: fulfilments,
				expect: []expectation{outcomes("2 done, 1 replayed"), figure(fulfilled, right)},
			},
			{
				Name: "no-index-behind", Title: "The ledger alone", Sort: Broken, Lanes: []string{"evt_1", "evt_3, of the same payment"}, AlwaysHolds: true, Headline: fulfilled,
				About: "Two different events of one payment, both of which open the course. The ledger sees two events; nothing sees that they mean one thing.",
				SQL:   []Line{plain(ledgerClaim), fault(fulfil), plain(ledgerDone), plain("COMMIT")}, tables: webhookTables, ledger: true,
				work: inOne(fulfil, paidEvent, delivery{"evt_3", paidEvent.what}), after: fulfilments,
				expect: []expectation{outcomes("2 done"), figure(fulfilled, "2 × open the course")},
			},
			{
				Name: "index-behind", Title: "A unique index behind it", Sort: Right, Lanes: []string{"evt_1", "evt_3, of the same payment"}, AlwaysHolds: true, Headline: fulfilled,
				About: "Belt and braces: the ledger is quick for the usual redelivery, and the index holds where two events mean one thing.",
				SQL:   []Line{plain(ledgerClaim), cure(fulfilOnce), plain(ledgerDone), plain("COMMIT")}, Uses: usesDo, Shop: shopEnrols,
				tables: webhookTables + oneFulfilment, ledger: true, work: inOne(fulfilOnce, paidEvent, delivery{"evt_3", paidEvent.what}), after: fulfilments,
				expect: []expectation{outcomes("2 done"), figure(fulfilled, "1 × open the course")},
			},
			{
				Name: "select-alone", Title: "A ledger that is only a SELECT", Sort: Broken, Lanes: twice, AlwaysHolds: true, Headline: fulfilled,
				About:  "One event, delivered twice within the same millisecond. Both ask whether it was handled, and it was not.",
				SQL:    []Line{plain(begin), fault(selectHandled), note("no row: nobody has handled it"), plain(fulfil), plain(insertHandled), plain("COMMIT")},
				tables: webhookNoKey, work: bySelect(fulfil, false), after: fulfilments,
				expect: []expectation{outcomes("2 done"), figure(fulfilled, "2 × open the course")},
			},
			{
				Name: "select-and-index", Title: "The same, with the index behind it", Sort: Costly, Lanes: twice, AlwaysHolds: true, Headline: fulfilled,
				About:  "The ledger lets both through, and the index holds: the second waits for the first, and adds no row. What no index stands behind, such as a mail, would still go out twice.",
				SQL:    []Line{plain(begin), plain(selectHandled), cure(fulfilOnce), note("the other one waits here, and adds no row"), plain(insertHandled), plain("COMMIT")},
				tables: webhookNoKey + oneFulfilment, work: bySelect(fulfilOnce, true), after: fulfilments,
				expect: []expectation{outcomes("1 done, 1 ignored"), figure(fulfilled, "1 × open the course")},
			},
			{
				Name: "in-flight-200", Title: "200 for a delivery in flight", Sort: Broken, Lanes: []string{"first delivery", "second"}, AlwaysHolds: true, Headline: fulfilled,
				About: "The first delivery claims the event and dies. The second finds the claim and says 200, so the provider stops. Money in, nothing delivered.",
				SQL:   []Line{plain(claimHandled), note("here the process dies; the second delivery:"), fault(claimHandled), note("no row: 200")}, tables: webhookTables,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					var id string
					won, err := w.read(ctx, claimHandled, []any{paidEvent.event}, &id)
					if err != nil {
						return Answer{}, err
					}
					if won {
						return w.killed("the process dies before the work")
					}
					return Answer{Kind: Ignored, Status: 200}, nil
				},
				after:  fulfilments,
				expect: []expectation{outcomes("1 ignored, 1 killed"), figure(fulfilled, "nothing")},
			},
			{
				Name: "in-flight-409", Title: "409 for a delivery in flight", Sort: Right, Lanes: []string{"first delivery", "second", "third, later"}, AlwaysHolds: true, Headline: fulfilled,
				About: "The second delivery is told 409, so the provider comes again, into a claim whose lease has lapsed.",
				SQL:   []Line{plain(ledgerClaim), note("here the process dies; the second delivery reads in_progress:"), cure(ledgerRead), note("409. The third takes over:"), plain(ledgerTakes), plain(fulfil), plain(ledgerDone)},
				Uses:  usesClaim, Shop: shopEvents, tables: webhookTables, ledger: true, wait: -1,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					if w.n == 3 {
						if err := w.lapse(ctx); err != nil {
							return Answer{}, err
						}
					}
					req, err := event(paidEvent)
					if err != nil {
						return Answer{}, err
					}
					claim, response, err := w.ledger.Claim(ctx, req, nil)
					if response != nil || err != nil {
						return Answer{Kind: Replayed, Status: 200}, err
					}
					if w.n == 1 {
						return w.killed("the process dies before the work")
					}
					return done(w.ledger.Record(ctx, *claim, func(ctx context.Context, tx *idempotency.Tx) (idempotency.Response, error) {
						_, err := tx.Exec(ctx, fulfil, thePayment, paidEvent.what)
						return handled, err
					}))
				},
				after:  fulfilments,
				expect: []expectation{outcomes("1 done, 1 × 409, 1 killed"), figure(fulfilled, "1 × open the course")},
			},
		},
	}
}

// fulfilled is the figure of what was delivered.
const fulfilled = "delivered"
