package checkout_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
)

var suffix atomic.Int64

func randomSuffix() string { return "_" + strconv.FormatInt(suffix.Add(1), 36) }

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}
