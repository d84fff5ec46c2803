//go:build !windows

package main

import (
	"os"
	"strconv"
	"syscall"
)

// terminate asks a process to end in order.
func terminate(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) }

// ended is true when a process is gone. A port that is free again does not
// tell: the journal may still be on its way to the disk, and locked.
func ended(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return true
	}
	// A zombie can be signalled, and stays one under a parent that never waits,
	// as in some containers. On Linux it is told by having no arguments.
	arguments, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return err == nil && len(arguments) == 0
}
