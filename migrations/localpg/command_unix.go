//go:build darwin || freebsd || linux

package localpg

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
)

// output runs a command that has a session of its own, returns what it
// printed, and kills it and all its children when ctx ends. The error is one
// line: the command's own complaint where there is one.
func output(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	err := cmd.Wait()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", complaintOr(err, stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// complaintOr returns the line of a program's output that says what was wrong,
// or else err.
func complaintOr(err error, output string) error {
	if line := complaint(output); line != "" {
		return errors.New(line)
	}
	return err
}

// complaint finds the line worth showing: the first of the gravest kind.
func complaint(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		// What the server told us while we waited for it is not a complaint.
		if !strings.Contains(line, "the database system is") {
			lines = append(lines, line)
		}
	}
	for _, mark := range []string{"PANIC:", "FATAL:", "error:", "ERROR:", "npm error", "npm ERR!", "No space left"} {
		for _, line := range lines {
			if _, after, found := strings.Cut(line, mark); found && strings.TrimSpace(after) != "" {
				return strings.TrimSpace(after)
			}
		}
	}
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
