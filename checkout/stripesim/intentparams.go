package stripesim

func intentCreateParams() []param {
	return expandable(append(unimitatedParams(
		"application_fee_amount", "customer", "mandate", "mandate_data", "on_behalf_of", "payment_method_configuration",
		"payment_method_data", "radar_options", "setup_future_usage", "shipping", "transfer_data"),
		param{name: "amount", kind: integer, required: true},
		param{name: "automatic_payment_methods", kind: object, fields: []param{
			{name: "enabled", kind: boolean, required: true},
			{name: "allow_redirects", kind: choice, choices: []string{"always", "never"}},
		}},
		param{name: "capture_method", kind: choice, choices: []string{"automatic", "automatic_async", "manual"}},
		param{name: "confirm", kind: boolean},
		param{name: "confirmation_method", kind: choice, choices: []string{"automatic", "manual"}},
		param{name: "confirmation_token", kind: text},
		param{name: "currency", kind: text, required: true},
		param{name: "description", kind: text, clears: true, max: 1000},
		param{name: "error_on_requires_action", kind: boolean},
		param{name: "metadata", kind: metadata},
		param{name: "off_session", kind: boolean},
		param{name: "payment_method", kind: text},
		methodOptionsParam(),
		methodTypesParam(),
		param{name: "receipt_email", kind: text, clears: true, max: 800},
		param{name: "return_url", kind: link},
		param{name: "statement_descriptor", kind: text, clears: true, max: 22},
		param{name: "statement_descriptor_suffix", kind: text, clears: true, max: 22},
		param{name: "transfer_group", kind: text, clears: true},
		param{name: "use_stripe_sdk", kind: boolean},
	)...)
}

func intentUpdateParams() []param {
	return expandable(append(unimitatedParams(
		"application_fee_amount", "customer", "payment_method_configuration", "payment_method_data", "setup_future_usage",
		"shipping", "transfer_data"),
		param{name: "amount", kind: integer},
		param{name: "capture_method", kind: choice, choices: []string{"automatic", "automatic_async", "manual"}},
		param{name: "currency", kind: text},
		param{name: "description", kind: text, clears: true, max: 1000},
		param{name: "metadata", kind: metadata},
		param{name: "payment_method", kind: text},
		methodOptionsParam(),
		methodTypesParam(),
		param{name: "receipt_email", kind: text, clears: true, max: 800},
		param{name: "statement_descriptor", kind: text, clears: true, max: 22},
		param{name: "statement_descriptor_suffix", kind: text, clears: true, max: 22},
		param{name: "transfer_group", kind: text, clears: true},
	)...)
}

func intentConfirmParams() []param {
	return expandable(append(unimitatedParams(
		"client_secret", "mandate", "mandate_data", "payment_method_data", "radar_options", "setup_future_usage", "shipping"),
		param{name: "capture_method", kind: choice, choices: []string{"automatic", "automatic_async", "manual"}},
		param{name: "confirmation_token", kind: text},
		param{name: "error_on_requires_action", kind: boolean},
		param{name: "off_session", kind: boolean},
		param{name: "payment_method", kind: text},
		methodOptionsParam(),
		methodTypesParam(),
		param{name: "receipt_email", kind: text, clears: true, max: 800},
		param{name: "return_url", kind: link},
		param{name: "use_stripe_sdk", kind: boolean},
	)...)
}

func intentCancelParams() []param {
	return expandable(param{
		name: "cancellation_reason", kind: choice,
		choices: []string{"duplicate", "fraudulent", "requested_by_customer", "abandoned"},
	})
}

func intentCaptureParams() []param {
	return expandable(append(unimitatedParams("application_fee_amount", "final_capture", "transfer_data"),
		param{name: "amount_to_capture", kind: integer},
		param{name: "metadata", kind: metadata},
		param{name: "statement_descriptor", kind: text, clears: true, max: 22},
		param{name: "statement_descriptor_suffix", kind: text, clears: true, max: 22},
	)...)
}

func methodOptionsParam() param {
	return param{name: "payment_method_options", kind: object, fields: []param{{name: "card", kind: object, fields: []param{
		{name: "request_three_d_secure", kind: choice, choices: []string{"any", "automatic", "challenge"}},
	}}}}
}

// methodTypesParam takes cards only: they are all that the local Stripe charges.
func methodTypesParam() param {
	return param{name: "payment_method_types", kind: texts, choices: []string{"card"}}
}
