package checkout

import (
	"context"
	"fmt"
	"time"
)

// MinEventRetention is the least that events must be kept: Stripe delivers an
// event again for three days, and a person can have it sent again for thirty.
const MinEventRetention = 31 * 24 * time.Hour

// ReapEventsOnce removes one batch of events that were handled longer than
// retention ago, and returns how many. What waits for a person stays.
func (s *Service) ReapEventsOnce(ctx context.Context, retention time.Duration) (int, error) {
	tag, err := s.pool.Exec(ctx, `
		DELETE FROM events WHERE id IN (
			SELECT id FROM events WHERE received_at < clock_timestamp() - $1::interval AND status NOT IN ('waiting', 'parked')
			 ORDER BY received_at LIMIT 500 FOR UPDATE SKIP LOCKED)`, retention)
	if err != nil {
		return 0, fmt.Errorf("reaping events: %w", err)
	}
	return int(tag.RowsAffected()), nil
}
