package simulator

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Simulator is an A&AI in memory. It is an http.Handler for the A&AI API, /aai/..., and is safe for concurrent use.
type Simulator struct {
	base           string
	versions       []int
	defaultVersion int
	credentials    []string // accepted values of the Authorization header, none = no check
	bulkLimit      int
	readTimeout    time.Duration
	impliedDelete  map[string][]string // types by application in lower case
	override       string
	reject         bool
	clock          *clock

	mu        sync.RWMutex // guards what follows, not what is in journal, events, violations and faults
	graph     *graph
	past      []past        // older inventories, oldest first, while a fault wants them
	last      *tx           // the last write, until something else replaces the inventory
	restarted chan struct{} // closed by Restart, and replaced

	journal    *journal
	events     *eventLog
	violations *violationLog
	faults     *faults
}

// New returns an empty A&AI. It panics when the options do not pass Validate: they are written by a programmer.
func New(opts Options) *Simulator {
	if err := opts.Validate(); err != nil {
		panic("simulator.New: " + err.Error())
	}
	base := cmp.Or(opts.BasePath, "/aai")
	s := &Simulator{
		base:          base,
		bulkLimit:     cmp.Or(opts.BulkLimit, bulkLimit),
		readTimeout:   cmp.Or(opts.ReadTimeout, readTimeout),
		impliedDelete: map[string][]string{},
		override:      cmp.Or(opts.VersionOverride, anyVersion),
		reject:        opts.Reject,
		clock:         &clock{source: opts.Clock},
		graph:         newGraph(base),
		restarted:     make(chan struct{}),
		journal:       &journal{limit: cmp.Or(opts.JournalSize, logSize)},
		violations:    &violationLog{strict: opts.Strict || opts.Reject},
		faults:        &faults{cleared: make(chan struct{})},
	}
	if s.clock.source == nil {
		s.clock.source = time.Now
	}
	s.serveVersions(opts)
	for name, password := range opts.Users {
		s.credentials = append(s.credentials, basicAuth(name, password))
	}
	for app, types := range opts.ImpliedDelete {
		s.impliedDelete[strings.ToLower(app)] = slices.Clone(types)
	}
	s.events = &eventLog{
		limit: cmp.Or(opts.EventLogSize, logSize), oneSided: opts.OneSidedEvents,
		view: view{base: base, schema: s.defaultVersion, depth: allDepths},
	}
	if opts.ShallowEvents {
		s.events.view.depth = 0
	}
	return s
}

func (s *Simulator) serveVersions(opts Options) {
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
}

// schemaNumber reads "v32".
func schemaNumber(version string) (int, bool) {
	digits, ok := strings.CutPrefix(version, "v")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && "v"+strconv.Itoa(n) == version
}

// maxBody bounds a request body; thirty documents with thousands of labels fit.
const maxBody = 16 << 20

// ServeHTTP answers one request to the A&AI API, unless a fault rule gets in its way, and writes it to the journal. Where
// a fault ends the connection it panics with http.ErrAbortHandler, as net/http wants it; who calls it without net/http
// recovers that and takes it for a broken connection.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrival := s.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "cannot read request body: "+err.Error(), http.StatusBadRequest)
		return
	}
	rule, leave := s.faults.enter(asked{
		method: r.Method, path: r.URL.EscapedPath(), app: r.Header.Get("X-FromAppId"), body: string(body), base: s.base,
	})
	defer leave()
	x := &exchange{Simulator: s, hit: rule, w: w, r: r, body: body, arrival: arrival, restarted: s.whenRestarted()}
	x.serve()
}

func (s *Simulator) whenRestarted() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.restarted
}

// author is on whose behalf a write is done.
type author struct {
	app, transaction string
	schema           int
}

// transact does a write: all of it, or nothing when it fails.
func (s *Simulator) transact(by author, write func(*tx) *apiError) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, still := s.clock.now()
	s.keepPast(now)
	t := s.graph.begin(by.schema, now, still)
	t.shown, t.implied, t.override = s.events.view, s.impliedDelete[strings.ToLower(by.app)], s.override
	if err := write(t); err != nil {
		t.rollback()
		return err
	}
	s.last = t
	s.events.publish(t, by, now)
	return nil
}

// Restart does what a restart of the server does to its clients: requests that a fault delays or lets hang lose their
// connection. If loseLastWrite is set, what the last request or Act has written is gone, as if the storage had not had
// it yet; its events stay, because A&AI sends them before it commits. It is an error when there is no such write, or
// fixtures came after it. Faults, journal and logs stay.
func (s *Simulator) Restart(loseLastWrite bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if loseLastWrite {
		if s.last == nil {
			return errors.New("cannot lose the last write: there is none to lose")
		}
		s.last.rollback()
	}
	s.last = nil
	close(s.restarted)
	s.restarted = make(chan struct{})
	return nil
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
