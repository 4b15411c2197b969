package assets

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// heartbeatInterval is the longest silence while something compiles.
const heartbeatInterval = 15 * time.Second

// tailLines is how much of a failed command's output an error carries.
const tailLines = 20

// activity reads what `go build -v` writes (the module it downloads, the package it has begun to compile) and keeps what
// a person waiting wants to know. Safe for concurrent use.
type activity struct {
	mu       sync.Mutex
	rest     []byte
	tail     []string
	packages int
	last     string
}

// Write implements io.Writer.
func (a *activity) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rest = append(a.rest, p...)
	for {
		line, rest, found := bytes.Cut(a.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		a.rest = rest
		a.line(string(line))
	}
}

func (a *activity) line(line string) {
	a.tail = append(a.tail, line)
	if len(a.tail) > tailLines {
		a.tail = a.tail[1:]
	}
	switch module, downloading := strings.CutPrefix(line, "go: downloading "); {
	case downloading:
		a.last = "downloading " + module
	case line != "" && !strings.ContainsAny(line, " \t"):
		a.packages++
		a.last = fmt.Sprintf("%d packages, now %s", a.packages, line)
	}
}

// String says what goes on, for instance "214 packages, now k8s.io/apiserver/pkg/server".
func (a *activity) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == "" {
		return "loading packages"
	}
	return a.last
}

// Tail is the end of the output.
func (a *activity) Tail() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(append(a.tail, string(a.rest)), "\n")
}

// heartbeat writes a line to log every interval until the function it returns is called: prefix, how long it has
// taken, and what state says. It works the same on a terminal and in a log.
func heartbeat(log io.Writer, interval time.Duration, prefix string, state fmt.Stringer) (stop func()) {
	begin := time.Now()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(log, "%s for %s (%s)\n", prefix, since(begin), state)
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// since is the time passed since begin in whole seconds.
func since(begin time.Time) time.Duration {
	return time.Since(begin).Round(time.Second)
}
