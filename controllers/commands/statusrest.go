package commands

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/api"
	"github.com/healthscope/healthscope/healthscope/status"
)

const (
	// maxResponseSize limits the size of a response body, and maxEventSize that of a line of a stream, in bytes.
	maxResponseSize, maxEventSize = 256 << 20, 64 << 20
	// streamIdleTimeout is how long a stream may send nothing before it counts as broken. The server sends a heartbeat every 15 seconds.
	streamIdleTimeout = 45 * time.Second
)

// restSource reads the status REST API of a hub.
type restSource struct {
	*statusView

	http    *http.Client
	url     *url.URL
	timeout time.Duration
	// etag is that of the last document, and shown the document without ages that was shown last.
	etag  string
	shown []byte
	// scopes are those of the stream.
	scopes []api.ScopeItem
}

// newRESTSource returns the source of a view: the server of the flags or, without one, the controller.
func (f *statusFlags) newRESTSource(v *statusView, flags *pflag.FlagSet) (*restSource, error) {
	connect := f.connectToController
	if f.server != "" {
		connect = f.connectToServer
	}
	server, transport, err := connect()
	if err != nil {
		return nil, err
	}
	v.target = v.target.inNamespace(f.namespace)
	var parts []string
	for _, part := range v.target.path() {
		parts = append(parts, url.PathEscape(part))
	}
	u := server.JoinPath(parts...)
	query := f.query(v.target, flags)
	if f.watch && !v.target.isDocument() {
		query.Set("watch", "true")
	}
	u.RawQuery = query.Encode()
	return &restSource{
		statusView: v, url: u, timeout: f.timeout,
		// A redirect could send the token elsewhere.
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

// get implements statusSource.
func (s *restSource) get(ctx context.Context) (string, healthscope.Health, error) {
	body, err := s.read(ctx)
	if err != nil {
		return "", "", err
	}
	return s.text(body)
}

// read gets a document. It returns nil if the document has not changed since the last one.
func (s *restSource) read(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, noAnswerWithin(s.timeout))
	defer cancel()
	response, err := s.send(ctx, "application/json")
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusNotModified {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponseSize+1))
	switch {
	case err != nil:
		return nil, requestError(ctx, err)
	case len(body) > maxResponseSize:
		return nil, errors.Errorf("the answer has more than %d MiB; ask for less, for instance with --app", maxResponseSize>>20)
	}
	s.etag = response.Header.Get("ETag")
	return body, nil
}

// send sends a request. It returns an error for an error response.
func (s *restSource) send(ctx context.Context, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("User-Agent", "healthscope-status/"+Version())
	if s.etag != "" {
		request.Header.Set("If-None-Match", s.etag)
	}
	response, err := s.http.Do(request)
	if err != nil {
		return nil, requestError(ctx, err)
	}
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNotModified && s.etag != "" {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	return nil, newResponseError(response)
}

// newResponseError returns the error of an error response.
func newResponseError(response *http.Response) error {
	const maxProblem = 64 << 10
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxProblem)) // On an error, body holds what was read before it.
	text := fmt.Sprintf("the server answers %s without a message; is --server the URL of HealthScope's status REST API?", response.Status)
	var p api.Problem
	if json.Unmarshal(body, &p) == nil && p.Detail != "" {
		text = fmt.Sprintf("%s (%d): %s", cmp.Or(p.Title, http.StatusText(p.Status)), response.StatusCode, p.Detail)
	}
	text = printable(text)
	if response.StatusCode == http.StatusUnauthorized {
		text += "; give a token with --token-file, --kubeconfig or --context"
	}
	return responseError{response.StatusCode, text}
}

// responseError is an error response of the status REST API.
type responseError struct {
	code int
	text string
}

// Error implements error.
func (r responseError) Error() string { return r.text }

// noAnswerWithin returns the error of a request that has no answer in time.
func noAnswerWithin(timeout time.Duration) error {
	return errors.Errorf("no answer within %s; increase --timeout", timeout)
}

// requestError returns the cause of a failed request, without the path and query of the URL, which the caller knows.
func requestError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var wrapped *url.Error
	if !errors.As(err, &wrapped) {
		return err
	}
	place := "an unknown place"
	if u, parseErr := url.Parse(wrapped.URL); parseErr == nil {
		place = u.Scheme + "://" + u.Host
	}
	return errors.Wrapf(wrapped.Err, "cannot ask the server at %s", place)
}

// text returns a response in the output format, and its health.
func (s *restSource) text(body []byte) (string, healthscope.Health, error) {
	page, err := s.page(body, time.Now())
	if err != nil {
		return "", "", printError{err}
	}
	if s.format == formatTable {
		return page.text(s.colour), page.health, nil
	}
	text, err := s.encode(body)
	return text, page.health, err
}

// encode returns JSON unchanged, or as YAML if that is the output format.
func (s *restSource) encode(data []byte) (string, error) {
	if s.format == formatYAML {
		text, err := yaml.JSONToYAML(data)
		if err != nil {
			return "", printError{err}
		}
		return string(text), nil
	}
	return string(bytes.TrimSpace(data)) + "\n", nil
}

// page returns the page for a response.
func (s *restSource) page(body []byte, now time.Time) (*page, error) {
	var err error
	switch s.target.kind {
	case targetScopes:
		var list api.ScopeList
		if err = json.Unmarshal(body, &list); err == nil {
			return listPage(list.Items), nil
		}
	case targetScope:
		var scope api.Scope
		if err = json.Unmarshal(body, &scope); err == nil {
			return scopePage(scope, false, now), nil
		}
	case targetGroup, targetCluster:
		var d status.Document
		if err = json.Unmarshal(body, &d); err == nil {
			return documentPage(s.target, d, now), nil
		}
	}
	return nil, errors.Wrap(err, "the answer is not a status document")
}

// follow implements statusSource. Documents are shown if they have changed, and scopes whenever the server sends an event.
func (s *restSource) follow(ctx context.Context, show func(string) error) (answered bool, err error) {
	if s.format == formatYAML {
		showText := show
		show = func(text string) error { return showText("---\n" + text) }
	}
	if !s.target.isDocument() {
		err = s.stream(ctx, func(event string, data []byte) error {
			answered = true
			text, err := s.eventText(event, data)
			if err != nil {
				return err
			}
			return show(text)
		})
		return answered, err
	}
	body, err := s.read(ctx)
	if err != nil || body == nil {
		return err == nil, err
	}
	// Ages grow with every response. They alone are no change to print.
	timeless := withoutAges(body, time.Now())
	if redrawn := s.terminal && s.format == formatTable; !redrawn && bytes.Equal(timeless, s.shown) {
		return true, nil
	}
	s.shown = timeless
	text, _, err := s.text(body)
	if err != nil {
		return true, err
	}
	return true, show(text)
}

// withoutAges returns a document without the values that change every second. It replaces the time last-seen by whether it is old.
func withoutAges(body []byte, now time.Time) []byte {
	var document any
	if json.Unmarshal(body, &document) != nil {
		return body
	}
	var strip func(any)
	strip = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			delete(v, "age")
			if lastSeen, ok := v["last-seen"].(string); ok {
				v["last-seen"] = isOld(lastSeen, now)
			}
			for _, child := range v {
				strip(child)
			}
		case []any:
			for _, child := range v {
				strip(child)
			}
		}
	}
	strip(document)
	data, err := json.Marshal(document)
	if err != nil {
		return body
	}
	return data
}

// stream requests a stream of events and calls handle for each event, until the stream ends or is idle for streamIdleTimeout.
func (s *restSource) stream(ctx context.Context, handle func(event string, data []byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	responseTimer := time.AfterFunc(s.timeout, func() { cancel(noAnswerWithin(s.timeout)) })
	response, err := s.send(ctx, "text/event-stream")
	responseTimer.Stop()
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	idleTimer := time.AfterFunc(streamIdleTimeout, func() { cancel(errors.Errorf("the server has sent nothing for %s", streamIdleTimeout)) })
	defer idleTimer.Stop()
	if err := readEvents(response.Body, func() { idleTimer.Reset(streamIdleTimeout) }, handle); err != nil {
		return requestError(ctx, err)
	}
	return errors.New("the server has ended the stream")
}

// readEvents reads server-sent events, as the HTML standard defines them. It supports the features that the server uses. It calls onLine for each line.
func readEvents(from io.Reader, onLine func(), handle func(event string, data []byte) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEventSize)
	event, data := "", []byte(nil)
	for lines.Scan() {
		onLine()
		if lines.Text() == "" {
			if len(data) > 0 {
				if err := handle(event, bytes.TrimSpace(data)); err != nil {
					return err
				}
			}
			event, data = "", nil
			continue
		}
		switch field, value, _ := strings.Cut(lines.Text(), ":"); field {
		case "event":
			event = strings.TrimPrefix(value, " ")
		case "data":
			data = append(append(data, strings.TrimPrefix(value, " ")...), '\n')
		}
	}
	return lines.Err()
}

// eventText returns an event in the output format. As a table, it is what there is after the event.
func (s *restSource) eventText(event string, data []byte) (string, error) {
	switch {
	case event == "problem":
		var p api.Problem
		if err := json.Unmarshal(data, &p); err != nil {
			return "", errors.Wrap(err, "cannot read an event")
		}
		return "", responseError{p.Status, printable(fmt.Sprintf("%s (%d): %s", p.Title, p.Status, p.Detail))}
	case s.format != formatTable:
		text, err := json.Marshal(struct {
			Event string          `json:"event"`
			Data  json.RawMessage `json:"data"`
		}{event, data})
		if err != nil {
			return "", errors.Wrapf(err, "cannot read event %q", event)
		}
		return s.encode(text)
	case s.target.kind == targetScopes:
		if err := s.merge(event, data); err != nil {
			return "", errors.Wrapf(err, "cannot read event %q", event)
		}
		return listPage(s.scopes).text(s.colour), nil
	case event == "deleted":
		return s.target.String() + doesNotExist, nil
	}
	text, _, err := s.text(data)
	return text, err
}

// merge applies an event to the scopes, which are sorted by namespace and name.
func (s *restSource) merge(event string, data []byte) error {
	if event == "snapshot" {
		var list api.ScopeList
		err := json.Unmarshal(data, &list)
		s.scopes = list.Items
		return err
	}
	var item api.ScopeItem
	if err := json.Unmarshal(data, &item); err != nil {
		return err
	}
	s.scopes = slices.DeleteFunc(s.scopes, func(o api.ScopeItem) bool { return o.Namespace == item.Namespace && o.Name == item.Name })
	if event != "deleted" {
		s.scopes = append(s.scopes, item)
	}
	slices.SortFunc(s.scopes, func(a, b api.ScopeItem) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return nil
}
