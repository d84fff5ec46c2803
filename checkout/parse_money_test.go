package checkout_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"payonce/checkout"
)

func TestParseMoney(t *testing.T) {
	t.Parallel()

	t.Run("ReadsWhatPeopleWrite", func(t *testing.T) {
		t.Parallel()
		for _, row := range []struct {
			text, currency string
			amount         int64
		}{
			{"19", "usd", 1900},
			{"19.0", "usd", 1900},
			{"19.00", "usd", 1900},
			{"19.5", "eur", 1950},
			{"0.01", "gbp", 1},
			{"0.29", "usd", 29}, // 0.29 * 100 is 28 by a float
			{"1.10", "usd", 110},
			{"0019.00", "usd", 1900},
			{"999999.99", "usd", 99999999},
			{"1900", "jpy", 1900},
			{"99999999", "jpy", 99999999},
		} {
			m, err := checkout.ParseMoney("amount", row.text, row.currency)
			require.NoError(t, err, row.text)
			require.Equal(t, checkout.Money{Amount: row.amount, Currency: row.currency}, m, row.text)
		}
	})

	t.Run("RefusesWhatHasTwoMeaningsOrNone", func(t *testing.T) {
		t.Parallel()
		for _, row := range [][2]string{
			{"", "usd"},
			{" ", "usd"},
			{".", "usd"},
			{".5", "usd"},
			{"5.", "usd"},
			{"-1", "usd"},
			{"+1", "usd"},
			{"1e2", "usd"},
			{"1,900", "usd"},
			{"1,90", "eur"},
			{"1 900", "usd"},
			{"$19", "usd"},
			{"19.00 USD", "usd"},
			{"19.001", "usd"},
			{"19.000", "usd"},
			{"1.2.3", "usd"},
			{"0x10", "usd"},
			{"Inf", "usd"},
			{"NaN", "usd"},
			{"１９", "usd"},
			{"19\x00", "usd"},
			{"\xff", "usd"},
			{"0", "usd"},
			{"0.00", "usd"},
			{"1000000.00", "usd"},
			{strings.Repeat("9", 400), "usd"},
			{"1900.00", "jpy"},
			{"1900.", "jpy"},
			{"0", "jpy"},
			{"100000000", "jpy"},
		} {
			_, err := checkout.ParseMoney("amount_major", row[0], row[1])
			var invalid *checkout.InvalidError
			require.ErrorAs(t, err, &invalid, "%q", row[0])
			require.Equal(t, "amount_major", invalid.Field)
			require.NotEmpty(t, invalid.Reason)
		}
	})

	t.Run("ReadsBackWhatStringWrites", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			m := checkout.Money{
				Amount:   rapid.Int64Range(1, 99999999).Draw(t, "amount"),
				Currency: rapid.SampledFrom([]string{"usd", "eur", "gbp", "jpy"}).Draw(t, "currency"),
			}
			text := strings.ReplaceAll(strings.TrimLeft(m.String(), "$€£¥"), ",", "")
			read, err := checkout.ParseMoney("amount", text, m.Currency)
			require.NoError(t, err)
			require.Equal(t, m, read)
		})
	})
}
