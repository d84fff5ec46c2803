//go:build screenshots

package e2e

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// TestScreenshots draws every page in every state, on a phone and on a desk,
// light and dark, for people to look at.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	dir := emptyFolder(t, "..", ".build", "screenshots")
	d := deploy(t)
	quiet := deploy(t, clientsOnly)
	shop, quietShop := d.open(t), quiet.open(t)
	t.Run("Each", func(t *testing.T) {
		for _, s := range scenes {
			t.Run(s.name, func(t *testing.T) {
				open := func(options ...func(*playwright.BrowserNewContextOptions)) *window {
					if !s.silent {
						w := d.browse(t, shop, options...)
						s.open(t, w)
						return w
					}
					w := quiet.browse(t, quietShop, options...)
					s.openInSilence(t, w)
					return w
				}
				if !s.silent { // Stripe is silent for one at a time
					t.Parallel()
				}
				w := open()
				for _, width := range []int{390, 1280} {
					for _, scheme := range []string{"light", "dark"} {
						w.draw(t, filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", s.name, width, scheme)), width, scheme)
					}
				}
			})
		}
	})
}

// TestReadmePictures draws the two pages that the README shows.
func TestReadmePictures(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)
	for name, open := range map[string]func(*testing.T, *window){
		"checkout": func(t *testing.T, w *window) { w.tried(t) },
		"receipt":  func(_ *testing.T, w *window) { w.copied() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := d.browse(t, shop)
			open(t, w)
			path := filepath.Join("..", ".readme", name+".png")
			w.draw(t, path, 1100, "light")
			shrink(t, path)
			stat, err := os.Stat(path)
			require.NoError(t, err)
			require.Less(t, stat.Size(), int64(100<<10), "a picture that everybody loads")
		})
	}
}

// shrink keeps the 256 colours that a picture has most of: a page has few, and
// the shades at the edges of its letters are not missed.
func shrink(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	picture, err := png.Decode(bytes.NewReader(content))
	require.NoError(t, err)
	area, often := picture.Bounds(), map[color.Color]int{}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			often[picture.At(x, y)]++
		}
	}
	colours := slices.Collect(maps.Keys(often))
	slices.SortFunc(colours, func(a, b color.Color) int { return often[b] - often[a] })
	small := image.NewPaletted(area, colours[:min(256, len(colours))])
	draw.Draw(small, area, picture, area.Min, draw.Src)
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small))
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
}

// draw writes a picture of the whole page.
func (b *tab) draw(t *testing.T, path string, width int, scheme string) {
	t.Helper()
	require.NoError(t, b.SetViewportSize(width, 900))
	require.NoError(t, b.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: (*playwright.ColorScheme)(&scheme)}))
	// As high as the page, so that what sticks to the foot of a window is where
	// the page ends.
	height, err := b.Evaluate(`() => document.documentElement.scrollHeight`)
	require.NoError(t, err)
	require.NoError(t, b.SetViewportSize(width, height.(int)))
	_, err = b.Screenshot(playwright.PageScreenshotOptions{
		Path: &path, FullPage: playwright.Bool(true), Animations: playwright.ScreenshotAnimationsDisabled,
	})
	require.NoError(t, err)
}

func emptyFolder(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(path...)
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}
