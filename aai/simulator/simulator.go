package simulator

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options say which A&AI is simulated. The zero value serves v24 to v32 without authentication, faithfully.
type Options struct {
	// Versions are the schema versions served, "v22" to "v32"; others answer 400 like on a real server whose
	// configuration lacks them. Default: v24 to v32.
	Versions []string
	// DefaultVersion is what /aai/latest means and how Get and List see the inventory. Default: the newest of
	// Versions.
	DefaultVersion string
	// Users maps names to passwords for Basic authentication; requests without one of them get 403. Default: no check.
	Users map[string]string
	// Clock gives the time for resource-versions and the journal. Default: time.Now. Delays of faults use real time.
	Clock func() time.Time
	// Strict keeps a log of requests that a careful client would not send; the answers stay the same.
	Strict bool
	// JournalSize bounds how many requests the journal remembers. Default: 10,000. Whatever the number, it holds no more
	// than 64 MiB of bodies.
	JournalSize int
}

// Validate reports what is wrong with the options.
func (o Options) Validate() error {
	for _, v := range append(slices.Clone(o.Versions), o.DefaultVersion) {
		if n, ok := schemaNumber(v); v != "" && (!ok || n < oldestSchema || n > newestSchema) {
			return fmt.Errorf("cannot serve schema version %q: known are v%d to v%d", v, oldestSchema, newestSchema)
		}
	}
	if o.DefaultVersion != "" && len(o.Versions) > 0 && !slices.Contains(o.Versions, o.DefaultVersion) {
		return fmt.Errorf("default version %q is not among the versions served, %q", o.DefaultVersion, o.Versions)
	}
	if o.JournalSize < 0 {
		return fmt.Errorf("journal size %d is negative", o.JournalSize)
	}
	return nil
}

// Simulator is an A&AI in memory. It is an http.Handler for the A&AI API, /aai/..., and is safe for concurrent use.
type Simulator struct {
	versions       []int
	defaultVersion int
	credentials    []string // accepted values of the Authorization header, none = no check
	clock          func() time.Time

	mu    sync.RWMutex // guards graph
	graph *graph

	journal    *journal
	violations *violationLog
	faults     *faults
}

// New returns an empty A&AI. It panics when the options do not pass Validate: they are written by a programmer.
func New(opts Options) *Simulator {
	if err := opts.Validate(); err != nil {
		panic("simulator.New: " + err.Error())
	}
	s := &Simulator{
		clock:      opts.Clock,
		graph:      newGraph(),
		violations: &violationLog{strict: opts.Strict},
		faults:     &faults{},
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	size := opts.JournalSize
	if size == 0 {
		size = 10_000
	}
	s.journal = &journal{limit: size}
	for _, v := range opts.Versions {
		n, _ := schemaNumber(v)
		s.versions = append(s.versions, n)
	}
	if len(s.versions) == 0 {
		for v := firstK8sResource; v <= newestSchema; v++ {
			s.versions = append(s.versions, v)
		}
	}
	s.defaultVersion = slices.Max(s.versions)
	if n, ok := schemaNumber(opts.DefaultVersion); ok {
		s.defaultVersion = n
	}
	for name, password := range opts.Users {
		s.credentials = append(s.credentials, basicAuth(name, password))
	}
	return s
}

// schemaNumber reads "v32".
func schemaNumber(version string) (int, bool) {
	digits, ok := strings.CutPrefix(version, "v")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && "v"+strconv.Itoa(n) == version
}

// maxBody bounds a request body; thirty documents with thousands of labels fit.
const maxBody = 16 << 20

// ServeHTTP answers one request to the A&AI API, unless a fault rule gets in its way, and writes it to the journal.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrival := s.clock()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "cannot read request body: "+err.Error(), http.StatusBadRequest)
		return
	}
	fault := s.faults.take(r.Method, r.URL.EscapedPath())
	if !fault.wait(r.Context()) || fault.Drop == DropBeforeCommit {
		s.hangUp(r, body, arrival)
	}
	var rep reply
	if fault.Status != 0 {
		rep = statusPage(fault.Status)
	} else {
		rep = s.handle(newRequest(r, body))
	}
	if fault.Drop == DropAfterCommit {
		s.hangUp(r, body, arrival)
	}
	s.journal.add(record(r, body, arrival, rep.status))
	rep.header.Set("X-AAI-TXID", "sim-"+strconv.FormatInt(arrival.UnixNano(), 36))
	rep.write(w)
}

// hangUp records a request that gets no answer, as status 0, and closes its connection.
func (s *Simulator) hangUp(r *http.Request, body []byte, arrival time.Time) {
	s.journal.add(record(r, body, arrival, 0))
	panic(http.ErrAbortHandler)
}

// reply is an answer before it is written.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// statusPage is an answer that does not come from A&AI itself but from its servlet container or a proxy before it.
func statusPage(status int) reply {
	text := fmt.Sprintf("<html><body><h1>%d %s</h1></body></html>", status, http.StatusText(status))
	return reply{status: status, header: http.Header{"Content-Type": {"text/html"}}, body: []byte(text)}
}

func (p reply) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), p.header)
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body) // a client that has gone needs no answer
}
