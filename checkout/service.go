package checkout

import (
	"context"

	"payonce/idempotency"
)

// Service is the checkout: every rule of the shop that touches money.
type Service struct{}

func (s *Service) Catalogue(ctx context.Context, account string) ([]Offer, error) { panic("soon") }
func (s *Service) Offer(ctx context.Context, account, slug string) (Offer, error)  { panic("soon") }
func (s *Service) Order(ctx context.Context, account, id string) (Order, error)    { panic("soon") }
func (s *Service) Orders(ctx context.Context, account string) ([]Order, error)     { panic("soon") }

// Methods are the payment methods that may be sent, in the order of the page.
func (s *Service) Methods() []Method { panic("soon") }

// OrderRequest asks for a course: POST /orders.
type OrderRequest struct {
	Account string
	Key     idempotency.Key
	Course  string
}

// PaymentRequest asks to pay an order: POST /orders/{id}/payments.
// Exactly one of PaymentMethod and ConfirmationToken is set.
type PaymentRequest struct {
	Account           string
	Key               idempotency.Key
	Order             string
	PaymentMethod     string
	ConfirmationToken string
}

// RefundRequest asks for money back: POST /payments/{id}/refunds.
type RefundRequest struct {
	Account string
	Key     idempotency.Key
	Payment string
	// Amount is in minor units of the payment's currency.
	Amount int64
}

// PlaceOrder, Pay and Refund return the answer as it is stored under the key
// (201, 200, 202, 402 ...; Response.Replayed tells a replay), or an error that
// is stored nowhere: *InvalidError, *ConflictError around a sentinel of this
// package, or an error of package idempotency.
func (s *Service) PlaceOrder(ctx context.Context, r OrderRequest) (idempotency.Response, error) {
	panic("soon")
}
func (s *Service) Pay(ctx context.Context, r PaymentRequest) (idempotency.Response, error) {
	panic("soon")
}
func (s *Service) Refund(ctx context.Context, r RefundRequest) (idempotency.Response, error) {
	panic("soon")
}
