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
	// streamSilence is how long a stream may say nothing before it counts as broken. The server shows every 15 seconds that it lives.
	streamSilence = 45 * time.Second
	// minReconnect and maxReconnect bound the pauses before the server is asked again after a failure.
	minReconnect, maxReconnect = time.Second, 30 * time.Second
	// maxEvent is how long an event of a stream may be, in bytes.
	maxEvent = 64 << 20
)

// follow prints a status whenever it changes, until ctx ends. An attempt shows changes until it fails, or for as long as it lasts, and
// reports whether there was an answer. Attempts follow each other after an interval, and after longer and longer pauses while they
// fail, unless asking again is of no use.
func follow(ctx context.Context, interval time.Duration, attempt func(context.Context) (bool, error), errOut io.Writer) error {
	for pause, wait := minReconnect, interval; ; wait = interval {
		progress, err := attempt(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // It was interrupted.
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

// isFinal reports whether asking again does not help.
func isFinal(err error) bool {
	var refused *refusal
	return errors.As(err, &refused) && refused.forGood() || errors.Is(err, errOutput) ||
		apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// errOutput means that nothing can be printed.
var errOutput = errors.New("cannot print")

// poller returns what asks for a document, and prints it when it has changed.
func poller(client *statusClient, u *url.URL, p *statusPrinter) func(context.Context) (bool, error) {
	tag, shown := "", []byte(nil)
	return func(ctx context.Context) (progress bool, err error) {
		answer, err := client.get(ctx, u, tag)
		if err != nil || answer.same {
			return err == nil, err
		}
		tag = answer.tag
		// Ages grow from answer to answer, which is no change to print a line for.
		timeless := withoutAges(answer.body, time.Now())
		if !bytes.Equal(timeless, shown) || p.terminal && p.form == formTable {
			shown, err = timeless, p.again(answer.body)
		}
		return true, err
	}
}

// again prints an answer that follows others.
func (p *statusPrinter) again(body []byte) error {
	text, _, err := p.text(body, time.Now())
	if err != nil {
		return errors.Wrap(errOutput, err.Error())
	}
	return p.next(text)
}

// withoutAges returns a document without what changes with every second. Whether something is old stays.
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
			for _, below := range v {
				strip(below)
			}
		case []any:
			for _, below := range v {
				strip(below)
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

// streamer returns what follows the stream of scopes until it ends, and reports whether anything came.
func streamer(client *statusClient, u *url.URL, p *statusPrinter) func(context.Context) (bool, error) {
	query := u.Query()
	query.Set("watch", "true")
	u.RawQuery = query.Encode()
	return func(ctx context.Context) (progress bool, err error) {
		list := &scopeStream{printer: p}
		err = client.stream(ctx, u, func(event string, data []byte) error {
			progress = true
			return list.take(event, data)
		})
		return progress, err
	}
}

// stream asks for a stream of events and calls handle for each, until the stream ends or says nothing for too long.
func (c *statusClient) stream(ctx context.Context, u *url.URL, handle func(event string, data []byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(c.timeout, func() { cancel(errors.Errorf("no answer within %s; increase --timeout", c.timeout)) })
	response, err := c.send(ctx, u, "text/event-stream", "")
	late.Stop()
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	silent := time.AfterFunc(streamSilence, func() { cancel(errors.Errorf("the server has sent nothing for %s", streamSilence)) })
	defer silent.Stop()
	if err := readEvents(response.Body, func() { silent.Reset(streamSilence) }, handle); err != nil {
		return causeOf(ctx, err)
	}
	return errors.New("the server has ended the stream")
}

// readEvents reads server-sent events, as the HTML standard defines them, as far as the server makes use of it. It calls alive for each line.
func readEvents(from io.Reader, alive func(), handle func(event string, data []byte) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEvent)
	event, data := "", []byte(nil)
	for lines.Scan() {
		alive()
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

// scopeStream keeps a table of scopes, or one scope, in step with a stream.
type scopeStream struct {
	printer *statusPrinter
	list    api.ScopeList
}

// take prints an event, or what has come of it.
func (s *scopeStream) take(event string, data []byte) error {
	if event == "problem" {
		var p api.Problem
		if err := json.Unmarshal(data, &p); err != nil {
			return errors.Wrap(err, "cannot read an event")
		}
		return &refusal{status: p.Status, text: printable(fmt.Sprintf("%s (%d): %s", p.Title, p.Status, p.Detail))}
	}
	if s.printer.form != formTable {
		return s.printer.event(event, data)
	}
	if s.printer.target.kind == ofScopes {
		if err := s.merge(event, data); err != nil {
			return errors.Wrapf(err, "cannot read event %q", event)
		}
		return s.printer.next(listPage(s.list).text(s.printer.colour))
	}
	if event == "deleted" {
		return s.printer.next(s.printer.target.String() + " does not exist any more\n")
	}
	return s.printer.again(data)
}

// merge enters an event into the list.
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

// event prints an event as it came: its name, and its data.
func (p *statusPrinter) event(name string, data []byte) error {
	text, err := json.Marshal(struct {
		Event string          `json:"event"`
		Data  json.RawMessage `json:"data"`
	}{name, data})
	if err == nil && p.form == formYAML {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return errors.Wrapf(err, "cannot read event %q", name)
	}
	return p.next(string(bytes.TrimSpace(text)) + "\n")
}
