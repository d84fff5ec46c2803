package e2e

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"
)

// elsewhere is a host name that means this machine to the tests' browser. A
// page from there is not in a secure context, as 127.0.0.1 is.
const elsewhere = "shop.test"

// The browsers of a run, started when the first test asks. Playwright switches
// the back/forward cache off, people do not, so there is one of each. No page came
// out of that cache in the headless shell, so its tests have the whole Chromium.
var (
	plainBrowser = sync.OnceValues(func() (playwright.Browser, error) {
		path, err := chromium()
		if err != nil {
			return nil, err
		}
		if shell, found := installedShell(); found {
			path = shell
		}
		return launch(path)
	})
	cacheBrowser = sync.OnceValues(func() (playwright.Browser, error) {
		path, err := chromium()
		if err != nil {
			return nil, err
		}
		return launch(path, "--disable-back-forward-cache")
	})
	driver = sync.OnceValues(func() (*playwright.Playwright, error) {
		p, err := startDriver()
		if err == nil {
			afterAllTests(func() error { return answered("ending Playwright", p.Stop) })
		}
		return p, err
	})
	chromium = sync.OnceValues(func() (string, error) {
		p, err := driver()
		if err != nil {
			return "", err
		}
		return installedChromium(p.Chromium.ExecutablePath())
	})
)

// launch starts a browser without some of the arguments that Playwright gives it.
func launch(path string, without ...string) (playwright.Browser, error) {
	p, err := driver()
	if err != nil {
		return nil, err
	}
	// Playwright leaves the sandbox off, which root could not use, and which
	// needs privileges that a container may not have. The pages are our own.
	browser, err := p.Chromium.Launch(playwright.BrowserTypeLaunchOptions{
		ExecutablePath:    &path,
		IgnoreDefaultArgs: without,
		Args: []string{
			"--disable-background-networking", // the tests speak to this machine and to nobody else
			"--host-resolver-rules=MAP " + elsewhere + " 127.0.0.1",
			"--disable-gpu",
			"--font-render-hinting=none",
		},
	})
	if err != nil {
		return nil, errors.New("starting " + path + ": " + oneLine(err))
	}
	afterAllTests(func() error { return answered("ending the browser", func() error { return browser.Close() }) })
	return browser, nil
}

// answered makes a call for which Playwright has no timeout, and does not wait
// for ever: a test that hangs would take all others with it.
func answered(what string, call func() error) error {
	err := make(chan error, 1)
	go func() { err <- call() }()
	select {
	case err := <-err:
		return err
	case <-time.After(patience):
		return fmt.Errorf("%s: Playwright has not answered in %s", what, patience)
	}
}

// tables are the places in the browser. More pages at once than this are
// slower together than one after the other.
var tables = make(chan struct{}, 3)

// takeTable waits for a place, and gives it back when the test has ended.
func takeTable(t *testing.T) {
	t.Helper()
	tables <- struct{}{}
	t.Cleanup(func() { <-tables })
}

// expect waits for what must become true of a page.
var expect = playwright.NewPlaywrightAssertions(float64(patience.Milliseconds()))
