package commands

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope/api"
)

const (
	// streamIdleTimeout is how long a stream may send nothing before it counts as broken. The server sends a heartbeat every 15 seconds.
	streamIdleTimeout = 45 * time.Second
	// minReconnect and maxReconnect are the bounds of the backoff after failures.
	minReconnect, maxReconnect = time.Second, 30 * time.Second
	// maxEventSize limits the size of a line of a stream, in bytes.
	maxEventSize = 64 << 20
)

// follow prints a status whenever it changes, until ctx ends. It calls attempt, which prints changes until it ends or fails and reports
// whether there was a response. follow repeats attempt after interval and, while attempts fail, with exponential backoff. It returns the
// error of an attempt if a retry cannot succeed.
func follow(ctx context.Context, interval time.Duration, attempt func(context.Context) (bool, error), errOut io.Writer) error {
	for pause, wait := minReconnect, interval; ; wait = interval {
		progress, err := attempt(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // The command was interrupted.
		case isFinal(err):
			return err
		case progress:
			pause = minReconnect
		}
		if err != nil {
			fmt.Fprintf(errOut, "warning: %v; trying again in %s\n", err, pause)
			wait, pause = pause, min(2*pause, maxReconnect)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// isFinal reports whether a retry cannot succeed.
func isFinal(err error) bool {
	var respErr *responseError
	return errors.As(err, &respErr) && respErr.isPermanent() || errors.Is(err, errOutput) ||
		apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// errOutput means that the output cannot be written.
var errOutput = errors.New("cannot print")

// pollAttempt returns a function that gets a document, and prints it if it has changed.
func pollAttempt(client *statusClient, u *url.URL, p *statusPrinter) func(context.Context) (bool, error) {
	etag, lastPrinted := "", []byte(nil)
	return func(ctx context.Context) (progress bool, err error) {
		response, err := client.get(ctx, u, etag)
		if err != nil || response.notModified {
			return err == nil, err
		}
		etag = response.etag
		// Ages grow with every response. They alone are no change to print.
		timeless := withoutAges(response.body, time.Now())
		if !bytes.Equal(timeless, lastPrinted) || p.terminal && p.format == formatTable {
			lastPrinted, err = timeless, p.printUpdate(response.body)
		}
		return true, err
	}
}

// printUpdate prints a response after previous ones.
func (p *statusPrinter) printUpdate(body []byte) error {
	text, _, err := p.text(body, time.Now())
	if err != nil {
		return errors.Wrap(errOutput, err.Error())
	}
	return p.printNext(text)
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

// streamAttempt returns a function that prints the events of the stream of scopes until it ends. The function reports whether it has received one.
func streamAttempt(client *statusClient, u *url.URL, p *statusPrinter) func(context.Context) (bool, error) {
	query := u.Query()
	query.Set("watch", "true")
	u.RawQuery = query.Encode()
	return func(ctx context.Context) (progress bool, err error) {
		list := &scopeStream{printer: p}
		err = client.stream(ctx, u, func(event string, data []byte) error {
			progress = true
			return list.handle(event, data)
		})
		return progress, err
	}
}

// stream requests a stream of events and calls handle for each event, until the stream ends or is idle for streamIdleTimeout.
func (c *statusClient) stream(ctx context.Context, u *url.URL, handle func(event string, data []byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	responseTimer := time.AfterFunc(c.timeout, func() { cancel(errors.Errorf("no answer within %s; increase --timeout", c.timeout)) })
	response, err := c.send(ctx, u, "text/event-stream", "")
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
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			event = value
		case "data":
			data = append(append(data, value...), '\n')
		case "":
			if lines.Text() == "" && len(data) > 0 {
				if err := handle(event, bytes.TrimSpace(data)); err != nil {
					return err
				}
			}
			if lines.Text() == "" {
				event, data = "", nil
			}
		}
	}
	return lines.Err()
}

// scopeStream prints the events of a stream of scopes, as a table of the current scopes if that is the output format.
type scopeStream struct {
	printer *statusPrinter
	list    api.ScopeList
}

// handle prints an event, or the scopes after it.
func (s *scopeStream) handle(event string, data []byte) error {
	if event == "problem" {
		var p api.Problem
		if err := json.Unmarshal(data, &p); err != nil {
			return errors.Wrap(err, "cannot read an event")
		}
		return &responseError{status: p.Status, text: printable(fmt.Sprintf("%s (%d): %s", p.Title, p.Status, p.Detail))}
	}
	if s.printer.format != formatTable {
		return s.printer.printEvent(event, data)
	}
	if s.printer.target.kind == targetScopes {
		if err := s.merge(event, data); err != nil {
			return errors.Wrapf(err, "cannot read event %q", event)
		}
		return s.printer.printNext(listPage(s.list).text(s.printer.colour))
	}
	if event == "deleted" {
		return s.printer.printNext(s.printer.target.String() + " does not exist any more\n")
	}
	return s.printer.printUpdate(data)
}

// merge applies an event to the list.
func (s *scopeStream) merge(event string, data []byte) error {
	if event == "snapshot" {
		s.list = api.ScopeList{}
		return json.Unmarshal(data, &s.list)
	}
	var item api.ScopeItem
	if err := json.Unmarshal(data, &item); err != nil {
		return err
	}
	at, found := slices.BinarySearchFunc(s.list.Items, item, func(a, b api.ScopeItem) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	switch {
	case event == "deleted" && found:
		s.list.Items = slices.Delete(s.list.Items, at, at+1)
	case event == "deleted":
	case found:
		s.list.Items[at] = item
	default:
		s.list.Items = slices.Insert(s.list.Items, at, item)
	}
	return nil
}

// printEvent prints the name and the data of an event unchanged.
func (p *statusPrinter) printEvent(name string, data []byte) error {
	text, err := json.Marshal(struct {
		Event string          `json:"event"`
		Data  json.RawMessage `json:"data"`
	}{name, data})
	if err == nil && p.format == formatYAML {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return errors.Wrapf(err, "cannot read event %q", name)
	}
	return p.printNext(string(bytes.TrimSpace(text)) + "\n")
}
