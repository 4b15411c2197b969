package probe_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope/probe"
)

// serverVariable makes the test binary the API server of BenchmarkThousandServices, so that the benchmark's own process does
// nothing but probe.
const serverVariable = "HEALTHSCOPE_PROBE_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		serve()
		return
	}
	os.Exit(m.Run())
}

// serve is an API server whose targets all fail from the moment on at which a line comes in.
func serve() {
	var lost atomic.Bool
	server := httptest.NewUnstartedServer(&apiServer{services: names("s", 10), proxy: func(w http.ResponseWriter, _ *http.Request, _, _ string) {
		if lost.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}})
	server.EnableHTTP2 = true
	server.StartTLS()
	fmt.Println(server.URL, base64.StdEncoding.EncodeToString(authorityOf(server))) //nolint:forbidigo // The other process reads it.
	lines := bufio.NewReader(os.Stdin)
	if _, err := lines.ReadString('\n'); err != nil {
		return
	}
	lost.Store(true)
	_, _ = io.Copy(io.Discard, lines)
}

// startServer starts such an API server in a process of its own, and returns it and what makes its targets fail.
func startServer(b *testing.B) (at oneCluster, lose func()) {
	b.Helper()
	program := exec.CommandContext(context.WithoutCancel(b.Context()), os.Args[0])
	program.Env, program.Stderr = append(os.Environ(), serverVariable+"=true"), os.Stderr
	in, err := program.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := program.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := program.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = program.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	url, encoded, _ := strings.Cut(strings.TrimSpace(line), " ")
	authority, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		b.Fatal(err)
	}
	return clusterAt(b, url, authority), func() { _, _ = io.WriteString(in, "\n") }
}

// cpuTime returns how much CPU this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A thousand Services, ten in each of a hundred namespaces, are probed every ten seconds, over HTTP/2 and TLS. It reports the
// share of a core that this takes, and, after all are lost at one moment, how long it takes until that is seen.
func BenchmarkThousandServices(b *testing.B) {
	const services = 10
	at, lose := startServer(b)
	for b.Loop() {
		p := run(b, at)
		w, all := wants(b, 10, 10), names("n", 100)
		wantIn(b, p, w, all, services)
		count := func(v probe.Verdict) (n int) {
			for _, namespace := range all {
				for _, s := range p.Want(scopeIn(namespace), w).Services {
					if s.Verdict == v {
						n++
					}
				}
			}
			return n
		}
		eventually(b, "all pass", func() bool { return count(probe.Passing) == services*len(all) })
		const measured = 30 * time.Second
		before := cpuTime(b)
		<-time.After(measured)
		b.ReportMetric(100*float64(cpuTime(b)-before)/float64(measured), "%core")

		lost := time.Now()
		lose()
		var seen []time.Duration
		for len(seen) < services*len(all) {
			<-time.After(50 * time.Millisecond)
			for range count(probe.Failing) - len(seen) {
				seen = append(seen, time.Since(lost))
			}
			if time.Since(lost) > time.Minute {
				b.Fatalf("%d of %d losses are seen after a minute", len(seen), services*len(all))
			}
		}
		slices.Sort(seen)
		b.ReportMetric(seen[len(seen)*95/100].Seconds(), "p95-s")
		b.ReportMetric(seen[len(seen)-1].Seconds(), "max-s")
	}
}
