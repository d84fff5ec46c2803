package migrations

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOldServersAreRefused(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, supported(140022), ErrTooOld)
	require.ErrorContains(t, supported(140022), "this is 14")
	require.NoError(t, supported(150000))
	require.NoError(t, supported(170010))
}
