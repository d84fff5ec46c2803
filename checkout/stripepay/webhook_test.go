package stripepay_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v79"
	"github.com/stripe/stripe-go/v79/webhook"

	"payonce/checkout"
	"payonce/checkout/stripepay"
)

const hookSecret = "whsec_0123456789abcdef0123456789abcdef"

// signed gives the two halves of a signature's header.
func signed(body string, at time.Time) (stamp, signature string) {
	return fmt.Sprintf("t=%d", at.Unix()), "v1=" + hex.EncodeToString(webhook.ComputeSignature(at, []byte(body), hookSecret))
}

func verify(body string, header string, now time.Time) (checkout.Event, error) {
	return stripepay.Verify([]byte(body), header, []string{hookSecret}, now)
}

// delivery is an event around an object.
func delivery(version, kind, object string) string {
	return fmt.Sprintf(`{"id":"evt_1","object":"event","type":%q,"api_version":%s,"created":1,"livemode":false,"data":{"object":%s}}`,
		kind, version, object)
}

var current = `"` + stripe.APIVersion + `"`

// TestACapturedDeliveryCannotBeReplayedLater: the time that is checked is the
// time that was signed.
func TestACapturedDeliveryCannotBeReplayedLater(t *testing.T) {
	t.Parallel()
	now := time.Now()
	body := delivery(current, "moon.phase", "{}")
	fresh, good := signed(body, now)
	stale, old := signed(body, now.Add(-time.Hour))
	_, err := verify(body, fresh+","+good, now)
	require.NoError(t, err)
	for _, header := range []string{
		stale + "," + old,
		fresh + "," + stale + "," + old,
		stale + "," + fresh + "," + old,
		fresh + "," + old + "," + stale,
		fresh + "," + old,
		fresh + "," + fresh + "," + good, // never Stripe's
		"t=," + fresh + "," + good,
		good,
	} {
		_, err := verify(body, header, now)
		require.Error(t, err, header)
	}
}

// TestAnotherVersionsObjectIsReadForItsIdsAlone: Stripe may add, drop and turn
// round whatever it likes there, and the event still says what to ask about.
func TestAnotherVersionsObjectIsReadForItsIdsAlone(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]struct {
		object string
		want   checkout.Event
	}{
		"an intent": {
			`{"object":"payment_intent","id":"pi_1","amount":{"value":"49.00"},"status":7,"latest_charge":[],"metadata":"none"}`,
			checkout.Event{IntentID: "pi_1"},
		},
		"a charge": {
			`{"object":"charge","id":"ch_1","amount":"49","payment_intent":{"id":"pi_1","amount":"49"}}`,
			checkout.Event{Charge: "ch_1", IntentID: "pi_1"},
		},
		"a refund": {
			`{"object":"refund","id":"re_1","charge":{"id":"ch_1","paid":"yes"},"payment_intent":"pi_1","metadata":[]}`,
			checkout.Event{Charge: "ch_1", IntentID: "pi_1"},
		},
		"a dispute":             {`{"object":"dispute","id":"du_1","amount":null,"status":{"now":"won"}}`, checkout.Event{DisputeID: "du_1"}},
		"an object of no shape": {`{"object":["charge"],"id":12}`, checkout.Event{}},
		"no object":             {`null`, checkout.Event{}},
		"a list":                {`[1,2]`, checkout.Event{}},
		"ids that are none":     {`{"object":"charge","id":"ch_\u0000","payment_intent":17}`, checkout.Event{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, version := range []string{`"2031-01-01.pebble"`, `null`} {
				body := delivery(version, "charge.whatever", given.object)
				require.True(t, json.Valid([]byte(body)), body)
				stamp, signature := signed(body, time.Now())
				got, err := verify(body, stamp+","+signature, time.Now())
				require.NoError(t, err)
				want := given.want
				want.ID, want.Type, want.Hint, want.CreatedAt = "evt_1", "charge.whatever", true, time.Unix(1, 0)
				require.Equal(t, want, got)
			}
		})
	}
	t.Run("and the same in our version is no event", func(t *testing.T) {
		t.Parallel()
		body := delivery(current, "payment_intent.succeeded", `{"object":"payment_intent","id":"pi_1","amount":"49"}`)
		stamp, signature := signed(body, time.Now())
		_, err := verify(body, stamp+","+signature, time.Now())
		require.ErrorIs(t, err, stripepay.ErrEvent)
	})
}
