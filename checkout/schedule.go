package checkout

import (
	"time"

	"payonce/idempotency"
)

// The completer's schedules: soon at first, then rarely, then the row waits
// visibly for a person. Each entry is the pause before the next try.
var (
	// keySchedule is for keys whose owner is gone. The first pause leaves a
	// buyer's own retry the first go: it may confirm, the completer only cancels.
	// Together they are longer than forgottenRefund, after which every refund can
	// be ended.
	keySchedule = idempotency.Schedule{
		5 * time.Second, 10 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 24 * time.Hour,
	}
	// processingSchedule is for payments that Stripe is settling.
	processingSchedule = idempotency.Schedule{
		5 * time.Second, 15 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 24 * time.Hour, 72 * time.Hour,
	}
	// actionSchedule is for payments that wait for the buyer's bank; the first
	// pause is the action timeout.
	actionSchedule = idempotency.Schedule{
		time.Minute, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
	}
	// refundSchedule is for refunds that Stripe has not settled, which can take
	// days, and for those that are still to be sent.
	refundSchedule = idempotency.Schedule{
		10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 24 * time.Hour, 72 * time.Hour, 168 * time.Hour,
	}
	// orderSchedule is for orders whose time is over.
	orderSchedule = idempotency.Schedule{
		10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
	}
)
