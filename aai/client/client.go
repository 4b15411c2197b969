package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-resty/resty/v2"

	"github.com/healthscope/healthscope/aai"
)

const (
	contentTypeJSON = "application/json"
	// maxResponseBytes is the maximum size of a response body, in bytes. A page of 500 documents has about half a megabyte.
	maxResponseBytes = 16 << 20
)

// Client is a client of one A&AI. It is safe for concurrent use.
type Client struct {
	options   Options
	transport http.RoundTripper
	resty     *resty.Client
	// servedVersions describes the schema versions that A&AI serves; nil until a probe has asked for them.
	servedVersions atomic.Pointer[string]
}

// New returns a client. It sends no request.
func New(o Options) (*Client, error) {
	o.setDefaults()
	err := o.validate()
	transport := o.Transport
	if err == nil && transport == nil {
		transport, err = newReloadingTransport(tlsFiles{ca: o.CAFile, cert: o.CertFile, key: o.KeyFile})
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make A&AI client: %w", err)
	}
	// The client does not follow redirects, because a redirect could send the credentials to another host.
	h := &http.Client{
		Transport:     o.Wrap(transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	r := resty.NewWithClient(h).
		SetLogger(discardLogger{}).
		SetDisableWarn(true).
		SetResponseBodyLimit(maxResponseBytes).
		SetHeader("User-Agent", "healthscope").
		SetHeader("X-FromAppId", o.AppID).
		SetHeader("Accept", contentTypeJSON)
	return &Client{options: o, transport: transport, resty: r}, nil
}

// Close closes idle connections. The client can be used again.
func (c *Client) Close() {
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// discardLogger discards the logs of resty, because callers get the same errors.
type discardLogger struct{}

func (discardLogger) Errorf(string, ...any) {}
func (discardLogger) Warnf(string, ...any)  {}
func (discardLogger) Debugf(string, ...any) {}

// ListK8sResources returns the documents of a tenant that have the data-owner, each once, in no particular order. It returns none if the tenant does not exist.
//
// A&AI does not guarantee stable pages: a concurrent write by another client may hide a document.
func (c *Client) ListK8sResources(ctx context.Context, tenant aai.Tenant, dataOwner string) ([]aai.Document, error) {
	var all []aai.Document
	seen := map[string]bool{}
	for page := 1; ; page++ {
		documents, pages, err := c.listPage(ctx, tenant, dataOwner, page)
		if err != nil {
			return nil, err
		}
		before := len(all)
		for _, d := range documents {
			if !seen[d.ID] {
				seen[d.ID] = true
				all = append(all, d)
			}
		}
		if len(all) == before || page >= pages { // nothing new: a server that ignores paging must not cause an endless loop
			return all, nil
		}
	}
}

// listPage returns one page, 1 being the first, and the number of pages.
func (c *Client) listPage(ctx context.Context, tenant aai.Tenant, dataOwner string, page int) (documents []aai.Document, pages int, err error) {
	req := request{op: aai.OpList, method: http.MethodGet, path: tenant.ResourcesPath(), parameters: []string{
		"data-owner", dataOwner,
		"resultIndex", strconv.Itoa(page),
		"resultSize", strconv.Itoa(c.options.PageSize),
		"skip-related-to", "true",
	}}
	var list struct {
		Documents []aai.Document `json:"k8s-resource"`
	}
	header, err := c.read(ctx, req, &list, func() error {
		if list.Documents == nil || slices.ContainsFunc(list.Documents, func(d aai.Document) bool { return d.ID == "" || d.ResourceVersion == "" }) {
			return errInvalidResource
		}
		return nil
	})
	if err != nil {
		if isAbsent(err) {
			return nil, 0, nil
		}
		return nil, 0, err
	}
	pages, err = strconv.Atoi(header.Get("total-pages"))
	if err != nil && len(list.Documents) >= c.options.PageSize {
		pages = page + 1 // unknown, so read pages until there are no more
	}
	return list.Documents, pages, nil
}

// GetK8sResource returns a document, and whether it exists.
func (c *Client) GetK8sResource(ctx context.Context, key aai.Key) (d aai.Document, found bool, err error) {
	return c.get(ctx, request{op: aai.OpGet, method: http.MethodGet, path: key.Path()}, key)
}

// get reads a document with the given request.
func (c *Client) get(ctx context.Context, req request, key aai.Key) (d aai.Document, found bool, err error) {
	validate := func() error {
		if d.ID != key.ID || d.ResourceVersion == "" {
			return errInvalidResource
		}
		return nil
	}
	if _, err = c.read(ctx, req, &d, validate); err != nil {
		if isAbsent(err) {
			return aai.Document{}, false, nil
		}
		return aai.Document{}, false, err
	}
	return d, true, nil
}

// ErrNotLeading is in the tree of an error about a request that was not sent because Options.Leads forbids it.
var ErrNotLeading = errors.New("this replica does not lead any more")

// errInvalidResource is the error for a response that does not hold the expected documents.
var errInvalidResource = errors.New("it has no k8s-resource, another one, or one without a resource-version")

// errInvalidModule is the error for a response that does not hold valid modules.
var errInvalidModule = errors.New("it has no vf-module, or one without an id or a resource-version")

// request describes one request to A&AI.
type request struct {
	op          aai.Op
	method      string
	path        string   // below /aai/vN, encoded
	version     string   // of the schema; empty for the configured one
	parameters  []string // name, value, name, value …; plain
	contentType string   // type of the body; empty for JSON
	body        any      // encoded as JSON; nil for none
}

// pathAndQuery returns the path and query as they are sent, below /aai/vN.
func (req *request) pathAndQuery() string {
	var b strings.Builder
	b.WriteString(req.path)
	for i := 0; i < len(req.parameters); i += 2 {
		separator := byte('&')
		if i == 0 {
			separator = '?'
		}
		b.WriteByte(separator)
		b.WriteString(aai.Escape(req.parameters[i]) + "=" + aai.Escape(req.parameters[i+1]))
	}
	return b.String()
}

// read sends a request, decodes its response and calls validate.
func (c *Client) read(ctx context.Context, req request, into any, validate func() error) (http.Header, error) {
	return c.send(ctx, req, func(body []byte) error {
		if err := json.Unmarshal(body, into); err != nil {
			return err
		}
		return validate()
	})
}

// write sends a request whose response has no body.
func (c *Client) write(ctx context.Context, req request) error {
	_, err := c.send(ctx, req, func(response []byte) error {
		if len(bytes.TrimSpace(response)) > 0 {
			return errors.New("it has a body")
		}
		return nil
	})
	return err
}

// send sends one request, if the breaker allows it, and returns the header of the response. A success with an unexpected status,
// or that validate refuses, came from another server or was truncated in transit: it is an outage, never an empty inventory or an
// acknowledgement.
func (c *Client) send(ctx context.Context, req request, validate func(body []byte) error) (header http.Header, err error) {
	id := transactionIDFrom(ctx)
	err = c.options.Breaker.do(ctx, req, func() error {
		if req.method != http.MethodGet && !c.options.Leads() {
			return &aai.Error{Op: req.op, URI: req.path, Kind: aai.Retry, NotSent: true, Err: ErrNotLeading}
		}
		response, err := c.roundTrip(ctx, req, id)
		if err != nil {
			return err
		}
		header = response.Header()
		if status := response.StatusCode(); status != successStatus(req.op) {
			err = fmt.Errorf("A&AI answers with the status %d", successStatus(req.op))
		} else {
			err = validate(response.Body())
		}
		if err == nil {
			return nil
		}
		return &aai.Error{
			Op: req.op, URI: req.path, Status: response.StatusCode(), Kind: aai.Retry, TransactionID: id,
			Message: fmt.Sprintf("the answer, of type %q, is not what was asked for", sanitize(header.Get("Content-Type"))), Err: err,
		}
	})
	return header, err
}

// successStatus returns the status with which A&AI answers a successful operation.
func successStatus(op aai.Op) int {
	switch op {
	case aai.OpPut, aai.OpBulk:
		return http.StatusCreated
	case aai.OpDelete, aai.OpUnrelate:
		return http.StatusNoContent
	case aai.OpProbe, aai.OpList, aai.OpGet, aai.OpTenant, aai.OpTarget, aai.OpModules, aai.OpUpdate, aai.OpRelate, aai.OpStatus:
	}
	return http.StatusOK
}

// roundTrip sends one request, without the breaker.
func (c *Client) roundTrip(ctx context.Context, req request, id string) (*resty.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	r := c.resty.R().SetContext(ctx).SetHeader("X-TransactionId", id)
	if req.body != nil {
		encoded, err := json.Marshal(req.body)
		if err != nil {
			return nil, &aai.Error{Op: req.op, URI: req.path, Kind: aai.Rejected, Message: "cannot encode the body", Err: err}
		}
		r.SetHeader("Content-Type", cmp.Or(req.contentType, contentTypeJSON)).SetBody(encoded)
	}
	if c.options.Credentials != nil {
		user, password, err := c.options.Credentials()
		if err != nil {
			return nil, &aai.Error{Op: req.op, URI: req.path, Kind: aai.Misconfigured, Problem: aai.ProblemCredentials, Message: "there are no credentials", Err: err}
		}
		r.SetBasicAuth(user, password)
	}
	start := time.Now()
	url := strings.TrimRight(c.options.BaseURL, "/") + "/aai/" + cmp.Or(req.version, c.options.SchemaVersion) + req.pathAndQuery()
	response, err := r.Execute(req.method, url)
	code := "error"
	if err == nil {
		code = strconv.Itoa(response.StatusCode())
	}
	c.options.Observe(string(req.op), code, time.Since(start))
	switch {
	case err != nil:
		return nil, transportError(req, id, err)
	case !response.IsSuccess():
		return nil, responseError(req, id, c.options.SchemaVersion, response)
	}
	return response, nil
}
