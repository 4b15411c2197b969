package simulator

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is one request to the A&AI API as the journal keeps it.
type Request struct {
	// Sequence counts requests from 1, in the order in which their answers were ready.
	Sequence uint64 `json:"sequence"`
	// Time is when the request arrived, by Options.Clock.
	Time time.Time `json:"time"`
	// Method is the HTTP method as sent; a POST with X-HTTP-Method-Override: PATCH stays a POST here.
	Method string `json:"method"`
	// Path is the percent-encoded path, with /aai/vN.
	Path string `json:"path"`
	// Query is the raw query string.
	Query string `json:"query,omitempty"`
	// Header holds the request headers, credentials replaced.
	Header http.Header `json:"header"`
	// Body is the request body.
	Body string `json:"body,omitempty"`
	// Status is the HTTP status of the answer, 0 when a fault dropped the connection instead.
	Status int `json:"status"`
}

// redactedHeaders may hold credentials.
var redactedHeaders = []string{"Authorization", "Proxy-Authorization", "Cookie"}

func record(r *http.Request, body []byte, arrival time.Time, status int) Request {
	header := r.Header.Clone()
	for _, name := range redactedHeaders {
		if header.Get(name) != "" {
			header.Set(name, "REDACTED")
		}
	}
	return Request{
		Time: arrival, Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery,
		Header: header, Body: string(body), Status: status,
	}
}

// journalBytes bounds the bodies that the journal holds together.
const journalBytes = 64 << 20

// journal remembers the last requests.
type journal struct {
	limit int

	mu       sync.Mutex // guards the rest
	requests []Request
	bytes    int
	sequence uint64
}

func (j *journal) add(r Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sequence++
	r.Sequence = j.sequence
	j.requests = append(j.requests, r)
	j.bytes += len(r.Body)
	for len(j.requests) > j.limit || j.bytes > journalBytes {
		j.bytes -= len(j.requests[0].Body)
		j.requests[0] = Request{} // free it before the slice is reallocated
		j.requests = j.requests[1:]
	}
}

// since returns the requests with a greater sequence number.
func (j *journal) since(sequence uint64) []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	first := slices.IndexFunc(j.requests, func(r Request) bool { return r.Sequence > sequence })
	if first < 0 {
		return []Request{}
	}
	return slices.Clone(j.requests[first:])
}

// Requests returns the requests the journal remembers, oldest first. A request is in it before its answer is sent.
func (s *Simulator) Requests() []Request { return s.journal.since(0) }
