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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
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
	*statusCommand

	client *http.Client
	url    string
	// etag is that of the last document, and shown the document without ages that was shown last.
	etag  string
	shown string
	// scopes are those of the stream.
	scopes []api.ScopeItem
}

// newRESTSource returns a source that reads from the server of the flags or, without one, from the controller.
func (s *statusCommand) newRESTSource() (*restSource, error) {
	connect := s.connectToController
	if s.server != "" {
		connect = s.connectToServer
	}
	server, transport, err := connect()
	if err != nil {
		return nil, err
	}
	s.target = s.target.inNamespace(s.namespace)
	server = server.JoinPath(s.target.path()...)
	server.RawQuery = s.query().Encode()
	// A redirect could send the token elsewhere.
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &restSource{statusCommand: s, url: server.String(), client: client}, nil
}

// query returns the query of a request. It does not check the values that the server checks.
func (s *statusCommand) query() url.Values {
	q := url.Values{}
	if !s.target.isDocument() {
		if s.target.kind == targetScopes && s.namespace != "" && !s.allNamespaces {
			q.Set("namespace", s.namespace)
		}
		if s.watch {
			q.Set("watch", "true")
		}
		return q
	}
	if s.instances {
		q.Set("instance", "")
		return q
	}
	q["app"], q["cluster"], q["resource"] = s.apps, s.clusters, s.resources
	q.Set("output", s.detail)
	if s.health || s.flags.Changed("health") {
		q.Set("health", strconv.FormatBool(s.health))
	}
	if s.kind != "" {
		q.Set("type", s.kind)
	}
	if s.flags.Changed("instance") {
		q.Set("instance", s.instance)
	}
	return q
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("User-Agent", "healthscope-status/"+Version())
	if s.etag != "" {
		request.Header.Set("If-None-Match", s.etag)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, requestError(ctx, err)
	}
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNotModified && s.etag != "" {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
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
	return nil, responseError{response.StatusCode, text}
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
	var failed *url.Error
	if !errors.As(err, &failed) {
		return err
	}
	place := "an unknown place"
	if u, parseErr := url.Parse(failed.URL); parseErr == nil {
		place = u.Scheme + "://" + u.Host
	}
	return errors.Wrapf(failed.Err, "cannot ask the server at %s", place)
}

// text returns a response in the output format, and its health.
func (s *restSource) text(body []byte) (string, healthscope.Health, error) {
	var g *page
	var err error
	switch s.target.kind {
	case targetScopes:
		var list api.ScopeList
		err = json.Unmarshal(body, &list)
		g = s.itemsPage(list.Items)
	case targetScope:
		var o api.Scope
		err = json.Unmarshal(body, &o)
		g = s.scopePage(o)
	case targetGroup, targetCluster:
		var d status.Document
		err = json.Unmarshal(body, &d)
		g = s.documentPage(d)
	}
	if err != nil {
		return "", "", printError{errors.Wrap(err, "the answer is not a status document")}
	}
	if s.output == formatTable {
		return g.String(), g.health, nil
	}
	text, err := s.encode(body)
	return text, g.health, err
}

// encode returns JSON unchanged, or as YAML if that is the output format.
func (s *restSource) encode(data []byte) (string, error) {
	if s.output != formatYAML {
		return string(bytes.TrimSpace(data)) + "\n", nil
	}
	text, err := yaml.JSONToYAML(data)
	if err != nil {
		return "", printError{err}
	}
	if s.watch {
		text = slices.Concat([]byte("---\n"), text)
	}
	return string(text), nil
}

// follow implements statusSource. Documents are shown if they have changed, and scopes whenever the server sends an event.
func (s *restSource) follow(ctx context.Context) (answered bool, err error) {
	if !s.target.isDocument() {
		err = s.stream(ctx, func(event string, data []byte) error {
			answered = true
			text, err := s.eventText(event, data)
			if err != nil {
				return err
			}
			return s.show(text)
		})
		return answered, err
	}
	body, err := s.read(ctx)
	if err != nil || body == nil {
		return err == nil, err
	}
	// Ages grow with every response. They alone are no change to print.
	timeless := withoutAges(body, time.Now())
	if redrawn := s.terminal && s.output == formatTable; !redrawn && timeless == s.shown {
		return true, nil
	}
	s.shown = timeless
	text, _, err := s.text(body)
	if err != nil {
		return true, err
	}
	return true, s.show(text)
}

// changing matches what changes with every response: ages, and times at which something was last seen.
var changing = regexp.MustCompile(`"(?:age":\s*-?\d+|last-seen":\s*"([^"]*)")`)

// withoutAges returns a document without what changes with every response. It replaces last-seen by whether it is old.
func withoutAges(body []byte, now time.Time) string {
	return changing.ReplaceAllStringFunc(string(body), func(match string) string {
		_, old := isOld(changing.FindStringSubmatch(match)[1], now)
		return strconv.FormatBool(old)
	})
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
	case s.output != formatTable:
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
		return s.itemsPage(s.scopes).String(), nil
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
