package simulator

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Options say which A&AI is simulated. The zero value serves v24 to v32 without authentication.
type Options struct {
	// Versions are the schema versions served, "v22" to "v32"; others are answered 400, as by a server whose configuration
	// lacks them (schema.version.list). The newest is /aai/latest, and how Get and List see the inventory. Default: v24 to v32.
	Versions []string
	// Users maps names to passwords for Basic authentication; requests without one of them get 403. Default: no check.
	Users map[string]string
	// Clock gives the time for resource-versions and the journal. Default: time.Now. Delays of faults use real time.
	Clock func() time.Time
	// BulkLimit is how many operations a bulk request may hold (aai.bulkconsumer.payloadlimit). Default: 30.
	BulkLimit int
	// Strict keeps a log of requests that a careful client would not send. The answers stay the same.
	Strict bool
	// Reject is Strict, and such requests are answered 400 AAI_3000 and do nothing.
	Reject bool
}

// Validate reports what is wrong with the options.
func (o Options) Validate() error {
	for _, name := range o.Versions {
		if n, ok := schemaNumber(name); !ok || n < oldestSchema || n > newestSchema {
			return fmt.Errorf("cannot serve schema version %q: known are v%d to v%d", name, oldestSchema, newestSchema)
		}
	}
	if o.BulkLimit < 0 {
		return fmt.Errorf("bulk limit %d is negative", o.BulkLimit)
	}
	return nil
}

// Simulator is an A&AI in memory. It is an http.Handler for the A&AI API, /aai/..., and is safe for concurrent use.
type Simulator struct {
	versions    []int
	credentials []string // accepted values of the Authorization header, none for no check
	bulkLimit   int
	strict      bool
	reject      bool
	now         func() time.Time

	mu           sync.RWMutex // guards what follows
	inventory    *inventory
	past         []past            // older inventories, oldest first, while a fault wants them
	last         *tx               // the last write, until something else replaces the inventory
	transactions map[string]string // strict mode: the request that a transaction id belongs to
	violations   []Violation
	journal      []Request
	sequence     uint64 // of the last request in the journal
	rules        []*rule
	cleared      chan struct{} // closed by ClearFaults, and replaced
	restarted    chan struct{} // closed by Restart, and replaced
}

// New returns an empty A&AI. It panics when the options do not pass Validate: they are written by a programmer.
func New(o Options) *Simulator {
	if err := o.Validate(); err != nil {
		panic("simulator.New: " + err.Error())
	}
	s := &Simulator{
		bulkLimit: o.BulkLimit, strict: o.Strict || o.Reject, reject: o.Reject, now: o.Clock,
		inventory: &inventory{nodes: map[string]*node{}}, transactions: map[string]string{},
		cleared: make(chan struct{}), restarted: make(chan struct{}),
	}
	if s.bulkLimit == 0 {
		s.bulkLimit = 30
	}
	if s.now == nil {
		s.now = time.Now
	}
	for _, name := range o.Versions {
		n, _ := schemaNumber(name) // Validate has read it
		s.versions = append(s.versions, n)
	}
	for n := firstK8sResource; len(o.Versions) == 0 && n <= newestSchema; n++ {
		s.versions = append(s.versions, n)
	}
	for name, password := range o.Users {
		s.credentials = append(s.credentials, basicAuth(name, password))
	}
	return s
}

func basicAuth(name, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

// newest returns the newest schema version that is served.
func (s *Simulator) newest() int { return slices.Max(s.versions) }

// maxBody bounds a request body. Thirty documents with thousands of labels fit.
const maxBody = 16 << 20

// ServeHTTP answers one request to the A&AI API, unless a fault rule prevents that, and writes it to the journal. Where a
// fault ends the connection it panics with http.ErrAbortHandler, as net/http wants it. A caller that is not net/http must
// recover from that and treat it as a broken connection.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrival := s.now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "cannot read request body: "+err.Error(), http.StatusBadRequest)
		return
	}
	x := &exchange{Simulator: s, w: w, r: r, body: body, arrival: arrival}
	leave := x.findFault()
	defer leave()
	x.serve()
}

// transact does a write: all of it, or nothing if it fails.
func (s *Simulator) transact(schema int, write func(*tx) *apiError) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepPast()
	t := s.inventory.begin(schema, s.now())
	if err := write(t); err != nil {
		t.rollback()
		return err
	}
	s.last = t
	return nil
}

// Restart does what a restart of the server does to its clients: requests that a fault delays or lets hang lose their
// connection. If loseLastWrite is set, what the last request or Act has written is gone, as if it had not been stored yet. It
// is an error when there is no such write, or fixtures came after it. Faults, journal and violations stay.
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
