// Package e2e tests the shop from outside: as a process that is started,
// talked to over HTTP, killed and started again. It sees HTTP, SQL and Stripe's
// API, and none of the shop's code, so that a guarantee holds here only if a
// customer and a bank statement would say the same.
//
// Each test has a deployment of its own: a database, a local Stripe, and one
// shop or several on them. When the test ends the deployment's invariants are
// checked, whatever the test was about, and every process must be gone.
package e2e
