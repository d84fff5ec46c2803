//go:build mutants

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mutant is one broken guarantee: a change of the code, and the test that must
// turn red for it.
type mutant struct {
	name string
	file string
	// old must stand exactly once in the file; it is replaced by new.
	old, new string
	// red is the test that holds the guarantee, as go test -run takes it.
	pkg, red string
}

// mutants break one rule each. What stands behind each name is what would
// happen to a buyer.
var mutants = []mutant{
	{"the slot's index is dropped", "migrations/00002_shop.sql", "CREATE UNIQUE INDEX payments_slot", "CREATE INDEX payments_slot", "./checkout", "TestPay/TwoKeysOneOrderIsOneConfirm"},
	{"the claim overwrites", "idempotency/claim.go", "ON CONFLICT DO NOTHING` + returning", "ON CONFLICT (scope, key) DO UPDATE SET owner = excluded.owner` + returning", "./checkout", "TestPay/ConcurrentDuplicatesChargeOnce"},
	{"the fingerprint is skipped", "idempotency/row.go", "return r.Operation == req.Operation &&", "return r.Operation == r.Operation || r.Operation == req.Operation &&", "./checkout", "TestPay/SameKeyAnotherCardIsRefused"},
	{"the lease is ignored when reading", "idempotency/row.go", "coalesce(lease_until < clock_timestamp(), false),", "status = 'in_progress',", "./idempotency", "TestWait"},
	{"the lease is ignored when taking over", "idempotency/claim.go", "AND status = 'in_progress' AND lease_until < clock_timestamp()` + returning", "AND status = 'in_progress'` + returning", "./idempotency", "TestTakeover"},
	{"the fence is skipped", "idempotency/record.go", "if tag.RowsAffected() == 0 {\n\t\t\treturn ErrFenced", "if tag.RowsAffected() < 0 {\n\t\t\treturn ErrFenced", "./idempotency", "TestFence"},
	{"the fence does not lock", "idempotency/record.go", "AND attempt = $4 AND status = 'in_progress'\n\t\t   FOR UPDATE)`", "AND attempt = $4 AND status = 'in_progress')`", "./idempotency", "TestFence"},
	{"the fence does not look at the status", "idempotency/record.go", "AND attempt = $4 AND status = 'in_progress'\n\t\t   FOR UPDATE`, c.fence()", "AND attempt = $4\n\t\t   FOR UPDATE`, c.fence()", "./idempotency", "TestFence"},
	{"a vanished row is not claimed again", "idempotency/claim.go", "const claimTries = 3", "const claimTries = 1", "./idempotency", "TestClaim"},
	{"a commit in doubt is looked up without a lock", "idempotency/row.go", "selectRow+\" FOR UPDATE\"", "selectRow+\" \"", "./idempotency", "TestCommitInDoubt"},
	{"the outcome is recorded on the request's context", "checkout/pay.go", "recording, done := detach(ctx, recordTimeout)\n\tdefer done()\n\tanswered", "recording, done := context.WithTimeout(ctx, recordTimeout)\n\tdefer done()\n\tanswered", "./checkout", "TestPay/HangUpAfterTheClaimChangesNothing"},
	{"the call runs on the request's context", "checkout/pay.go", "calling, hangUp := detach(ctx, s.ProviderTimeout)", "calling, hangUp := context.WithTimeout(ctx, s.ProviderTimeout)", "./checkout", "TestPay/HangUpAfterTheClaimChangesNothing"},
	{"requires_payment_method is taken for a decline", "checkout/call.go", "if c.challenged {\n\t\treturn verdict{outcome: outcomeDeclined", "if c != nil {\n\t\treturn verdict{outcome: outcomeDeclined", "./checkout", "TestPay/ThirdTakeoverAsksAndCancels"},
	{"a dirty attempt is released", "checkout/call.go", "if c.claim.Clean() {\n\t\t\treturn c.refused(fault), true", "if c != nil {\n\t\t\treturn c.refused(fault), true", "./checkout", "TestProtocol/ARefusalAfterATakeoverProvesNothing"},
	{"confirmed before the intent's id is stored", "checkout/call.go", "return c.checkpoint(ctx, intent.ID)", "c.order.Intent = intent.ID\n\treturn again, false", "./checkout", "TestProtocol/NobodyConfirmsAnIntentWhoseIDIsNotStored"},
	{"the downstream key is made from the client's", "checkout/id.go", "return \"pay:\" + p.ID", "return \"pay:\" + p.Key", "./checkout", "TestProtocol/AKeyThatWasReapedIsANewPayment"},
	{"the confirm is never repeated, nor canceled", "checkout/call.go", "intent, err = c.provider.CancelIntent(ctx, c.order.Intent, cancelKey(c.order, c.claim.Owner))", "err = nil", "./checkout", "TestPay/ThirdTakeoverAsksAndCancels"},
	{"a hint ends a payment whose owner is at work", "checkout/settle.go", "waiting := p.Status == PaymentRequiresAction || p.Status == PaymentProcessing", "waiting := p.Status != PaymentSucceeded", "./checkout", "TestEvent/AnEarlierAttemptsFailureChangesNothingOnTheNext"},
	{"a released payment is retaken beside another", "checkout/pay.go", "SELECT 1 FROM payments WHERE account = $1 AND order_id = $2\n\t\t\t   AND status IN ('pending', 'requires_action', 'processing', 'succeeded'))\n\t\tRETURNING", "SELECT 1 FROM payments WHERE false AND order_id = $2)\n\t\tRETURNING", "./checkout", "TestPay/RateLimitFreesTheSlotForAnotherCard"},
	{"no key is minted after an attempt without money", "checkout/settle.go", "if o.PaymentKey != p.Key {", "if o.PaymentKey == p.Key {", "./checkout", "TestPay/DeclineReplaysAndTheNextKeyPays"},
	{"amount and order are not checked", "checkout/settle.go", "if in.Money != p.Price || in.Live != s.Live ||", "if false ||", "./checkout", "TestEvent/AmountThatIsNotTheOrdersIsParked"},
	{"a running event is answered 200", "checkout/event.go", "return EventRunning, err", "return EventDuplicate, nil", "./checkout", "TestEvent/ARunningDeliveryIsNotAnswered200"},
	{"an unknown event is forgotten", "checkout/event.go", "case err != nil:\n\t\treturn EventNotYet, err", "case err != nil:\n\t\treturn EventIgnored, nil", "./checkout", "TestEvent/OursButNotKnownYetIsDeliveredAgainAndOneDayParked"},
	{"a signature from the future is good", "checkout/stripepay/webhook.go", "off > tolerance || off < -tolerance", "off > tolerance", "./checkout", "TestEvent/ForgeriesChangeNothing/future"},
	{"expiry does not close first", "checkout/expiry.go", "UPDATE orders SET closing_at = coalesce(closing_at, clock_timestamp())", "UPDATE orders SET closing_at = closing_at", "./checkout", "TestExpiry"},
	{"expiry looks away from a payment on its way", "checkout/expiry.go", "AND p.status IN ('pending', 'processing', 'succeeded'))\n\t\t\t ORDER BY", "AND false)\n\t\t\t ORDER BY", "./checkout", "TestExpiry"},
	{"refunds are not reserved", "checkout/refunding.go", "g.payment.Refunded+g.reserved+amount > g.payment.Price.Amount", "g.payment.Refunded+amount > g.payment.Price.Amount", "./checkout", "TestRefund"},
	{"what a committed claim has read is emptied", "checkout/pay.go", "queueLockOrder(tx, r.Account, r.Order, &a.order)\n\t\t\tswitch c.Origin", "*a = attempt{}\n\t\t\tqueueLockOrder(tx, r.Account, r.Order, &a.order)\n\t\t\tswitch c.Origin", "./checkout", "TestClaimInDoubt/OfAFreshKeyPays"},
	{"an event is noted before its effect", "checkout/hint.go", "err = s.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {\n\t\tvar h held", "if also != nil {\n\t\tif err := s.justRecord(ctx, also); err != nil {\n\t\t\treturn settled{}, err\n\t\t}\n\t\talso = nil\n\t}\n\terr = s.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {\n\t\tvar h held", "./e2e", "TestSweep/At/Webhook/KilledBefore"},
	{"a late refund is never sent again", "checkout/completer.go", "toSend = tag.RowsAffected() == 1", "toSend = tag.RowsAffected() < 0", "./checkout", "TestLateRefund"},
	{"the SDK retries by itself", "checkout/stripepay/stripe.go", "MaxNetworkRetries: stripe.Int64(0)", "MaxNetworkRetries: stripe.Int64(2)", "./checkout/stripepay", "."},
	{"a lock timeout is taken for a refusal", "checkout/stripepay/fault.go", "if said.Code == stripe.ErrorCodeRateLimit {", "if said.Code != \"\" {", "./checkout/stripepay", "."},
}

// TestMutants breaks one guarantee after the other in a copy of the tree, and
// demands that the test which is named for it turns red. A mutant that survives
// is a guarantee that nobody holds.
func TestMutants(t *testing.T) {
	tree := copyTree(t)
	only := regexp.MustCompile(os.Getenv("MUTANT")) // a pattern of names; empty: all
	survivors, tried := 0, 0
	for _, m := range mutants {
		if !only.MatchString(m.name) {
			continue
		}
		tried++
		began := time.Now()
		restore := apply(t, tree, m)
		out, red := turnsRed(t, tree, m)
		restore()
		verdict := "red"
		if !red {
			verdict = "SURVIVED"
			survivors++
			t.Errorf("%s: %s stayed green\n%s", m.name, m.red, tail(out))
		}
		fmt.Printf("%-9s %-55s %s %s (%s)\n", verdict, m.name, m.pkg, m.red, time.Since(began).Round(time.Second))
	}
	require.Positive(t, tried, "MUTANT names none")
	fmt.Printf("%d mutants, %d survivors\n", tried, survivors)
}

// copyTree copies what git tracks, as it is now, to a folder of its own.
func copyTree(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	tree := t.TempDir()
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		target := filepath.Join(tree, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
		require.NoError(t, os.WriteFile(target, content, 0o644))
	}
	return tree
}

// apply breaks the guarantee, and returns what mends it.
func apply(t *testing.T, tree string, m mutant) (restore func()) {
	t.Helper()
	path := filepath.Join(tree, m.file)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(content, []byte(m.old)), "%s: the code to break must stand once in %s:\n%s", m.name, m.file, m.old)
	require.NoError(t, os.WriteFile(path, bytes.Replace(content, []byte(m.old), []byte(m.new), 1), 0o644))
	return func() { require.NoError(t, os.WriteFile(path, content, 0o644)) }
}

// turnsRed runs the mutant's test. A mutant that does not compile proves
// nothing; one that hangs is as red as one that fails.
func turnsRed(t *testing.T, tree string, m mutant) (out []byte, red bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	test := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-timeout=2m", "-run", pattern(m.red), m.pkg)
	test.Dir = tree
	out, err := test.CombinedOutput()
	require.NotContains(t, string(out), "[build failed]", "%s does not compile:\n%s", m.name, out)
	require.NotContains(t, string(out), "no tests to run", "%s: no test is named %s", m.name, m.red)
	return out, err != nil && (bytes.Contains(out, []byte("--- FAIL: ")) || bytes.Contains(out, []byte("panic: ")))
}

// pattern anchors each part of a test's name.
func pattern(name string) string {
	if name == "." {
		return name
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + part + "$"
	}
	return strings.Join(parts, "/")
}

func tail(out []byte) string {
	if len(out) > 2000 {
		out = out[len(out)-2000:]
	}
	return string(out)
}
