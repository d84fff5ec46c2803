package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"payonce/idempotency"
)

// The bounds of one pass of the completer.
const (
	completerBatch   = 50
	completerWorkers = 4
)

// CompleteResult counts what one pass of the completer finished.
type CompleteResult struct {
	// Keys are abandoned keys, Payments those that waited for the bank or for
	// settlement, Refunds those that were not settled, Orders those whose time
	// was over.
	Keys, Payments, Refunds, Orders int
	// Unknown are those of which the provider did not say enough. They are
	// tried again, later and later, and then wait for a person.
	Unknown int
}

// CompleteOnce makes one pass of the completer: it finishes what nobody is left
// to finish. Each row is taken by one completer at a time (a conditional UPDATE,
// or SKIP LOCKED), so any number of shops may run it at once.
//
// It never confirms a payment while the buyer is away: it asks, and cancels what
// is undecided. An error means that the database could not be read; what went
// wrong with a row is counted and logged.
func (s *Service) CompleteOnce(ctx context.Context) (CompleteResult, error) {
	var result CompleteResult
	for _, pass := range []struct {
		count *int
		due   func(context.Context) ([]task, error)
	}{
		{&result.Keys, s.dueKeys},
		{&result.Payments, s.duePayments},
		{&result.Refunds, s.dueRefunds},
		{&result.Orders, s.dueOrders},
	} {
		tasks, err := pass.due(ctx)
		if err != nil {
			return result, fmt.Errorf("completing: %w", err)
		}
		done, unknown := s.work(ctx, tasks)
		*pass.count += done
		result.Unknown += unknown
	}
	return result, nil
}

// task is one row for the completer. It returns false if somebody else was
// first.
type task func(context.Context) (bool, error)

// work runs the tasks, a few at a time.
func (s *Service) work(ctx context.Context, tasks []task) (done, unknown int) {
	var finished, failed atomic.Int64
	var running sync.WaitGroup
	turn := make(chan struct{}, completerWorkers)
	for _, run := range tasks {
		turn <- struct{}{}
		running.Go(func() {
			defer func() { <-turn }()
			mine, err := run(ctx)
			switch {
			case err != nil:
				failed.Add(1)
				s.log.Info("the completer will try again", slog.Any("err", err))
			case mine:
				finished.Add(1)
			}
		})
	}
	running.Wait()
	return int(finished.Load()), int(failed.Load())
}

func (s *Service) dueKeys(ctx context.Context) ([]task, error) {
	list, err := s.ledger.Due(ctx, keySchedule, completerBatch)
	tasks := make([]task, 0, len(list))
	for _, key := range list {
		tasks = append(tasks, func(ctx context.Context) (bool, error) { return s.completeKey(ctx, key) })
	}
	return tasks, err
}

// completeKey takes over an abandoned key and finishes what it was claimed for.
func (s *Service) completeKey(ctx context.Context, key idempotency.Abandoned) (bool, error) {
	parts := strings.Split(key.Operation, "/")
	switch {
	case len(parts) == 4 && parts[1] == "orders" && parts[3] == "payments":
		return s.completePayment(ctx, key, parts[2])
	case len(parts) == 4 && parts[1] == "payments" && parts[3] == "refunds":
		return s.completeRefund(ctx, key, parts[2])
	}
	return false, fmt.Errorf("an abandoned key of operation %q", key.Operation)
}

func (s *Service) completePayment(ctx context.Context, key idempotency.Abandoned, order string) (bool, error) {
	r := PaymentRequest{Account: key.Scope, Key: key.Key, Order: order}
	a := &attempt{absent: true}
	claim, err := s.ledger.TakeOver(ctx, key, func(_ context.Context, tx *idempotency.Tx, _ idempotency.Claim) error {
		queueLockOrder(tx, r.Account, r.Order, &a.order)
		queueHeldSlot(tx, r, a)
		return nil
	})
	if err != nil || claim == nil {
		return false, err
	}
	a.claim = *claim
	calling, hangUp := detach(ctx, s.ProviderTimeout)
	defer hangUp()
	v := s.call(calling, a)
	recording, done := detach(ctx, recordTimeout)
	defer done()
	_, err = s.persist(recording, a.claim, func() (idempotency.Response, error) { return s.record(recording, a, v) })
	return finished(err)
}

func (s *Service) completeRefund(ctx context.Context, key idempotency.Abandoned, payment string) (bool, error) {
	r := RefundRequest{Account: key.Scope, Key: key.Key, Payment: payment}
	g := &giving{window: s.RefundWindow}
	claim, err := s.ledger.TakeOver(ctx, key, func(_ context.Context, tx *idempotency.Tx, _ idempotency.Claim) error {
		queueLockRefunded(tx, r.Account, r.Payment, g)
		return g.hold(tx, r)
	})
	if err != nil || claim == nil {
		return false, err
	}
	g.claim = *claim
	calling, hangUp := detach(ctx, s.ProviderTimeout)
	defer hangUp()
	v := s.callRefund(calling, g)
	recording, done := detach(ctx, recordTimeout)
	defer done()
	_, err = s.persist(recording, g.claim, func() (idempotency.Response, error) { return s.recordRefund(recording, g, v) })
	return finished(err)
}

// finished tells whether a key is finished: a refused key is, since it was
// released.
func finished(err error) (bool, error) {
	if errors.Is(err, ErrProviderBusy) || errors.Is(err, ErrProviderRefused) {
		return true, nil
	}
	return err == nil, err
}

// duePayments takes payments that wait for the bank or for settlement. Their
// counters are no news about the payment, so its version stays.
func (s *Service) duePayments(ctx context.Context) ([]task, error) {
	rows, _ := s.pool.Query(ctx, `
		UPDATE payments p SET asks = asks + 1, ask_at = clock_timestamp() + make_interval(secs =>
		       (CASE status WHEN 'processing' THEN $1::float8[] ELSE $2::float8[] END)[asks + 1])
		 WHERE (account, id) IN (
			SELECT account, id FROM payments
			 WHERE status IN ('requires_action', 'processing') AND ask_at < clock_timestamp()
			   AND asks < CASE status WHEN 'processing' THEN cardinality($1::float8[]) ELSE cardinality($2::float8[]) END
			 ORDER BY ask_at LIMIT $3 FOR UPDATE SKIP LOCKED)
		RETURNING account, id`, seconds(processingSchedule), seconds(actionSchedule), completerBatch)
	return collectTasks(rows, s.completeWaiting)
}

func seconds(schedule idempotency.Schedule) []float64 {
	list := make([]float64, len(schedule))
	for i, d := range schedule {
		list[i] = d.Seconds()
	}
	return list
}

// collectTasks makes a task of each row of two ids.
func collectTasks(rows pgx.Rows, do func(ctx context.Context, account, id string) (bool, error)) ([]task, error) {
	return pgx.CollectRows(rows, func(from pgx.CollectableRow) (task, error) {
		var account, id string
		err := from.Scan(&account, &id)
		return func(ctx context.Context) (bool, error) { return do(ctx, account, id) }, err
	})
}

// completeWaiting asks about a payment that waits. If its buyer has been away
// for too long, its intent is canceled: whatever comes then is final.
//
// The order may have moved on while the task waited for its turn: the buyer gave
// the challenge up and is at the next one, which is not the completer's yet. So
// it looks whether the payment that is waited for is still the one that was due.
func (s *Service) completeWaiting(ctx context.Context, account, payment string) (bool, error) {
	v, err := s.lookAtPayment(ctx, CancelRequest{Account: account, Payment: payment})
	if err != nil || !v.unsettled() {
		return false, err
	}
	if _, err := s.askAndSettle(ctx, account, v.order.ID, nil); err != nil {
		return false, err
	}
	if v, err = s.lookAtPayment(ctx, CancelRequest{Account: account, Payment: payment}); err != nil {
		return false, err
	}
	if v.payment.Status == PaymentRequiresAction {
		if _, err := s.cancelAndSettle(ctx, v); err != nil {
			return false, err
		}
		return true, nil
	}
	return v.payment.Status != PaymentProcessing, nil
}

// dueRefunds takes refunds that are not settled and that no key's owner is at
// work on. Each gets a turn: the moment of the next question, which no other
// turn has. A completer that is slow and finds another moment in the row has
// lost its turn to the next one.
func (s *Service) dueRefunds(ctx context.Context) ([]task, error) {
	rows, _ := s.pool.Query(ctx, `
		UPDATE refunds SET asks = asks + 1, ask_at = clock_timestamp() + make_interval(secs => ($1::float8[])[asks + 1])
		 WHERE (account, id) IN (
			SELECT account, id FROM refunds r
			 WHERE status = 'pending' AND ask_at < clock_timestamp() AND asks < cardinality($1::float8[])
			   AND NOT EXISTS (SELECT 1 FROM idempotency_keys k
				WHERE k.scope = r.account AND k.key = r.key AND k.status = 'in_progress')
			 ORDER BY ask_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING account, id, ask_at`, seconds(refundSchedule), completerBatch)
	return pgx.CollectRows(rows, func(from pgx.CollectableRow) (task, error) {
		var account, id string
		var turn time.Time
		err := from.Scan(&account, &id, &turn)
		return func(ctx context.Context) (bool, error) { return s.completePendingRefund(ctx, account, id, turn) }, err
	})
}

// completePendingRefund asks about a refund that is not settled, and sends one
// that nobody asked for under a key: money that came for a closed order. How
// often, and when it ends as not made, follows the rules of runs (see
// repeatRefund), with the turn in place of an owner's fence.
func (s *Service) completePendingRefund(ctx context.Context, account, id string, turn time.Time) (bool, error) {
	var r refundRow
	err := found(r.scan(s.pool.QueryRow(ctx, `SELECT`+refundColumns+`
		  FROM refunds WHERE account = $1 AND id = $2 AND status = 'pending' AND ask_at = $3`, account, id, turn)))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	v, err := s.lookAtPayment(ctx, CancelRequest{Account: account, Payment: r.Payment})
	if err != nil {
		return false, err
	}
	calling, hangUp := detach(ctx, s.ProviderTimeout)
	defer hangUp()
	notMade := false
	if r.Origin == RefundLate && r.ProviderID == "" {
		if notMade, err = s.sendLateRefund(calling, v, r, turn); err != nil {
			return false, err
		}
	}
	if err := s.applyRefunds(calling, v, nil); err != nil {
		return false, err
	}
	if notMade {
		// Whoever had a turn after this one may have sent it too.
		_, err := s.pool.Exec(ctx, `
			UPDATE refunds SET status = 'failed', updated_at = clock_timestamp()
			 WHERE account = $1 AND id = $2 AND status = 'pending' AND refund IS NULL AND ask_at = $3`, account, id, turn)
		if err != nil {
			return false, err
		}
	}
	var status RefundStatus
	err = s.pool.QueryRow(ctx, `SELECT status FROM refunds WHERE account = $1 AND id = $2`, account, id).Scan(&status)
	return status != RefundPending, err
}

// sendLateRefund sends the refund, if it may be sent now. It is true if the
// provider refused the first send of a run for good: then it was never made.
func (s *Service) sendLateRefund(ctx context.Context, v view, r refundRow, turn time.Time) (notMade bool, err error) {
	toSend, first := 0 < r.SentAgo && r.SentAgo < repeatRefund, false
	if r.SentAgo >= forgottenRefund {
		if err := s.applyRefunds(ctx, v, nil); err != nil { // it may be there
			return false, err
		}
	}
	if r.SentAgo == 0 || r.SentAgo >= forgottenRefund {
		// Written before the send: a crash between them leaves a refund that is
		// sent again under the same key. Of several completers one begins.
		tag, err := s.pool.Exec(ctx, `
			UPDATE refunds SET sent_at = clock_timestamp()
			 WHERE account = $1 AND id = $2 AND status = 'pending' AND refund IS NULL AND ask_at = $3
			   AND (sent_at IS NULL OR sent_at < clock_timestamp() - $4::interval)`, r.Account, r.ID, turn, forgottenRefund)
		if err != nil {
			return false, err
		}
		toSend = tag.RowsAffected() == 1
		first = toSend
	}
	if !toSend {
		return false, nil
	}
	_, err = s.provider.CreateRefund(ctx, RefundParams{
		DownstreamKey: refundKey(r.ID), Intent: v.payment.Intent, Amount: r.Price.Amount,
		Refund: r.ID, Payment: v.payment.ID, Order: v.order.ID,
	})
	if err == nil {
		return false, nil
	}
	fault := judged(err)
	s.log.Info("sending back money that came late", slog.String("refund", r.ID), slog.Any("err", fault))
	return first && fault.forGood(), nil
}
