// Package collector is an OpenTelemetry collector for tests. It receives traces by
// OTLP over HTTP in protobuf (https://opentelemetry.io/docs/specs/otlp/#otlphttp), and stores them.
package collector

import (
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"sync"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// maxBatch is the maximum size of a batch, in bytes.
const maxBatch = 16 << 20

// Span is a received span.
type Span struct {
	// Name is the name of the span.
	Name string
	// Trace, ID and Parent are ids in hexadecimal digits; Parent is empty for the first span of a trace.
	Trace, ID, Parent string
	// Failed is true if the status of the span is an error.
	Failed bool
	// Attributes are the attributes of the span, and Resource those of the program that sent it, as text.
	Attributes, Resource map[string]string
}

// Collector stores the spans that it receives. It is safe for concurrent use.
type Collector struct {
	mu       sync.Mutex
	spans    []Span
	requests int
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "this takes POST /v1/traces in protobuf", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBatch))
	var batch collectorv1.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &batch)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.add(&batch)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *Collector) add(batch *collectorv1.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	for _, resource := range batch.GetResourceSpans() {
		from := texts(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, Span{
					Name: s.GetName(), Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					Failed: s.GetStatus().GetCode() == tracev1.Status_STATUS_CODE_ERROR, Attributes: texts(s.GetAttributes()), Resource: from,
				})
			}
		}
	}
}

// Spans returns the received spans with a name, or all received spans if the name is empty.
func (c *Collector) Spans(name string) []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []Span
	for _, s := range c.spans {
		if name == "" || s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// Requests returns the number of received batches.
func (c *Collector) Requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

// texts returns attributes as text.
func texts(attributes []*commonv1.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		switch value := a.GetValue().GetValue().(type) {
		case *commonv1.AnyValue_StringValue:
			all[a.GetKey()] = value.StringValue
		case *commonv1.AnyValue_IntValue:
			all[a.GetKey()] = strconv.FormatInt(value.IntValue, 10)
		default: // Attributes of other types only need to show their value.
			all[a.GetKey()] = a.GetValue().String()
		}
	}
	return all
}
