//go:build mutants

package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mutant is one broken guarantee: changes of the code, and the test that must
// turn red for them.
type mutant struct {
	name string
	// breaks are the changes, made together: a guarantee that stands on two
	// lines is broken at both.
	breaks []change
	// red is the test that holds the guarantee, as go test -run takes it.
	pkg, red string
}

// change replaces old, which must stand exactly once in the file, by new.
type change struct{ file, old, new string }

// mutants break one rule each. What stands behind each name is what would
// happen to a buyer.
var mutants = []mutant{
	{"the slot's index is dropped", []change{{"migrations/00002_shop.sql", "CREATE UNIQUE INDEX payments_slot", "CREATE INDEX payments_slot"}}, "./checkout", "TestPay/TwoKeysOneOrderIsOneConfirm"},
	{"the claim overwrites", []change{{"idempotency/claim.go", "ON CONFLICT DO NOTHING` + returning", "ON CONFLICT (scope, key) DO UPDATE SET owner = excluded.owner` + returning"}}, "./idempotency", "TestClaim/OneThatIsNotCommittedYetIsWaitedFor"},
	{"the claim looks first", []change{
		{"idempotency/schema.sql", "    PRIMARY KEY (scope, key),\n    CONSTRAINT idempotency_keys_scope_length", "    CONSTRAINT idempotency_keys_scope_length"},
		{"idempotency/claim.go", "VALUES ($1, $2, $3, clock_timestamp() + $4::interval, $5, $6, 'in_progress', $7)\n\t    ON CONFLICT DO NOTHING` + returning", "SELECT $1::text, $2::text, $3::text, clock_timestamp() + $4::interval, $5::text, $6::bytea, 'in_progress', $7::bytea\n\t WHERE NOT EXISTS (SELECT 1 FROM idempotency_keys WHERE scope = $1 AND key = $2)` + returning"},
	}, "./idempotency", "TestClaim/OneThatIsNotCommittedYetIsWaitedFor"},
	{"the fingerprint is skipped", []change{{"idempotency/row.go", "return r.Operation == req.Operation &&", "return r.Operation == r.Operation || r.Operation == req.Operation &&"}}, "./checkout", "TestPay/SameKeyAnotherCardIsRefused"},
	{"the lease is ignored when reading", []change{{"idempotency/row.go", "coalesce(lease_until < clock_timestamp(), false),", "status = 'in_progress',"}}, "./idempotency", "TestWait/ALivingOwnerIsWaitedFor"},
	{"the lease is ignored when taking over", []change{{"idempotency/claim.go", "AND status = 'in_progress' AND lease_until < clock_timestamp()` + returning", "AND status = 'in_progress'` + returning"}}, "./idempotency", "TestTakeover"},
	{"the fence is skipped", []change{{"idempotency/record.go", "if tag.RowsAffected() == 0 {\n\t\t\treturn ErrFenced", "if tag.RowsAffected() < 0 {\n\t\t\treturn ErrFenced"}}, "./idempotency", "TestFence"},
	{"the fence does not lock", []change{{"idempotency/record.go", "AND attempt = $4 AND status = 'in_progress'\n\t\t   FOR UPDATE)`", "AND attempt = $4 AND status = 'in_progress')`"}}, "./idempotency", "TestFence"},
	{"the fence does not look at the status", []change{{"idempotency/record.go", "AND attempt = $4 AND status = 'in_progress'\n\t\t   FOR UPDATE`, c.fence()", "AND attempt = $4\n\t\t   FOR UPDATE`, c.fence()"}}, "./idempotency", "TestFence"},
	{"a vanished row is not claimed again", []change{{"idempotency/claim.go", "const claimTries = 3", "const claimTries = 1"}}, "./idempotency", "TestClaim"},
	{"a commit in doubt is looked up without a lock", []change{{"idempotency/row.go", "selectRow+\" FOR UPDATE\"", "selectRow+\" \""}}, "./idempotency", "TestCommitInDoubt"},
	{"the outcome is recorded on the request's context", []change{{"checkout/pay.go", "recording, done := detach(ctx, recordTimeout)\n\tdefer done()\n\tanswered", "recording, done := context.WithTimeout(ctx, recordTimeout)\n\tdefer done()\n\tanswered"}}, "./checkout", "TestPay/HangUpAfterTheClaimChangesNothing"},
	{"the call runs on the request's context", []change{{"checkout/pay.go", "calling, hangUp := detach(ctx, s.ProviderTimeout)", "calling, hangUp := context.WithTimeout(ctx, s.ProviderTimeout)"}}, "./checkout", "TestPay/HangUpAfterTheClaimChangesNothing"},
	{"requires_payment_method is taken for a decline", []change{{"checkout/call.go", "if c.challenged {\n\t\treturn verdict{outcome: outcomeDeclined", "if c != nil {\n\t\treturn verdict{outcome: outcomeDeclined"}}, "./checkout", "TestPay/ThirdTakeoverAsksAndCancels"},
	{"a dirty attempt is released", []change{{"checkout/call.go", "if c.claim.Clean() {\n\t\t\treturn c.refused(fault), true", "if c != nil {\n\t\t\treturn c.refused(fault), true"}}, "./checkout", "TestProtocol/ARefusalAfterATakeoverProvesNothing"},
	{"confirmed before the intent's id is stored", []change{{"checkout/call.go", "return c.checkpoint(ctx, intent.ID)", "c.order.Intent = intent.ID\n\treturn again, false"}}, "./checkout", "TestProtocol/NobodyConfirmsAnIntentWhoseIDIsNotStored"},
	{"the downstream key is made from the client's", []change{{"checkout/id.go", "return \"pay:\" + p.ID", "return \"pay:\" + p.Key"}}, "./checkout", "TestProtocol/AKeyThatWasReapedIsANewPayment"},
	{"the confirm is never repeated, nor canceled", []change{{"checkout/call.go", "intent, err = c.provider.CancelIntent(ctx, c.order.Intent, cancelKey(c.order, c.claim.Owner))", "err = nil"}}, "./checkout", "TestPay/ThirdTakeoverAsksAndCancels"},
	{"a hint ends a payment whose owner is at work", []change{
		{"checkout/settle.go", "waiting := p.Status == PaymentRequiresAction || p.Status == PaymentProcessing", "waiting := p.Status != PaymentSucceeded"},
		{"checkout/hint.go", "return v.order.Intent != \"\" && (v.payment.Status == PaymentRequiresAction || v.payment.Status == PaymentProcessing)", "return v.order.Intent != \"\""},
	}, "./checkout", "TestEvent/AnEarlierAttemptsFailureChangesNothingOnTheNext"},
	{"a released payment is retaken beside another", []change{{"checkout/pay.go", "SELECT 1 FROM payments WHERE account = $1 AND order_id = $2\n\t\t\t   AND status IN ('pending', 'requires_action', 'processing', 'succeeded'))\n\t\t   AND EXISTS", "SELECT 1 FROM payments WHERE false AND order_id = $2)\n\t\t   AND EXISTS"}}, "./checkout", "TestProtocol/AReleasedKeyIsRefusedBesideAnotherPayment"},
	{"no key is minted after an attempt without money", []change{{"checkout/settle.go", "if o.PaymentKey != p.Key {", "if o.PaymentKey == p.Key {"}}, "./checkout", "TestPay/DeclineReplaysAndTheNextKeyPays"},
	{"amount and order are not checked", []change{{"checkout/settle.go", "if in.Money != p.Price || in.Live != s.Live ||", "if false ||"}}, "./checkout", "TestEvent/AmountThatIsNotTheOrdersIsParked"},
	{"a running event is answered 200", []change{{"checkout/event.go", "return EventRunning, err", "return EventDuplicate, nil"}}, "./checkout", "TestEvent/ARunningDeliveryIsNotAnswered200"},
	{"an unknown event is forgotten", []change{{"checkout/event.go", "case errors.Is(err, ErrNotFound):\n\t\treturn s.postpone(ctx, e, err)", "case errors.Is(err, ErrNotFound):\n\t\treturn EventIgnored, nil"}}, "./checkout", "TestEvent/OursButNotKnownYetIsDeliveredAgainAndOneDayParked"},
	{"a signature from the future is good", []change{{"checkout/stripepay/webhook.go", "off > tolerance || off < -tolerance", "off > tolerance"}}, "./checkout", "TestEvent/ForgeriesChangeNothing/future"},
	{"expiry does not close first", []change{{"checkout/expiry.go", "UPDATE orders SET closing_at = coalesce(closing_at, clock_timestamp())", "UPDATE orders SET closing_at = closing_at"}}, "./checkout", "TestExpiry"},
	{"expiry looks away from a payment on its way", []change{
		{"checkout/expiry.go", "AND p.status IN ('pending', 'processing', 'succeeded'))\n\t\t\t ORDER BY", "AND false)\n\t\t\t ORDER BY"},
		{"checkout/expiry.go", "if busy || o.Status != OrderOpen", "if o.Status != OrderOpen"},
	}, "./checkout", "TestProtocol/ExpiryDoesNotCloseBesideAPaymentOnItsWay"},
	{"refunds are not reserved", []change{{"checkout/refunding.go", "g.payment.Refunded+g.reserved+amount > g.payment.Price.Amount", "g.payment.Refunded+amount > g.payment.Price.Amount"}}, "./checkout", "TestRefund"},
	{"what a committed claim has read is emptied", []change{{"checkout/pay.go", "queueLockOrder(tx, r.Account, r.Order, &a.order)\n\t\t\tswitch c.Origin", "*a = attempt{}\n\t\t\tqueueLockOrder(tx, r.Account, r.Order, &a.order)\n\t\t\tswitch c.Origin"}}, "./checkout", "TestClaimInDoubt/OfAFreshKeyPays"},
	{"an event is noted before its effect", []change{{"checkout/hint.go", "err = s.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {\n\t\tvar h held", "if also != nil {\n\t\tif err := s.justRecord(ctx, also); err != nil {\n\t\t\treturn settled{}, err\n\t\t}\n\t\talso = nil\n\t}\n\terr = s.ledger.Transact(ctx, func(ctx context.Context, tx *idempotency.Tx) error {\n\t\tvar h held"}}, "./e2e", "TestSweep/At/Webhook/KilledBefore"},
	{"a late refund is never sent again", []change{{"checkout/completer.go", "toSend = tag.RowsAffected() == 1", "toSend = tag.RowsAffected() < 0"}}, "./checkout", "TestLateRefund"},
	{"the SDK retries by itself", []change{{"checkout/stripepay/stripe.go", "MaxNetworkRetries: stripe.Int64(0)", "MaxNetworkRetries: stripe.Int64(2)"}}, "./checkout/stripepay", "TestReusedConnectionThatDiesIsNotSentAgain"},
	{"a lock timeout is taken for a refusal", []change{{"checkout/stripepay/fault.go", "if said.Code == stripe.ErrorCodeRateLimit {", "if said.Code != \"\" {"}}, "./checkout/stripepay", "TestEachAnswerProvesWhatItProves"},
	{"a takeover confirms under a key of its own", []change{{"checkout/call.go", "confirmKey(c.payment, c.order.Generation), Intent:", "confirmKey(c.payment, c.order.Generation) + \":\" + c.claim.Owner, Intent:"}}, "./checkout", "TestPay/ReplyLostIsUnknownThenFoundBySameKey"},
	{"a takeover confirms for ever", []change{{"checkout/call.go", "c.claim.Takeovers <= resendTakeovers && c.claim.Age", "c.claim.Age"}}, "./checkout", "TestPay/ThirdTakeoverAsksAndCancels"},
	{"a confirm is repeated after its window", []change{{"checkout/call.go", "c.claim.Age < c.ResendWindow && !c.order.PastTime", "!c.order.PastTime"}}, "./checkout", "TestProtocol/AConfirmIsNotRepeatedAfterItsWindow"},
	{"the completer confirms", []change{{"checkout/call.go", "if c.confirmed || c.absent {", "if c.confirmed {"}}, "./checkout", "TestCompleter/FinishesALostReplyWithoutTheBuyer"},
	{"an answer about an older state counts", []change{{"checkout/settle.go", "case in.Status != IntentCanceled && (p.Version", "case false && (p.Version"}}, "./checkout", "TestAnAnswerAboutAnOlderStateIsAskedAgain"},
	{"a stored failure is repeated", []change{{"checkout/call.go", "case FaultKeyMismatch, FaultStored:\n\t\treturn again, false", "case FaultKeyMismatch, FaultStored:\n\t\treturn verdict{fault: fault}, true"}}, "./checkout", "TestPay/StoredServerErrorEndsByCancelAndTheNextKeyPays"},
	{"the generation rises without a fence", []change{{"checkout/call.go", "generation = generation + 1, intent = NULL, intent_canceled = false FROM fence\n", "generation = generation + 1, intent = NULL, intent_canceled = false FROM (SELECT count($2::text || $3::text || $4::int) FROM fence) AS open\n"}}, "./checkout", "TestGeneration/AZombieOpensNone"},
	{"an intent is stored without a fence", []change{{"checkout/call.go", "UPDATE orders SET intent = $5 FROM fence\n\t\t\t WHERE account = $1 AND id = $6 AND generation = $7 AND intent IS NULL", "UPDATE orders SET intent = $5 FROM (SELECT count(*) FROM fence) AS open\n\t\t\t WHERE account = $1 AND id = $6 AND generation = $7"}}, "./checkout", "TestGeneration/AZombiesIntentIsNotStored"},
	{"a claim does not look at the order", []change{{"checkout/pay.go", "FROM orders WHERE account = $1 AND id = $2 AND status = 'open' AND closing_at IS NULL\n\t\t    ON CONFLICT DO NOTHING", "FROM orders WHERE account = $1 AND id = $2\n\t\t    ON CONFLICT DO NOTHING"}}, "./checkout", "TestExpiry/UntouchedOrderExpiresAndTheCourseCanBeOrderedAgain"},
	{"a retake does not look at the order", []change{{"checkout/pay.go", "AND EXISTS (SELECT 1 FROM orders WHERE account = $1 AND id = $2 AND status = 'open' AND closing_at IS NULL)", "AND $2 <> ''"}}, "./checkout", "TestExpiry/AReleasedKeyCannotPayAnExpiredOrder"},
	{"a payment that waits for the bank holds no slot", []change{{"migrations/00002_shop.sql", "ON payments (account, order_id)\n    WHERE status IN ('pending', 'requires_action', 'processing', 'succeeded')", "ON payments (account, order_id)\n    WHERE status IN ('pending', 'processing', 'succeeded')"}}, "./checkout", "TestAction/AnotherCardIsRefusedUntilCanceledAndThenChargesOnce"},
	{"no key is minted after a cancel", []change{{"checkout/settle.go", "return s.ended(tx, o, p, NewProblem(p.Code))", "o.PaymentKey += \" \"\n\treturn s.ended(tx, o, p, NewProblem(p.Code))"}}, "./checkout", "TestAction/AnotherCardIsRefusedUntilCanceledAndThenChargesOnce"},
	{"a conflict is stored", []change{{"checkout/pay.go", "if err := s.whoHoldsSlot(ctx, r); err != nil || try == slotTries {", "if stored, err := s.ledger.Do(ctx, req, func(context.Context, *idempotency.Tx) (idempotency.Response, error) {\n\t\t\treturn NewProblem(\"payment_in_progress\").Response(), nil\n\t\t}); err == nil {\n\t\t\treturn nil, &stored, nil\n\t\t}\n\t\tif err := s.whoHoldsSlot(ctx, r); err != nil || try == slotTries {"}}, "./checkout", "TestProtocol/AConflictIsNotStoredUnderTheKeyThatMetIt"},
	{"a resend may outlive Stripe's keys", []change{{"cmd/shop/config.go", "case c.ResendWindow <= 0 || c.ResendWindow+c.Lease >= stripeKeptFor:", "case c.ResendWindow <= 0:"}}, "./e2e", "TestStart/RefusesAResendThatOutlivesStripesKeys"},
	{"a webhook locks the order first", []change{{"checkout/hint.go", "idempotency.LockKey(tx, v.order.Account, idempotency.Key(v.payment.Key))\n\t\tqueueLockOrder(tx, v.order.Account, v.order.ID, &h.order)", "queueLockOrder(tx, v.order.Account, v.order.ID, &h.order)\n\t\tidempotency.LockKey(tx, v.order.Account, idempotency.Key(v.payment.Key))"}}, "./checkout", "TestLocksAreTakenInOneOrder/AnEvent"},
	{"a refund is sent again when Stripe has forgotten it", []change{{"checkout/refunding.go", "if !first && g.refund.SentAgo >= repeatRefund {", "if false {"}}, "./checkout", "TestProtocol/ARefundIsNotSentAgainWhenStripeHasForgottenIt"},
	{"a refund is released after one that may be on its way", []change{{"checkout/refunding.go", "case first && (fault.Fault == FaultNotSent", "case (fault.Fault == FaultNotSent"}}, "./checkout", "TestProtocol/ARefusedRepeatOfARefundProvesNothing"},
	{"canceled of an older generation counts", []change{
		{"checkout/settle.go", "case !waiting || in.ID != o.Intent:", "case !waiting:"},
		{"checkout/event.go", "if intent.Status != IntentSucceeded || !e.Hint && e.Type != \"payment_intent.succeeded\" {", "if intent.Status != IntentCanceled && (intent.Status != IntentSucceeded || !e.Hint && e.Type != \"payment_intent.succeeded\") {"},
	}, "./checkout", "TestGeneration/CanceledOfAnOlderOneChangesNothing"},
	{"a pending refund counts as given back", []change{{"checkout/refund_record.go", "WHERE account = $1 AND payment_id = $2 AND status = 'succeeded')\n\t\t WHERE", "WHERE account = $1 AND payment_id = $2 AND status <> 'failed')\n\t\t WHERE"}}, "./checkout", "TestCompleter/AsksAboutAPendingRefund"},
	{"money for a payment that had ended is dropped", []change{{"checkout/settle.go", "WHERE account = $1 AND id = $2 AND status <> 'succeeded'`", "WHERE account = $1 AND id = $2 AND status IN ('pending', 'requires_action', 'processing')`"}}, "./checkout", "TestProtocol/MoneyIsRecordedWhateverWasBelieved"},
	{"the client's half forgets a lost send", []change{{"idempotency/retry/retry.go", "if !p.SafeNewKey || r.doubt && !r.settles() {", "if !p.SafeNewKey {"}}, "./idempotency/retry", "TestDo/ALostSendIsNotForgotten"},
}

// TestMutants breaks one guarantee after the other in a copy of the tree, and
// demands that the test which is named for it turns red. A mutant that survives
// is a guarantee that nobody holds. Before that, every test that is named must be
// green on the tree as it is: one that is red anyway, or that cannot run, would
// be taken for proof.
func TestMutants(t *testing.T) {
	tree := copyTree(t)
	only := regexp.MustCompile(os.Getenv("MUTANT")) // a pattern of names; empty: all
	chosen := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return !only.MatchString(m.name) })
	require.NotEmpty(t, chosen, "MUTANT names none")
	requireGreen(t, tree, chosen)
	survivors := 0
	for _, m := range chosen {
		began := time.Now()
		restore := apply(t, tree, m)
		out, red := turnsRed(t, tree, m)
		restore()
		verdict := "red"
		if !red {
			verdict = "SURVIVED"
			survivors++
			t.Errorf("%s: %s did not turn red\n%s", m.name, m.red, tail(out))
		}
		fmt.Printf("%-9s %-55s %s %s (%s)\n", verdict, m.name, m.pkg, m.red, time.Since(began).Round(time.Second))
	}
	fmt.Printf("%d mutants, %d survivors\n", len(chosen), survivors)
}

// requireGreen runs the tests that the mutants name, each once, on the unbroken
// copy.
func requireGreen(t *testing.T, tree string, chosen []mutant) {
	t.Helper()
	tests := map[string][]string{}
	for _, m := range chosen {
		if !slices.Contains(tests[m.pkg], m.red) {
			tests[m.pkg] = append(tests[m.pkg], m.red)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		began := time.Now()
		patterns := make([]string, 0, len(tests[pkg]))
		for _, name := range tests[pkg] {
			patterns = append(patterns, pattern(name))
		}
		out, err := goTest(t, tree, "15m", pkg, strings.Join(patterns, "|"), "-v")
		require.NoError(t, err, "%s must be green before anything is broken:\n%s", pkg, tail(out))
		for _, name := range tests[pkg] {
			require.Regexp(t, `(?m)^ *--- PASS: `+regexp.QuoteMeta(name)+` \(`, string(out), "%s: %s did not run, or was skipped", pkg, name)
		}
		fmt.Printf("%-9s %d tests of %s (%s)\n", "green", len(tests[pkg]), pkg, time.Since(began).Round(time.Second))
	}
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
	whole := map[string][]byte{}
	for _, c := range m.breaks {
		path := filepath.Join(tree, c.file)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		if whole[path] == nil {
			whole[path] = content
		}
		require.Equal(t, 1, bytes.Count(content, []byte(c.old)), "%s: the code to break must stand once in %s:\n%s", m.name, c.file, c.old)
		require.NoError(t, os.WriteFile(path, bytes.Replace(content, []byte(c.old), []byte(c.new), 1), 0o644))
	}
	return func() {
		for path, content := range whole {
			require.NoError(t, os.WriteFile(path, content, 0o644))
		}
	}
}

// turnsRed runs the mutant's test. Only that test's own failure is red: a mutant
// that does not compile proves nothing, and nor does a run that ended because its
// time was up.
func turnsRed(t *testing.T, tree string, m mutant) (out []byte, red bool) {
	t.Helper()
	out, err := goTest(t, tree, "5m", m.pkg, pattern(m.red))
	require.NotContains(t, string(out), "[build failed]", "%s does not compile:\n%s", m.name, out)
	require.NotContains(t, string(out), "no tests to run", "%s: no test is named %s", m.name, m.red)
	require.NotContains(t, string(out), "panic: test timed out", "%s: %s did not end", m.name, m.red)
	failed := regexp.MustCompile(`(?m)^ *--- FAIL: ` + regexp.QuoteMeta(m.red) + `[ /]`)
	return out, err != nil && failed.Match(out)
}

// goTest runs tests of the copy.
func goTest(t *testing.T, tree, timeout, pkg, run string, flags ...string) ([]byte, error) {
	t.Helper()
	args := append([]string{"test", "-vet=off", "-count=1", "-timeout=" + timeout, "-run", run}, flags...)
	test := exec.CommandContext(t.Context(), "go", append(args, pkg)...)
	test.Dir = tree
	return test.CombinedOutput()
}

// pattern anchors each part of a test's name.
func pattern(name string) string {
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
