package checkout

import (
	"errors"

	"github.com/jackc/pgx/v5"

	"payonce/idempotency"
)

// orderRow is an order as a transaction holds it.
type orderRow struct {
	Account     string
	ID          string
	Course      string
	Price       Money
	Description string
	Status      OrderStatus
	Closing     bool
	PaymentKey  string
	Generation  int
	Intent      string // empty until its id is stored
	Canceled    bool   // the intent is known to be canceled
	PastTime    bool   // by the database's clock
	Token       string // opens the short answer without a session
}

const orderColumns = ` account, id, course, amount, currency, description, status, closing_at IS NOT NULL,
	payment_key, generation, coalesce(intent, ''), intent_canceled, expires_at < clock_timestamp(), token `

func (o *orderRow) scan(from pgx.Row) error {
	return from.Scan(&o.Account, &o.ID, &o.Course, &o.Price.Amount, &o.Price.Currency, &o.Description, &o.Status,
		&o.Closing, &o.PaymentKey, &o.Generation, &o.Intent, &o.Canceled, &o.PastTime, &o.Token)
}

// payable is nil while a payment may be claimed for the order, or says why not.
func (o orderRow) payable() error {
	switch {
	case o.Status == OrderOpen && !o.Closing:
		return nil
	case o.Status == OrderPaid || o.Status == OrderRefunded:
		return ErrOrderAlreadyPaid
	}
	return ErrOrderClosed
}

// queueLockOrder locks the order and reads it into o. It comes after the key
// and before the payment, always: seven other orders of locking deadlocked. FOR
// UPDATE, never FOR SHARE: a claim that shares the order and then waits for the
// slot blocks the decline that would free it.
func queueLockOrder(tx *idempotency.Tx, account, id string, o *orderRow) {
	tx.Queue(`SELECT`+orderColumns+`FROM orders WHERE account = $1 AND id = $2 FOR UPDATE`, account, id).
		QueryRow(func(from pgx.Row) error { return found(o.scan(from)) })
}

// paymentRow is a payment as a transaction holds it.
type paymentRow struct {
	Payment
	Account   string
	Version   int
	ReturnURL string
	Refusals  int
}

const paymentColumns = ` account, id, order_id, key, status, version, amount, currency, coalesce(payment_method, ''),
	coalesce(confirmation_token, ''), return_url, coalesce(intent, ''), coalesce(charge, ''), coalesce(code, ''),
	coalesce(decline_code, ''), coalesce(next_action, ''), refusals, refunded, created_at, updated_at `

func (p *paymentRow) scan(from pgx.Row) error {
	return from.Scan(&p.Account, &p.ID, &p.Order, &p.Key, &p.Status, &p.Version, &p.Price.Amount, &p.Price.Currency,
		&p.PaymentMethod, &p.ConfirmationToken, &p.ReturnURL, &p.Intent, &p.Charge, &p.Code, &p.DeclineCode,
		&p.NextAction, &p.Refusals, &p.Refunded, &p.CreatedAt, &p.UpdatedAt)
}

// queueLockPayment locks the payment and reads it into p.
func queueLockPayment(tx *idempotency.Tx, account, id string, p *paymentRow) {
	tx.Queue(`SELECT`+paymentColumns+`FROM payments WHERE account = $1 AND id = $2 FOR UPDATE`, account, id).
		QueryRow(func(from pgx.Row) error { return found(p.scan(from)) })
}

// found turns "no rows" into ErrNotFound.
func found(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	return err
}
