package stripesim

const (
	requiresPaymentMethod = "requires_payment_method"
	requiresConfirmation  = "requires_confirmation"
	requiresAction        = "requires_action"
	requiresCapture       = "requires_capture"
	processing            = "processing"
	succeeded             = "succeeded"
	canceled              = "canceled"
)

type paymentIntent struct {
	ID                        string                   `json:"id"`
	Object                    string                   `json:"object"`
	Amount                    int64                    `json:"amount"`
	AmountCapturable          int64                    `json:"amount_capturable"`
	AmountDetails             amountDetails            `json:"amount_details"`
	AmountReceived            int64                    `json:"amount_received"`
	Application               null                     `json:"application"`
	ApplicationFeeAmount      null                     `json:"application_fee_amount"`
	AutomaticPaymentMethods   *automaticPaymentMethods `json:"automatic_payment_methods"`
	CanceledAt                *int64                   `json:"canceled_at"`
	CancellationReason        *string                  `json:"cancellation_reason"`
	CaptureMethod             string                   `json:"capture_method"`
	ClientSecret              string                   `json:"client_secret"`
	ConfirmationMethod        string                   `json:"confirmation_method"`
	Created                   int64                    `json:"created"`
	Currency                  string                   `json:"currency"`
	Customer                  null                     `json:"customer"`
	Description               *string                  `json:"description"`
	Invoice                   null                     `json:"invoice"`
	LastPaymentError          *errorBody               `json:"last_payment_error"`
	LatestCharge              reference                `json:"latest_charge"`
	Livemode                  bool                     `json:"livemode"`
	Metadata                  map[string]string        `json:"metadata"`
	NextAction                *nextAction              `json:"next_action"`
	OnBehalfOf                null                     `json:"on_behalf_of"`
	PaymentMethod             reference                `json:"payment_method"`
	PaymentMethodConfigDetail *paymentMethodConfig     `json:"payment_method_configuration_details"`
	PaymentMethodOptions      paymentMethodOptions     `json:"payment_method_options"`
	PaymentMethodTypes        []string                 `json:"payment_method_types"`
	Processing                *processingDetails       `json:"processing"`
	ReceiptEmail              *string                  `json:"receipt_email"`
	Review                    null                     `json:"review"`
	SetupFutureUsage          null                     `json:"setup_future_usage"`
	Shipping                  null                     `json:"shipping"`
	Source                    null                     `json:"source"`
	StatementDescriptor       *string                  `json:"statement_descriptor"`
	StatementDescriptorSuffix *string                  `json:"statement_descriptor_suffix"`
	Status                    string                   `json:"status"`
	TransferData              null                     `json:"transfer_data"`
	TransferGroup             *string                  `json:"transfer_group"`
}

type amountDetails struct {
	Tip struct{} `json:"tip"`
}

type automaticPaymentMethods struct {
	AllowRedirects string `json:"allow_redirects"`
	Enabled        bool   `json:"enabled"`
}

type paymentMethodConfig struct {
	ID     string `json:"id"`
	Parent null   `json:"parent"`
}

type paymentMethodOptions struct {
	Card cardOptions `json:"card"`
}

type cardOptions struct {
	Installments        null   `json:"installments"`
	MandateOptions      null   `json:"mandate_options"`
	Network             null   `json:"network"`
	RequestThreeDSecure string `json:"request_three_d_secure"`
}

type processingDetails struct {
	Card struct{} `json:"card"`
	Type string   `json:"type"`
}

type nextAction struct {
	RedirectToURL *redirectToURL `json:"redirect_to_url,omitempty"`
	Type          string         `json:"type"`
	UseStripeSDK  *useStripeSDK  `json:"use_stripe_sdk,omitempty"`
}

type redirectToURL struct {
	ReturnURL string `json:"return_url"`
	URL       string `json:"url"`
}

type useStripeSDK struct {
	Source   string `json:"source"`
	StripeJS string `json:"stripe_js"`
	Type     string `json:"type"`
}

// intent is a PaymentIntent and what Stripe remembers of it without showing it.
type intent struct {
	paymentIntent `json:"shown"`
	Confirms      int    `json:"confirms"`
	Challenge     string `json:"challenge,omitempty"`     // the payment attempt a 3-D Secure challenge is open for
	ReturnURL     string `json:"return_url,omitempty"`    // where the customer goes after it
	Authenticated string `json:"authenticated,omitempty"` // id of the PaymentMethod whose challenge was passed
}

func (i *intent) ident() string    { return i.ID }
func (i *intent) kind() string     { return "payment_intent" }
func (i *intent) createdAt() int64 { return i.Created }

func (i *intent) shown() any {
	pi := i.paymentIntent
	return &pi
}

// mayRedirect tells whether methods that redirect may be used, so that a confirm needs a return_url.
func (i *intent) mayRedirect() bool {
	return i.AutomaticPaymentMethods != nil && i.AutomaticPaymentMethods.Enabled && i.AutomaticPaymentMethods.AllowRedirects == "always"
}
