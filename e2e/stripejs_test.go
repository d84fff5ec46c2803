package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// Stripe.js may be loaded from Stripe alone, and these tests speak to nobody
// outside. So the requests for it are answered by a stand-in: as much of it as
// the page uses, the form in a frame of another origin, and tokens by a request
// to Stripe's API, so that the page's policy is tried as well. What it says of
// the real one is what Stripe's documentation says.
const stripeJS = `
	function asked(frame, question) {
		return new Promise((resolve) => {
			addEventListener("message", function answered(event) {
				if (event.source !== frame.contentWindow) return;
				removeEventListener("message", answered);
				resolve(event.data);
			});
			frame.contentWindow.postMessage(question, "https://js.stripe.com");
		});
	}
	window.Stripe = (key, settings) => {
		let frame;
		window.stripeSaw = { key, settings, updates: [] };
		return {
			elements(options) {
				window.stripeSaw.options = options;
				return {
					create(kind, settings) {
						window.stripeSaw.kind = kind;
						const on = {};
						return {
							on(event, call) { on[event] = call; },
							mount(place) {
								frame = Object.assign(document.createElement("iframe"), { title: "Card form", width: "100%", height: 90, src: "https://js.stripe.com/v3/card-form.html" });
								frame.onload = () => on.ready?.({ elementType: kind });
								place.append(frame);
							},
						};
					},
					update(options) { window.stripeSaw.updates.push(options); },
					submit: async () => (await asked(frame, "number")) ? {} : { error: { type: "validation_error", message: "Your card number is incomplete." } },
				};
			},
			async createConfirmationToken({ elements, params }) {
				const number = await asked(frame, "number");
				try {
					const answer = await fetch("https://api.stripe.com/v1/confirmation_tokens", { method: "POST", body: new URLSearchParams({ key, number, return_url: params.return_url }) });
					return { confirmationToken: await answer.json() };
				} catch {
					return { error: { type: "api_connection_error", message: "no connection" } };
				}
			},
			async handleNextAction({ clientSecret }) {
				const answer = await fetch("https://api.stripe.com/v1/3ds2/authenticate", { method: "POST", body: new URLSearchParams({ client_secret: clientSecret }) });
				return answer.ok ? { paymentIntent: await answer.json() } : { error: { type: "invalid_request_error" } };
			},
		};
	};`

// cardForm is what stands in the frame.
const cardForm = `<!DOCTYPE html><html lang="en"><title>Card form</title><label>Card number <input autocomplete="off"></label><script>
	addEventListener("message", (event) => event.source.postMessage(document.querySelector("input").value.replaceAll(" ", ""), event.origin));
</script>`

// What a page asks of Stripe.
const (
	stripeJSAddress = "https://js.stripe.com/v3/"
	formAddress     = "https://js.stripe.com/v3/card-form.html"
	tokensAddress   = "https://api.stripe.com/v1/confirmation_tokens"
	bankAddress     = "https://api.stripe.com/v1/3ds2/authenticate"
)

// The cards of these tests, and as what the local Stripe knows them.
const (
	goodCard     = "4242 4242 4242 4242"
	otherCard    = "5555 5555 5555 4444"
	declinedCard = "4000 0000 0000 0002"
	askedCard    = "4000 0027 6000 3184"
)

var cards = map[string]string{
	goodCard: "pm_card_visa", otherCard: "pm_card_mastercard", declinedCard: "pm_card_chargeDeclined", askedCard: "pm_card_authenticationRequired",
}

// elementShop is a shop that has test keys of Stripe, both of them, and the local
// Stripe as its API.
func elementShop(t *testing.T, s ...string) (*deployment, *shop) {
	t.Helper()
	sim, err := stripesim.New(stripesim.Config{DeliverAfter: time.Millisecond})
	require.NoError(t, err)
	server := httptest.NewServer(sim)
	t.Cleanup(func() { require.NoError(t, sim.Close()); server.Close() })
	database := newDatabase(t)
	pool, err := pgxpool.New(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	d := &deployment{t: t, dataDir: newFolder(t), pool: pool, stripe: &stripe{addr: server.Listener.Addr().String()}, seen: map[sighting]bool{}}
	addr := freeAddress(t)
	d.settings = append(s, "DATABASE_URL="+database, "DATA_DIR="+d.dataDir, "SESSION_SECRET="+sessionSecret,
		"STRIPE_SECRET_KEY=sk_test_local", "STRIPE_PUBLISHABLE_KEY=pk_test_local", "STRIPE_API_BASE="+server.URL,
		"STRIPE_WEBHOOK_SECRET="+d.stripe.endpoint(t, "http://"+addr+"/webhooks/stripe"))
	t.Cleanup(func() {
		if t.Failed() {
			d.endRemains()
			return
		}
		requireInvariants(t, d)
		requireNoLeaks(t, d)
		for _, opened := range d.shops {
			opened.close(t)
		}
	})
	return d, d.openAt(t, addr)
}

// cardholder is a person with a browser and a card, at a shop whose card form is
// Stripe's.
type cardholder struct {
	*window
	mu     sync.Mutex
	paid   []tokenPayment
	tokens []string // made by Stripe, in order
	typed  []string
	shown  []string // what the shop was sent
	away   []string // addresses that something keeps away
	hold   bool
	held   []playwright.Route // requests for a token that wait
}

// tokenPayment is a payment that a page sent.
type tokenPayment struct{ key, token string }

// cardholder opens a window for somebody with a card.
func (d *deployment) cardholder(t *testing.T, at *shop, options ...func(*playwright.BrowserNewContextOptions)) *cardholder {
	t.Helper()
	c := &cardholder{window: d.browse(t, at, options...)}
	t.Cleanup(c.requireCardsKept)
	for address, answer := range map[string]func(playwright.Route){
		stripeJSAddress: reply("text/javascript", stripeJS),
		formAddress:     reply("text/html", cardForm),
		tokensAddress:   c.asked,
		bankAddress:     c.authenticate,
	} {
		c.intercept(address, func(r playwright.Route) {
			if c.isAway(address) {
				_ = r.Abort("blockedbyclient")
				return
			}
			answer(r)
		})
	}
	c.context.OnRequest(c.noteToken)
	return c
}

// keepAway is a network or an extension that keeps an address away; letIn ends it.
func (c *cardholder) keepAway(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = append(c.away, address)
}

func (c *cardholder) letIn(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = slices.DeleteFunc(c.away, func(a string) bool { return a == address })
}

func (c *cardholder) isAway(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.away, address)
}

// holdTokens lets Stripe take its time over tokens; release ends it.
func (c *cardholder) holdTokens() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold = true
}

func (c *cardholder) release() {
	c.mu.Lock()
	held := c.held
	c.hold, c.held = false, nil
	c.mu.Unlock()
	for _, r := range held {
		c.make(r)
	}
}

func reply(kind, body string) func(playwright.Route) {
	return func(r playwright.Route) {
		_ = r.Fulfill(playwright.RouteFulfillOptions{ContentType: &kind, Body: body})
	}
}

// asked answers a request for a token, or lets it wait.
func (c *cardholder) asked(r playwright.Route) {
	c.mu.Lock()
	if c.hold {
		c.held = append(c.held, r)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.make(r)
}

// make makes a token at the local Stripe, as the real one does for Stripe.js.
func (c *cardholder) make(r playwright.Route) {
	body, _ := r.Request().PostData()
	sent, _ := url.ParseQuery(body)
	method := ""
	for number, of := range cards {
		if strings.ReplaceAll(number, " ", "") == sent.Get("number") {
			method = of
		}
	}
	answer, id := c.d.stripe.confirmationToken(c.t, method, sent.Get("return_url"))
	c.mu.Lock()
	c.tokens = append(c.tokens, id)
	c.mu.Unlock()
	_ = r.Fulfill(playwright.RouteFulfillOptions{
		ContentType: playwright.String("application/json"), Body: answer, Headers: map[string]string{"Access-Control-Allow-Origin": "*"},
	})
}

// authenticate is the buyer's answer to the bank, which the local Stripe takes for
// the client secret of the intent alone.
func (c *cardholder) authenticate(r playwright.Route) {
	body, _ := r.Request().PostData()
	sent, _ := url.ParseQuery(body)
	id, _, _ := strings.Cut(sent.Get("client_secret"), "_secret_")
	var intent struct {
		ClientSecret string `json:"client_secret"`
	}
	status := http.StatusUnauthorized
	c.d.stripe.call(c.t, http.MethodGet, "/v1/payment_intents/"+id, nil, &intent)
	if intent.ClientSecret == sent.Get("client_secret") {
		c.d.stripe.call(c.t, http.MethodPost, "/_sim/payment_intents/"+id+"/finish?outcome=succeeded", nil, nil)
		status = http.StatusOK
	}
	_ = r.Fulfill(playwright.RouteFulfillOptions{
		Status: &status, ContentType: playwright.String("application/json"), Body: `{"id":"` + id + `"}`, Headers: map[string]string{"Access-Control-Allow-Origin": "*"},
	})
}

// confirmationToken makes one for a card.
func (s *stripe) confirmationToken(t testing.TB, method, returnURL string) (answer, id string) {
	form := url.Values{"payment_method": {method}, "return_url": {returnURL}}
	r, err := http.NewRequest(http.MethodPost, "http://"+s.addr+"/v1/test_helpers/confirmation_tokens", strings.NewReader(form.Encode()))
	if err != nil {
		t.Errorf("asking for a token: %v", err)
		return
	}
	r.SetBasicAuth("sk_test_local", "")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := plainClient.Do(r)
	if err != nil {
		t.Errorf("asking for a token: %v", err)
		return
	}
	defer func() { _ = got.Body.Close() }()
	text, _ := io.ReadAll(got.Body)
	var token struct{ ID string }
	if json.Unmarshal(text, &token) != nil || token.ID == "" {
		t.Errorf("no token for %q: %s", method, text)
	}
	return string(text), token.ID
}

// noteToken keeps what the shop is sent.
func (c *cardholder) noteToken(r playwright.Request) {
	to, err := url.Parse(r.URL())
	if err != nil || to.Scheme+"://"+to.Host != c.url {
		return
	}
	body, _ := r.PostData()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = append(c.shown, r.URL()+" "+body+fmt.Sprint(r.Headers()))
	if r.Method() != http.MethodPost || !strings.HasSuffix(to.Path, "/payments") {
		return
	}
	var sent struct {
		Token string `json:"confirmation_token"`
	}
	_ = json.Unmarshal([]byte(body), &sent)
	c.paid = append(c.paid, tokenPayment{strings.Trim(r.Headers()["idempotency-key"], `"`), sent.Token})
}

// sent are the payments that the pages sent; made are the tokens that Stripe made.
func (c *cardholder) sent() []tokenPayment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.paid)
}

// requireSent requires that these payments were sent and no others. The browser's
// own word for a request may come after the page that its answer led to.
func (c *cardholder) requireSent(want ...tokenPayment) {
	c.t.Helper()
	eventually(c.t, "the browser tells what it sent", func() bool { return len(c.sent()) >= len(want) })
	require.Equal(c.t, want, c.sent())
}

func (c *cardholder) made() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tokens)
}

// enter types a card into Stripe's form.
func (c *cardholder) enter(number string) {
	c.t.Helper()
	c.mu.Lock()
	if number != "" {
		c.typed = append(c.typed, number)
	}
	c.mu.Unlock()
	require.NoError(c.t, c.FrameLocator("#element iframe").GetByLabel("Card number").Fill(number))
}

// requireCardsKept requires that no card was shown to the shop, and takes the
// requests to Stripe from the faults of the pages: they are what these tests are
// about.
func (c *cardholder) requireCardsKept() {
	c.mu.Lock()
	for _, number := range c.typed {
		for _, text := range c.shown {
			for _, written := range []string{number, strings.ReplaceAll(number, " ", ""), url.QueryEscape(number)} {
				if strings.Contains(text, written) {
					c.t.Errorf("the shop was shown a card: %s", text)
				}
			}
		}
	}
	c.mu.Unlock()
	c.window.mu.Lock()
	defer c.window.mu.Unlock()
	c.faults = slices.DeleteFunc(c.faults, func(fault string) bool {
		return slices.Contains([]string{stripeJSAddress, formAddress, tokensAddress, bankAddress}, strings.TrimPrefix(fault, "a request to "))
	})
}
