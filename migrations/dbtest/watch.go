package dbtest

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"time"

	"payonce/migrations/localpg"
)

// No test program knows whether it is the last of a run, and each may be
// killed. So the first one starts a copy of itself that does nothing but stop
// the server when nobody has used it for a while.

// watchVariable turns a test program into the watch of the folder it names.
const watchVariable = "PAYONCE_DBTEST_WATCH"

// idle is how long the server outlives its last user: long enough for the next
// package's program to be linked, short enough not to be found in the way.
const idle = 10 * time.Second

func init() {
	dir := os.Getenv(watchVariable)
	if dir == "" {
		return
	}
	if err := localpg.StopWhenIdle(context.Background(), dir, idle); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// watch starts the watch of a folder if there is none.
func watch(dir string) error {
	folder, err := localpg.OpenFolder(dir)
	if err != nil {
		return err
	}
	if watched, err := folder.Watched(); err != nil || watched {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the test program: %w", err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), watchVariable+"="+dir)
	// Neither our folder nor our output: go test waits for whoever holds them.
	cmd.Dir = "/"
	localpg.Detach(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting a watch over the test server: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// localDir returns the folder of the test server: not the shop's, and one for
// each choice of binaries, since a folder runs one server.
func localDir() (string, error) {
	if dir := os.Getenv("TEST_DATA_DIR"); dir != "" {
		return dir, nil
	}
	dir, err := localpg.DefaultDir()
	if err != nil {
		return "", err
	}
	dir += "-test"
	if binaries := os.Getenv("LOCALPG"); binaries != "" {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(binaries))
		dir += fmt.Sprintf("-%08x", hash.Sum32())
	}
	return dir, nil
}
