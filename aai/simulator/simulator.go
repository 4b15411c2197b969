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

// Options configure a Simulator. The zero value serves v24 to v32 without authentication.
type Options struct {
	// Versions are the schema versions served, "v22" to "v32"; others are answered 400, as by a server whose configuration
	// lacks them (schema.version.list). The newest is /aai/latest, and how Get and List see the inventory. Default: v24 to v32.
	Versions []string
	// Users maps names to passwords for Basic authentication; requests without one of them get 403. Default: no check.
	Users map[string]string
	// Clock returns the time for resource-versions and the journal. Default: time.Now. Delays of faults use real time.
	Clock func() time.Time
	// BulkLimit is how many operations a bulk request may hold (aai.bulkconsumer.payloadlimit). Default: 30.
	BulkLimit int
	// Strict keeps a log of requests that a correct client would not send. It does not change the answers.
	Strict bool
	// Reject implies Strict. Such requests are answered 400 AAI_3000 and change nothing.
	Reject bool
}

// Validate returns an error if the options are invalid.
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
	snapshots    []snapshot        // older inventories, oldest first, while a fault needs them
	last         *tx               // the last write, until something else replaces the inventory
	transactions map[string]string // strict mode: the request that a transaction id belongs to
	violations   []Violation
	journal      []Request
	sequence     uint64 // of the last request in the journal
	rules        []*rule
	cleared      chan struct{} // closed by ClearFaults, and replaced
	restarted    chan struct{} // closed by Restart, and replaced
}

// New returns an empty Simulator. It panics if the options are invalid, which is a programming error.
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
// fault ends the connection it panics with http.ErrAbortHandler, as net/http requires. A caller that is not net/http must
// recover from that and treat it as a broken connection.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	receivedAt := s.now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "cannot read request body: "+err.Error(), http.StatusBadRequest)
		return
	}
	x := &exchange{Simulator: s, w: w, r: r, body: body, receivedAt: receivedAt}
	release := x.selectFault()
	defer release()
	x.serve()
}

// transact runs a write in a transaction, and rolls it back on error.
func (s *Simulator) transact(schema int, write func(*tx) *apiError) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeSnapshot()
	t := s.inventory.begin(schema, s.now())
	if err := write(t); err != nil {
		t.rollback()
		return err
	}
	s.last = t
	return nil
}

// Restart simulates a restart of the server: requests that a fault delays or lets hang lose their connection. If loseLastWrite is
// set, it undoes the last write of a request or of Act, as if that had not been stored yet. It returns an error if there is no such
// write, or if fixtures were stored after it. It keeps faults, journal and violations.
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
