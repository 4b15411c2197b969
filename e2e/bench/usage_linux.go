package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU time in /proc: Linux shows user space a hundredth of a second everywhere.
const clockTick = 10 * time.Millisecond

// resetPeak makes the peak of a process's memory begin again from what it takes now.
func resetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("cannot reset the peak memory of process %d: %w", pid, err)
	}
	return nil
}

// usageOf reads what a process uses.
func usageOf(pid int) (usage, error) {
	var u usage
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, fmt.Errorf("cannot read the CPU time of process %d: %w", pid, err)
	}
	// The name, in parentheses, may hold anything; user and system time are the 12th and 13th field after it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return u, fmt.Errorf("cannot read the CPU time of process %d: %q", pid, stat)
	}
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return u, fmt.Errorf("cannot read the CPU time of process %d: %w", pid, err)
		}
		u.cpu += time.Duration(ticks) * clockTick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, fmt.Errorf("cannot read the memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		value := strings.TrimSuffix(strings.TrimSpace(rest), " kB")
		switch name {
		case "VmRSS":
			u.rss, err = strconv.ParseInt(value, 10, 64)
		case "VmHWM":
			u.peak, err = strconv.ParseInt(value, 10, 64)
		}
		if err != nil {
			return u, fmt.Errorf("cannot read the memory of process %d: %w", pid, err)
		}
	}
	u.rss, u.peak = u.rss<<10, u.peak<<10
	return u, nil
}
