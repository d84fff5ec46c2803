package checkout

// KeepKeys is the reaper's condition, on the row k of idempotency_keys: a key
// whose payment or refund is not final is kept, however old it is.
const KeepKeys = `
	EXISTS (SELECT 1 FROM payments p WHERE p.account = k.scope AND p.key = k.key
	           AND p.status IN ('pending', 'requires_action', 'processing'))
	OR EXISTS (SELECT 1 FROM refunds r WHERE r.account = k.scope AND r.key = k.key AND r.status = 'pending')`
