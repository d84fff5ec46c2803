// Package stripesim is a local Stripe over HTTP.
package stripesim
