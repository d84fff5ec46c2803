package e2e

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/playwright-community/playwright-go"
)

// npmPackage is a package of npm that the browser tests need. Its hash is
// written down here because we run what is in it.
type npmPackage struct{ name, version, sha512 string }

var (
	// The driver of playwright-go, in the version that this playwright-go speaks.
	driverPackage = npmPackage{
		"playwright-core", "1.52.0",
		"l2osTgLXSMeuLZOML9qYODUQoPPnUsKsb5/P6LJ2e6uPKXUdPK5WYhN4z03G+YNbWmGDY4YENauNu4ZKczreHg==",
	}
	// The rules of accessibility that a program can check.
	axePackage = npmPackage{
		"axe-core", "4.10.3",
		"Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg==",
	}
)

// installTime is how long one step of an installation may take.
const installTime = 10 * time.Minute

// installed returns the folder with the package's files in "package", and
// fetches it with npm if it is not there. Several runs may do so at once: each
// fetches into a folder of its own, and the first to finish gives it its name.
func (p npmPackage) installed() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a folder for %s: %w: set XDG_CACHE_HOME", p.name, err)
	}
	parent := filepath.Join(cache, "payonce-test")
	dir := filepath.Join(parent, p.name+"-"+p.version)
	if isDir(dir) {
		return dir, nil
	}
	if err := p.fetch(parent, dir); err != nil && !isDir(dir) {
		return "", fmt.Errorf("installing %s %s, for the browser tests: %w: npm (of Node.js) must be there and reach its registry", p.name, p.version, err)
	}
	return dir, nil
}

func (p npmPackage) fetch(parent, dir string) error {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	unfinished, err := os.MkdirTemp(parent, p.name+".new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	archive := filepath.Join(unfinished, p.name+"-"+p.version+".tgz")
	if err := command(unfinished, "npm", "pack", "--loglevel=error", "--prefer-offline", p.name+"@"+p.version); err != nil {
		return err
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		return fmt.Errorf("npm pack left no archive: %w", err)
	}
	if sum := sha512.Sum512(content); base64.StdEncoding.EncodeToString(sum[:]) != p.sha512 {
		return errors.New("the archive is not the one that was chosen: its hash differs")
	}
	if err := errors.Join(command(unfinished, "tar", "-xzf", archive), os.Remove(archive)); err != nil {
		return err
	}
	return os.Rename(unfinished, dir)
}

// startDriver starts Playwright's driver, a program of Node.js.
func startDriver() (*playwright.Playwright, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errors.New("the browser tests need Node.js 18 or later: put node and npm on PATH")
	}
	dir, err := driverPackage.installed()
	if err != nil {
		return nil, err
	}
	if err := os.Setenv("PLAYWRIGHT_NODEJS_PATH", node); err != nil { // the only way to tell playwright-go
		return nil, err
	}
	driver, err := playwright.Run(&playwright.RunOptions{DriverDirectory: dir, Stdout: os.Stderr, Stderr: os.Stderr})
	if err != nil {
		return nil, fmt.Errorf("starting Playwright's driver with %s: %w", node, err)
	}
	return driver, nil
}

// installedChromium returns the path of a Chromium, or of a Chrome, which is the
// same for our purpose. Where there is none it is installed: by apt, which only
// root may use, or else by Playwright's own installer.
func installedChromium(playwrights string) (string, error) {
	find := func() string {
		return firstChromium("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
			"/usr/lib/chromium/chromium", "/opt/google/chrome/chrome", "/snap/bin/chromium",
			"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
			playwrights)
	}
	if path := find(); path != "" {
		return path, nil
	}

	var failed []error
	if mayInstall() {
		failed = append(failed, installPackages("chromium", "fonts-liberation"))
		if path := find(); path != "" {
			return path, nil
		}
	}
	fmt.Fprintln(os.Stderr, "e2e: installing Chromium with Playwright's installer")
	driver, err := driverPackage.installed()
	if err == nil {
		install := []string{filepath.Join(driver, "package", "cli.js"), "install", "--no-shell", "chromium"}
		if os.Geteuid() == 0 {
			install = append(install, "--with-deps")
		}
		err = command("", "node", install...)
	}
	if path := find(); path != "" {
		return path, nil
	}
	failed = append(failed, err)
	return "", fmt.Errorf("the browser tests found no Chromium and could not install one (%s): install the package chromium, or put google-chrome on PATH",
		oneLine(errors.Join(failed...)))
}

// installedShell returns the path of Chromium's headless shell, the same browser
// without a window of its own: the tests take a third less of the machine's time
// with it. It is a convenience: where a system has none, there is Chromium.
func installedShell() (path string, found bool) {
	const name = "chromium-headless-shell"
	if path := firstChromium(name); path != "" {
		return path, true
	}
	if mayInstall() {
		if err := installPackages(name); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: no headless shell, the tests are slower without:", oneLine(err))
		}
	}
	path = firstChromium(name)
	return path, path != ""
}

func firstChromium(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil && isChromium(path) {
			return path
		}
	}
	return ""
}

// mayInstall tells whether this is a system with apt, and we are root.
func mayInstall() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0
}

func installPackages(names ...string) error {
	fmt.Fprintln(os.Stderr, "e2e: installing with apt-get:", strings.Join(names, " "))
	lock := "DPkg::Lock::Timeout=300" // another installation may be running
	return errors.Join(
		command("", "apt-get", "-qq", "-o", lock, "update"),
		command("", "apt-get", append([]string{"-qq", "-o", lock, "install", "-y", "--no-install-recommends"}, names...)...))
}

// isChromium tells a browser from a file that only has its name, such as the
// one of Ubuntu that asks for a snap.
func isChromium(path string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	version, err := exec.CommandContext(ctx, path, "--version").Output()
	return err == nil && bytes.Contains(version, []byte("Chrom"))
}

func isDir(path string) bool {
	stat, err := os.Stat(path)
	return err == nil && stat.IsDir()
}

// command runs a step of an installation. What it complains about becomes part
// of the error.
func command(dir, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	complaint := strings.TrimSpace(string(out))
	if lines := strings.Split(complaint, "\n"); len(lines) > 3 {
		complaint = strings.Join(lines[:3], " ")
	}
	return fmt.Errorf("%s: %w %s", name, err, complaint)
}

func oneLine(err error) string {
	if err == nil {
		return "it does not run"
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
