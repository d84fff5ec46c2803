package checkout

import "context"

// AccountOf gives the account of a payment, for an operator who has only its
// id. It returns ErrNotFound.
func (s *Service) AccountOf(ctx context.Context, payment string) (account string, err error) {
	if !ourID.MatchString(payment) {
		return "", ErrNotFound
	}
	err = found(s.pool.QueryRow(ctx, `SELECT account FROM payments WHERE id = $1`, payment).Scan(&account))
	return account, err
}
