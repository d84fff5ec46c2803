package checkout

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// offers reads courses as one account meets them: $1 is the account.
const offers = `
	SELECT c.slug, c.title, c.summary, c.amount, c.currency,
	       EXISTS (SELECT 1 FROM enrolments e WHERE e.account = $1 AND e.course = c.slug AND e.status = 'active'),
	       coalesce((SELECT o.id FROM orders o
	                  WHERE o.account = $1 AND o.course = c.slug AND o.status = 'open' AND o.closing_at IS NULL), '')
	  FROM courses c`

func scanOffer(from pgx.CollectableRow) (o Offer, err error) {
	c := &o.Course
	err = from.Scan(&c.Slug, &c.Title, &c.Summary, &c.Price.Amount, &c.Price.Currency, &o.Owned, &o.OpenOrder)
	return o, err
}

// Catalogue lists all courses, in the order of the page.
func (s *Service) Catalogue(ctx context.Context, account string) ([]Offer, error) {
	rows, _ := s.pool.Query(ctx, offers+` ORDER BY c.position, c.slug`, account)
	list, err := pgx.CollectRows(rows, scanOffer)
	if err != nil {
		return nil, fmt.Errorf("reading the catalogue: %w", err)
	}
	return list, nil
}

// Offer gives one course. It returns ErrNotFound if there is none.
func (s *Service) Offer(ctx context.Context, account, slug string) (Offer, error) {
	if !validSlug(slug) {
		return Offer{}, ErrNotFound
	}
	rows, _ := s.pool.Query(ctx, offers+` WHERE c.slug = $2`, account, slug)
	o, err := pgx.CollectExactlyOneRow(rows, scanOffer)
	if err := found(err); err != nil {
		return Offer{}, fmt.Errorf("reading course %q: %w", slug, err)
	}
	return o, nil
}
