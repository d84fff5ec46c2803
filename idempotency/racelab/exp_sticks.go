package racelab

import (
	"context"
	"errors"

	"payonce/idempotency"
)

var declined = idempotency.Response{Status: 402, Type: "application/problem+json", Body: []byte(`{"code":"card_declined"}`)}

// whatSticks asks which outcomes a key must remember.
func whatSticks() *Experiment {
	// tries are the requests of one script, each with what the provider does.
	tries := func(steps ...func(context.Context, *worker, *idempotency.Claim) (Answer, error)) func(context.Context, *worker) (Answer, error) {
		return func(ctx context.Context, w *worker) (Answer, error) {
			if err := w.inTurn(ctx); err != nil {
				return Answer{}, err
			}
			if w.n == w.round.n && w.variant.Lanes[w.n-1] == "after the lease" {
				if err := w.lapse(ctx); err != nil {
					return Answer{}, err
				}
			}
			claim, answer, err := w.claim(ctx, theKey, Price)
			if claim == nil {
				return answer, err
			}
			return steps[w.n-1](ctx, w, claim)
		}
	}
	decline := func(ctx context.Context, w *worker, c *idempotency.Claim) (Answer, error) {
		w.provider.turnedAway(w, "the bank declines")
		return w.record(ctx, c, declined)
	}
	busy := func(ctx context.Context, w *worker, c *idempotency.Claim) (Answer, error) {
		w.provider.turnedAway(w, "the provider is busy: nothing was done")
		_, err := w.ledger.Release(ctx, *c, func(context.Context, *idempotency.Tx) error { return nil })
		return Answer{Kind: Overloaded, Status: 503}, err
	}
	lost := func(ctx context.Context, w *worker, c *idempotency.Claim) (Answer, error) {
		if _, err := w.provider.charge(ctx, w, downstream(theKey), Price, nil); err != nil {
			return Answer{}, err
		}
		w.happened(EventHungUp, "the provider's answer is lost")
		_, err := w.ledger.GiveUp(ctx, *c, "called")
		return Answer{Kind: Unknown, Status: 503}, err
	}
	charge := func(ctx context.Context, w *worker, c *idempotency.Claim) (Answer, error) {
		id, err := w.provider.charge(ctx, w, downstream(theKey), Price, nil)
		if err != nil {
			return Answer{}, err
		}
		return w.record(ctx, c, created(receipt{id, Price}))
	}
	three := []string{"first try", "retry", "retry"}
	return &Experiment{
		Name: "what-sticks", Title: "What sticks to a key", Chapter: TheBookkeeping,
		About: "A decline is as definitive as a charge: it is stored, and each retry gets it again without asking the bank. A refusal before anything was done frees the key for the next try. " +
			"A lost answer is neither: the key stays in progress, and only the same request under the same downstream key may go on.",
		Barriers:   "None: one request follows the other. The lab moves the lease into the past.",
		HoldsWhen:  "Each outcome is one of three: definitive, surely nothing happened, unknown.",
		BreaksWhen: "Unknown is taken for failed, or failed for forgotten.",
		Workers:    parties(3), Trials: fewTrials,
		Variants: []Variant{
			{
				Name: "decline-forgotten", Title: "A decline is forgotten", Sort: Broken, Lanes: three, AlwaysHolds: true, Headline: callsFigure,
				About: "The claim is deleted when the card is declined. Every retry of the same request asks the bank again.",
				SQL:   []Line{plain(claimPlain), note("the bank declines"), fault(deleteKey)}, tables: plainTable,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					if _, err := w.statement(ctx, claimPlain, theKey); err != nil {
						return Answer{}, err
					}
					w.provider.turnedAway(w, "the bank declines")
					_, err := w.statement(ctx, deleteKey, theKey)
					return Answer{Kind: Declined, Status: 402, Body: string(declined.Body)}, err
				},
				after:  providerCalls,
				expect: []expectation{charges("0"), outcomes("3 × 402"), figure(callsFigure, "3")},
			},
			{
				Name: "decline-stored", Title: "A decline is stored", Sort: Right, Lanes: three, AlwaysHolds: true, Headline: callsFigure,
				About: "One call, and the same 402 for each retry. Another card is another request, with a key of its own.",
				SQL:   []Line{plain(ledgerClaim), note("the bank declines"), cure(ledgerDone), note("a retry replays the 402"), plain(ledgerRead)},
				Uses:  usesRecord, ledger: true, wait: -1, work: tries(decline, decline, decline), after: all(providerCalls, stateOfTheKey, differentAnswers),
				expect: []expectation{
					charges("0"), outcomes("2 replayed, 1 × 402"), figure(callsFigure, "1"),
					figure(stateFigure, "completed"), figure(differing, "1"),
				},
			},
			{
				Name: "busy-released", Title: "Surely nothing happened", Sort: Right, Should: 1, Lanes: three, AlwaysHolds: true,
				About: "The provider was busy and did nothing. The key becomes failed_retryable, and the next request with it claims it again.",
				SQL:   []Line{plain(ledgerClaim), note("429 from the provider"), cure(releaseLedger), note("the retry claims it again"), plain(ledgerRetry), plain(ledgerDone)},
				Uses:  usesRelease, ledger: true, wait: -1, work: tries(busy, charge, charge), after: all(providerCalls, stateOfTheKey),
				expect: []expectation{charges("1"), outcomes("1 charged, 1 replayed, 1 × 503"), money("1"), figure(callsFigure, "2"), figure(stateFigure, "completed")},
			},
			{
				Name: "unknown-kept", Title: "Nobody knows", Sort: Right, Should: 1, Lanes: []string{"first try", "at once", "after the lease"}, AlwaysHolds: true,
				About: "The answer was lost. The key stays in progress: a retry at once is told 409, a later one takes over and hears of the charge.",
				SQL:   []Line{plain(ledgerClaim), note("the provider's answer is lost"), cure(giveUpLedger), note("a retry at once: 409. After the lease:"), plain(ledgerTakes), plain(ledgerDone)},
				Uses:  &Code{"idempotency/record.go", "Ledger.GiveUp"}, ledger: true, wait: -1, work: tries(lost, charge, charge), after: all(providerCalls, stateOfTheKey),
				expect: []expectation{charges("1"), outcomes("1 charged, 1 × 409, 1 × 503 unknown"), money("1"), figure(callsFigure, "2"), figure(stateFigure, "completed")},
			},
			{
				Name: "unknown-as-failure", Title: "Unknown, taken for failed", Sort: Broken, Should: 1, Lanes: []string{"first try", "retry"}, AlwaysHolds: true,
				About: "A timeout is treated like an error: the claim is deleted, and the retry calls again, with nothing that the provider could recognise.",
				SQL:   []Line{plain(claimPlain), note("the provider's answer is lost"), fault(deleteKey), note("the retry claims, and charges again"), plain(claimPlain), plain(rememberKey)}, tables: plainTable,
				work: func(ctx context.Context, w *worker) (Answer, error) {
					if err := w.inTurn(ctx); err != nil {
						return Answer{}, err
					}
					if _, err := w.statement(ctx, claimPlain, theKey); err != nil {
						return Answer{}, err
					}
					id, err := w.provider.charge(ctx, w, "", Price, nil)
					if err != nil {
						return Answer{}, err
					}
					if w.n == 1 {
						w.happened(EventHungUp, "the provider's answer is lost")
						_, err := w.statement(ctx, deleteKey, theKey)
						return Answer{Kind: Unknown, Status: 503}, err
					}
					body := receipt{id, Price}.body()
					_, err = w.statement(ctx, rememberKey, theKey, string(body))
					return told(Charged, 201, body), err
				},
				after:  providerCalls,
				expect: []expectation{charges("2"), outcomes("1 charged, 1 × 503 unknown"), money("2"), figure(callsFigure, "2")},
			},
		},
	}
}

const (
	deleteKey     = `DELETE FROM keys WHERE key = $1`
	releaseLedger = `UPDATE idempotency_keys SET status = 'failed_retryable', ... WHERE scope = $1 AND key = $2 AND owner = $3 AND attempt = $4 AND status = 'in_progress'`
	giveUpLedger  = `UPDATE idempotency_keys SET lease_until = least(lease_until, ...), ... WHERE scope = $1 AND key = $2 AND owner = $3 AND attempt = $4 AND status = 'in_progress'`
)

// errSlotTaken: the order has a payment already, under another key.
var errSlotTaken = errors.New("the order has a payment in progress")
