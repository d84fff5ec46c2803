package checkout

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"

	"payonce/idempotency"
)

// OrderRequest asks for a course: POST /orders.
type OrderRequest struct {
	Account string
	Key     idempotency.Key
	// Course is the course's slug.
	Course string
}

// orderTries bounds how often one request finds neither room for an order nor
// the order that takes it, because orders come and go.
const orderTries = 3

// PlaceOrder orders a course, in the local shape: the key, the order and the
// answer are one transaction, and duplicates wait for it and replay.
//
// The answer is 201 with the new order; 200 with the account's open order for
// the course, if there is one, whatever key it was placed under; a free course
// is paid and enrolled at once. The price is the catalogue's.
//
// It returns *InvalidError for a course that does not exist, *ConflictError
// around ErrAlreadyEnrolled if the account has the course or around
// ErrOrderClosed while its old order is being closed, or an error of the ledger.
func (s *Service) PlaceOrder(ctx context.Context, r OrderRequest) (idempotency.Response, error) {
	const operation = "POST /orders"
	fingerprint, err := idempotency.NewFingerprint(operation, map[string]any{"course": r.Course})
	if err != nil {
		return idempotency.Response{}, err
	}
	course, err := s.orderable(ctx, r)
	if err != nil {
		return idempotency.Response{}, err
	}
	return s.ledger.Do(ctx, idempotency.Request{
		Scope: r.Account, Key: r.Key, Operation: operation, Fingerprint: fingerprint,
	}, func(ctx context.Context, tx *idempotency.Tx) (idempotency.Response, error) {
		for range orderTries {
			order, status, err := s.insertOrder(ctx, tx, r.Account, course)
			if err != nil || status != 0 {
				return idempotency.Response{Status: status, Type: jsonType, Body: encode(order.View())}, err
			}
		}
		return idempotency.Response{}, idempotency.ErrClaimContended
	})
}

const jsonType = "application/json"

// orderable gives the course that was asked for.
func (s *Service) orderable(ctx context.Context, r OrderRequest) (Course, error) {
	offer, err := s.Offer(ctx, r.Account, r.Course)
	if errors.Is(err, ErrNotFound) {
		return Course{}, &InvalidError{Field: "course", Reason: "There is no such course. GET / lists them."}
	}
	return offer.Course, err
}

// insertOrder adds an order, or gives the open one with 200. It gives the
// status 0 if it found neither room nor an order.
func (s *Service) insertOrder(ctx context.Context, tx *idempotency.Tx, account string, c Course) (Order, int, error) {
	o := Order{
		Account: account, ID: newID("ord_"), Course: c, Price: c.Price, Status: OrderOpen, PaymentKey: newID("key_"),
	}
	if c.Free() {
		o.Status = OrderPaid
	}
	// The unique index over open and paid orders decides, and makes two keys of
	// one account wait for each other here.
	tag, err := tx.Exec(ctx, `
		INSERT INTO orders (account, id, course, amount, currency, description, status, payment_key, expires_at, token, paid_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp() + $9::interval, $10,
		        CASE WHEN $7 = 'paid' THEN clock_timestamp() END)
		    ON CONFLICT (account, course) WHERE status IN ('open', 'paid') DO NOTHING`,
		account, o.ID, c.Slug, c.Price.Amount, c.Price.Currency, c.Title, string(o.Status), o.PaymentKey, s.OrderExpiry,
		newID(""))
	if err != nil {
		return Order{}, 0, fmt.Errorf("inserting an order: %w", err)
	}
	if tag.RowsAffected() == 1 {
		if c.Free() {
			queueEnrol(tx, account, c.Slug, o.ID)
		}
		return o, http.StatusCreated, nil
	}
	err = tx.QueryRow(ctx, `
		SELECT id, amount, currency, status, closing_at IS NOT NULL, payment_key FROM orders
		 WHERE account = $1 AND course = $2 AND status IN ('open', 'paid')`, account, c.Slug).
		Scan(&o.ID, &o.Price.Amount, &o.Price.Currency, &o.Status, &o.Closing, &o.PaymentKey)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Order{}, 0, nil
	case err != nil:
		return Order{}, 0, fmt.Errorf("reading the live order: %w", err)
	case o.Status == OrderPaid:
		return Order{}, 0, &ConflictError{Err: ErrAlreadyEnrolled, Course: c.Slug, Order: o.ID}
	case o.Closing:
		return Order{}, 0, &ConflictError{Err: ErrOrderClosed, Course: c.Slug, Order: o.ID}
	}
	return o, http.StatusOK, nil
}

// queueEnrol gives the account the course. It refuses nothing: an enrolment
// that is there already is what was wanted.
func queueEnrol(tx *idempotency.Tx, account, course, order string) {
	tx.Queue(`
		INSERT INTO enrolments (account, course, order_id, status) VALUES ($1, $2, $3, 'active')
		    ON CONFLICT DO NOTHING`, account, course, order)
}
